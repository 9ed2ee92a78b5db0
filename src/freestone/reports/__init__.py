"""Records and summaries in; tables, figures and one-file pages out. Nothing here measures or computes statistics."""
