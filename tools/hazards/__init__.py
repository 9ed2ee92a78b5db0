"""The hazards: one small program for each thing users of allocators were hurt by, run under every allocator."""
