/* The street: the addresses that the arena hands out, and where its bookkeeping lies.
 *
 *   base                                                                             base + extent (grows)       the street's end
 *    | tags 4 | spans 64 | bitmaps 512 bytes a slice | bookkeeping | slices handed out ... | usable | nothing yet ... |
 *
 * Nothing is reserved: the street is an address and a length, chosen far from where the kernel puts mappings, at a place where the first rows
 * of each part could be mapped when the process began. Each part of it is mapped as it grows, at its place and nowhere else, so that a program may be told of a limit on its
 * address space (RLIMIT_AS, mlockall) at any time. Where somebody else has mapped memory in the way, the street goes on behind it.
 * Between two parts lies at least a page that is never mapped: what is written past the end of one does not reach the next, nor
 * do the program's blocks lie beside any bookkeeping.
 *
 * Numbers of slices count from `base`, so the bookkeeping's own slices have numbers too; they are never handed out and their
 * tag is TAG_NONE. */
#ifndef FREESTONE_STREET_H
#define FREESTONE_STREET_H

#include "os.h"
#include "span.h"

/* Chooses the street; false when the kernel refuses even its first pages. Called once, before all else here. */
bool street_open(void);

/* The first slice that can be handed out, and the number of the street's slices, those before the first included. */
uint32_t street_first(void);
uint32_t street_limit(void);

/* Slices that have descriptors: those below this number, from the first on. Relaxed: any recent value will do. */
uint32_t street_described(void);

/* Makes slices usable, from number *from on: `least` of them at least, more where memory allows, so that the kernel is seldom asked.
 * *from, the end of what is usable, moves up where somebody else's mapping is in the way. Returns how many; 0 when memory
 * or the street is out. One caller at a time. */
uint32_t street_grow(uint32_t *from, uint32_t least);

/* Makes slices usable again that were unmapped. OS_OCCUPIED when somebody else has mapped memory there since. */
enum os_answer street_map_again(uint32_t slice, uint32_t slices);

/* Whether what is usable no longer stays address space of ours all the same. */
bool street_is_reserved(void);

/* Whether the process began under a limit that leaves no room for a whole street. */
bool street_is_limited(void);

/* Whether what was mapped last was locked, and so in memory at once: no more is mapped ahead then. Relaxed: any recent value will do. */
bool street_is_locked(void);

/* The same, asked of the kernel now, if the program has not put itself under filters. By who may call street_grow. */
bool street_comes_locked(void);

/* Slices [from, to) at its end are usable no longer. By who may call street_grow. */
void street_shrink(uint32_t from, uint32_t to);

/* Memory for bookkeeping that is never returned to the kernel, zero: `bytes` at most a slice, aligned to a kibibyte. NULL when none
 * is usable: street_bookkeeping_grow is to be called ahead, since it asks the kernel, and this is called with locks held. */
void *street_bookkeeping(size_t bytes);

/* A page of it, of one that is aligned to its size. */
void *street_bookkeeping_page(void);

/* Whether what is usable runs low. Relaxed: any recent value will do. */
bool street_bookkeeping_is_low(void);

/* Makes more usable, if it runs low. False when memory is out. */
bool street_bookkeeping_grow(void);

/* Bytes of it handed out. */
size_t street_bookkeeping_bytes(void);

/* In the child of a fork, where no other thread exists. */
void street_after_fork(void);

#endif
