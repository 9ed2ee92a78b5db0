"""One file a foreign program: what it is made to do, and which facts of that must not depend on the allocator."""
