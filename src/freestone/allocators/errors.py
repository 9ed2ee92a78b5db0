"""What can go wrong when an allocator is asked for; each message is one line that says what to do next."""

from __future__ import annotations


class AllocatorError(Exception):
    """Base of everything this room raises on purpose."""


class UnknownAllocator(AllocatorError):
    """The name is in no catalogue and is not a file."""


class AllocatorUnavailable(AllocatorError):
    """The catalogue knows the name, this machine does not have it."""


class BrokenLibrary(AllocatorError):
    """The file exists and cannot serve as an allocator here."""


class CatalogueError(AllocatorError):
    """A catalogue file does not hold what a catalogue holds."""
