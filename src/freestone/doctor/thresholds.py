"""From where on something is a symptom, by name: those of the research note's section 5.8, and what patients taught."""

from __future__ import annotations

from typing import Final

WORTH: Final = 0.03
"""From this share of processor time on a symptom is worth a cure."""

WASTE: Final = 0.30
"""From this share of resident memory on waste is worth a cure."""

WASTE_KIB: Final = 8 << 10
"""What is less is not: a process of any kind holds some MiB that nobody asked malloc for."""

MOVES: Final = 20
"""What was moved less often was no habit: mappings, the end of the heap."""

FEW_MOVES: Final = 5
"""Fewer are none however large: those of a few blocks that were several times as much as was ever resident."""

LEAST_MAPPED: Final = 128 << 10
"""A block of so many bytes or less has no mapping of its own in glibc, unless somebody has set the threshold."""

M_MMAP_THRESHOLD: Final = -3
"""The parameter of mallopt that sets it (malloc.h)."""

HEAP_MOVES: Final = 200
"""Likewise of threads' heaps, which open in small steps by design."""

HEAP_MOVES_S: Final = 2000
"""So many in a second hold other threads up, whatever they cost themselves."""

ANEW: Final = 1.5
"""More faults than this for each page, and pages were touched anew."""

ANEW_MORE: Final = 1000
"""What the process itself costs beside that, in faults."""

ONE_EACH: Final = 0.7
"""From so many faults for each page on, up to :data:`ANEW`, it is one for each page."""

AROUND_KIB: Final = 64
"""Of a file that lies in memory the kernel maps so much around each fault (fault_around_bytes, as it is by itself)."""

SAME_PROCESS: Final = 0.7
"""From this share of the peak on, what was looked at was the process that had it, and near its peak."""

LARGE_KIB: Final = 64 << 10
"""From this much in use on a heap is large enough for huge pages."""

DENSE: Final = 0.6
"""From this share of resident memory in use on it is dense."""

BARE: Final = 0.05
"""Below this share of huge pages it has none to speak of."""

HUGE: Final = 0.5
"""From this share on they are what it consists of."""

LOOKED_AT: Final = 100
"""From fewer calls nothing is concluded."""

SLEPT: Final = 0.01
"""Of calls, and of threads' time: below it nobody waits."""

SLEEPS: Final = 10
"""From fewer of those looked at no time is reckoned: one may have been a neighbour's."""

SLEEPS_BESIDE: Final = 2
"""From so few on it is where a tracer has seen threads sleep on locks, ``LOOKED_AT`` times or more."""

REMOTE: Final = 0.2
"""From this share of frees in other threads on it is how the program works."""

SMALL_STEPS: Final = 0.3
"""Likewise of reallocs by small steps."""

OVER_AGAIN: Final = 4
"""What was copied or cleared so many times as much as was ever in use was so again and again."""

MOST: Final = 0.5
"""Of what is idle: what says where it lies."""

FREE_BLOCKS: Final = 0.3
"""Of what is idle: from here on free blocks are a reason."""

HEAPS: Final = 3
"""With fewer heaps of threads they are not too many."""

CACHING_THREADS: Final = 4
"""With fewer threads their caches are not what holds memory."""

FREED: Final = 0.3
"""Below this share of frees a program only builds up."""

UNEVEN: Final = 3
"""Steps that differ by more are no steady growth."""

AT_END: Final = 0.8
"""What ends below this share of its peak has let go."""

LIMIT_USED: Final = 0.85
"""From this share of the limit on there is hardly room."""

PRESSURE: Final = 0.10
"""From this share of time spent waiting for memory on it is felt."""

PRESSED_USED: Final = 0.7
"""Below this share of the limit somebody else is the reason."""

FROM_MALLOC: Final = 0.5
"""From this share of resident memory on malloc serves the program after all; likewise of faults on new memory."""

REMOTE_NS: Final = 60
"""What a block costs more that is freed by another thread: a cache line that moves, and a lock."""

LEAK_POINTS: Final = 8
"""From fewer looks at the heap no growth is read."""

LASTS: Final = 0.25
"""Waste counts that lasts for this share of the run: what is gone sooner was about to be used."""

PROCESS_KIB: Final = 1500
"""What a process that does nothing has resident of its own: what each one beside the largest is taken for."""

HARDLY: Final = 0.01
"""A site with a smaller share of a call is not told."""
