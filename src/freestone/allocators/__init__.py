"""Which allocators there are, where they are on this machine, and what any program file says about its own."""

from freestone.allocators.configurations import configurations, present, require_known, twins
from freestone.allocators.discovery import OWN, SYSTEM, bundled, configuration_for, discover, find, from_path
from freestone.allocators.errors import (
    AllocatorError,
    AllocatorUnavailable,
    BrokenLibrary,
    CatalogueError,
    UnknownAllocator,
)
from freestone.allocators.verification import Verification, verify

__all__ = [
    "OWN",
    "SYSTEM",
    "AllocatorError",
    "AllocatorUnavailable",
    "BrokenLibrary",
    "CatalogueError",
    "UnknownAllocator",
    "Verification",
    "bundled",
    "configuration_for",
    "configurations",
    "discover",
    "find",
    "from_path",
    "present",
    "require_known",
    "twins",
    "verify",
]
