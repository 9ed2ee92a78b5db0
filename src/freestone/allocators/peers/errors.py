"""What can go wrong when a peer is added; each message is one line that says what to do next."""

from __future__ import annotations

from freestone.allocators.errors import AllocatorError


class PeerError(AllocatorError):
    """A peer cannot be added."""


class UnknownPeer(PeerError):
    """No peer and no project of peers has this name."""


class SourceError(PeerError):
    """Its source could not be had: no such package, another checksum."""


class Unreachable(SourceError):
    """The registry could not be asked for its source."""


class BuildError(PeerError):
    """Its source did not become a library that works here."""


class CacheError(PeerError):
    """The folder the peers are kept in cannot be used."""
