"""Configurations as a comparison has them: the system's allocator, it with a setting, and another that is faster."""

from __future__ import annotations

from freestone.records.schema import Allocator, Configuration

FAST = Configuration(
    name="fast:FAST_CONF=a:b,c%d",
    allocator=Allocator(
        name="fast", title="Fast", file="/usr/lib/libfast.so.2", preload=["/usr/lib/libfast.so.2"],
        origin="package libfast2",
    ),
    environment={"FAST_CONF": "a:b,c%d"},
)  # fmt: skip
SYSTEM = Configuration(
    name="glibc", allocator=Allocator(name="glibc", title="glibc", file="/lib/libc.so.6", preload=["/lib/libc.so.6"])
)
TUNED = SYSTEM.model_copy(update={"name": "glibc:MALLOC_ARENA_MAX=2", "environment": {"MALLOC_ARENA_MAX": "2"}})
