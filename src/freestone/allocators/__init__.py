"""Which allocators there are, where they are on this machine, and what any program file says about its own."""

from freestone.allocators.configurations import configurations, present, twins
from freestone.allocators.discovery import SYSTEM, configuration_for, discover, find, from_path
from freestone.allocators.errors import (
    AllocatorError,
    AllocatorUnavailable,
    BrokenLibrary,
    CatalogueError,
    UnknownAllocator,
)
from freestone.allocators.verification import Verification, verify

__all__ = [
    "SYSTEM",
    "AllocatorError",
    "AllocatorUnavailable",
    "BrokenLibrary",
    "CatalogueError",
    "UnknownAllocator",
    "Verification",
    "configuration_for",
    "configurations",
    "discover",
    "find",
    "from_path",
    "present",
    "twins",
    "verify",
]
