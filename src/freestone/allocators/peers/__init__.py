"""Peers: current versions of other allocators, built here from their source packages."""

from freestone.allocators.peers.addition import add, is_fetched, lacking
from freestone.allocators.peers.cache import Built, Receipt, at, built, remove, root
from freestone.allocators.peers.catalogue import Peer, chosen, load
from freestone.allocators.peers.errors import BuildError, CacheError, PeerError, SourceError, UnknownPeer, Unreachable
from freestone.allocators.peers.toolchain import Tool, remedy

__all__ = [
    "BuildError",
    "Built",
    "CacheError",
    "Peer",
    "PeerError",
    "Receipt",
    "SourceError",
    "Tool",
    "UnknownPeer",
    "Unreachable",
    "add",
    "at",
    "built",
    "chosen",
    "is_fetched",
    "lacking",
    "load",
    "remedy",
    "remove",
    "root",
]
