"""Freestone: run any program under any allocator, prove which one served it, measure honestly."""

__version__ = "0.1.0"
