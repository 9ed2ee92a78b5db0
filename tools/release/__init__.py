"""``make release``: everything that a version is but its upload."""
