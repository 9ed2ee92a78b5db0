"""The text of the page on how libfreestone scales. Pure."""

from __future__ import annotations

from scale import page
from scale.page import GROWING_NS, HEAPS, INSTRUCTION_NS, PATTERNS, THREADS, Story

MANY = THREADS[-1]


def text(story: Story) -> str:
    """The page."""
    patterns = "\n".join(f"- **{name}**: {what}." for name, what in PATTERNS.items())
    return f"""# How libfreestone scales, by counting

Written by `make scale` on {story.day}; do not edit. {story.machine}.

Curves to {MANY} threads need {MANY} CPUs. What is counted here needs none: {MANY} threads take turns of 4 steps, one at
a time, in an order by chance that is the same each time, and a build of the library counts
([counting.h](../allocator/tests/counting/counting.h)). The product has nothing of that in it. The counts are bounds for
what threads on CPUs of their own would do to each other; they are no times.

{patterns}

Nine of ten blocks have up to 512 bytes, one in a thousand 64 to 256 KiB. A thread has about 500 live blocks. Each makes
100,000 calls to warm up; then 20,000 of each of {MANY} threads are counted, or more of fewer. The clock is the
program's: 100 ns a call. There is no keeper, who goes by the machine's clock, so calls purge what it would. `heaps=N`
is the most heaps there may be: a machine of 64 CPUs has 64 for all sizes. Hot paths have no locked instruction
([the table](design/allocator.md#the-hot-path)). Not counted: the lines of the program's blocks, and, one by one, the
words that a lock protects.

## Per million calls of malloc and free

At {THREADS[0]} · {THREADS[1]} · {THREADS[2]} threads. *Slow paths*: a thread went past its loaded magazines. *Handed
over*: a lock was taken by another thread than the last; its line and what it protects must travel. *Lines*: a cache
line had to travel for an atomic that is no lock's. *System calls*: about memory.

{page.counts(story)}

## What grows with threads

On {HEAPS[-1]} heaps, from 1 thread to {MANY}, where it grows most:

{page.growth(story)}

On fewer heaps than threads the heaps' locks are handed over all the time: `heaps=1` is for programs that want the least
memory.

## Whose lines travel

On {HEAPS[-1]} heaps with {MANY} threads, per million calls:

{page.places(story)}

- `&registry.room`, what all magazines together may hold, changes when those of a thread may hold an eighth more or less
  than it has told before. It is read every 32 exchanges, or where it decides how large a magazine may be.
- `tags`, and what tag.h reads, are those of slabs that came or went; `ages`, `spans` and `purge` are sums over all
  spans.
- What every slow path reads does not travel: `&registry.orphans` lies beside what changes with a thread's birth or end
  only. `&keeper_wished` is never written with `keeper=0`, as here; where the keeper lives, a wish stays until its next
  look, a third of a second later. Nor do the counts of threads of all heaps, which a thread reads every 256 exchanges.

## How long threads would wait

A simulator plays what each thread was counted to do, all at once, each on a CPU of its own
([contention.py](../tools/scale/contention.py)). Assumed: a call takes 5 ns (a program that does nothing else: the
worst there is) or 100 ns (some work between); a lock is held for {INSTRUCTION_NS:g} ns an instruction, and 200 ns
longer (lines from a CPU nearby) or 1,000 ns (from afar, some ten lines one after the other) when it is handed over;
locks under which the kernel is asked, {GROWING_NS:,.0f} ns. Who waits neither sleeps nor is woken. Instructions while a
lock is held, counted by callgrind, eight threads on eight heaps:

{page.held(story)}

The share of all threads' time that is waiting, and the busiest lock with the share of the time in which it is held, by
threads, time of a call, time of a handover:

{page.waiting(story)}

Where the arena's lock is the busiest, more heaps do not help: blocks of 64 KiB and more, and slabs, go through it.

## Calls beside many live blocks

Instructions of a call, the mean, and in brackets the longest of them: 2,000 calls with small blocks (16 bytes), 50 with
large ones, 20 with those that are mappings. The processor traps after each instruction, so this is the product on the
kernel as it is; cache misses and the kernel's own work are not in it. Blocks that are resized and freed lie all over.

{page.depth(story.live)}

{page.flat(story.live)}

## Calls beside many addresses

Large blocks, of each of which one small page is written, and 10,000 blocks of 16 bytes:

{page.depth(story.spread)}

{page.flat(story.spread)}

A block above 128 MiB is a mapping of its own, with a row of 48 bytes in a tree by address: to find, add or remove one
passes about twice the binary logarithm of their number, in whatever order they come and go
([mappings.h](../allocator/src/mappings.h)).
"""
