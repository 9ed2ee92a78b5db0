"""Builds the wheels: one for each C library and age of it that the native parts can be built for here, each with the tag it earns."""
