"""A search over allocators and their settings: what there is, what is tried next, who is out, what came of it."""
