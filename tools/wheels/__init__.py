"""Builds the wheels: one for each C library that the native parts can be built for here, each with the tag it earns."""
