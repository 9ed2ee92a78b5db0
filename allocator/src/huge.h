/* Huge pages: which memory they are asked for in, chunk by chunk of 2 MiB, and when not at all. Beside the arena, whose lock protects all of
 * it but what says otherwise; the kernel is asked without a lock.
 *
 * A chunk of which pages are purged is taken out of the huge ones: the kernel would fill the holes again. Every two neighbours that are not
 * advised alike cost a mapping, of which a process has 65,530: what would need too many is left undone.
 *
 * A huge page makes all of a chunk resident, written or not. Memory has them only for a use (arena.h) that was seen to be written densely, on
 * small pages: the kernel tells which of those were written. Each that was dense is credit for some more with huge pages; then one has small
 * pages again, and is looked at. One that was sparse takes all credit away, and the next 15 to 63 dense ones in a row earn none. */
#ifndef FREESTONE_HUGE_H
#define FREESTONE_HUGE_H

#include "span.h"

enum {
    CHUNK_SLICES = 32, /* a huge page: 2 MiB */
    HUGE_OBJECT = 64, /* slices of a block that may have huge pages whatever the size of the program: 4 MiB */
};

enum advice { ADVICE_NONE, ADVICE_HUGE, ADVICE_PLAIN };

/* A run of chunks about which the kernel is to be told once no lock is held; none when `slices` is 0. */
struct huge_request {
    uint32_t slice, slices;
    enum advice advice;
};
void huge_tell(struct huge_request request);

/* The first slice of the chunk that `slice` lies in; it may lie before the first that is handed out. */
uint32_t huge_chunk(uint32_t slice);

/* Whether `slices` more could have huge pages, whatever their use is: not while the clock speaks against it, and no slabs of a small program. */
bool huge_is_available(uint32_t slices);

/* Whether `slices` more for that use are to have huge pages; they are paid for by huge_spend. */
bool huge_is_wanted(uint32_t use, uint32_t slices);
void huge_spend(uint32_t use, uint32_t slices);

/* Looks how many pages there were written, by a bounded number of system calls: a part of the whole if it is long. Without the lock. */
enum huge_density { SIGHT_NONE, SIGHT_SPARSE, SIGHT_DENSE };
enum { HUGE_ENDS = 256 };
struct huge_sight {
    enum huge_density density;
    uint32_t written; /* HUGE_ENDS-ths of it, up to its last page that is there; all if that is not known */
};
struct huge_sight huge_look(const void *at, size_t bytes);

/* Remembers that look at `slices` of that use. */
void huge_saw(uint32_t use, uint32_t slices, struct huge_sight sight);

/* How many of `slices` for that use stay unwritten, at their end, if they are written as far as the last that was looked at. 0 for a use that was not
 * seen sparse lately, and if they are few. */
uint32_t huge_unwritten(uint32_t use, uint32_t slices);

/* A slab has small pages, all fresh: one of its use at a time is looked at, some slabs later, when it should be full, unless it is gone. The slab
 * for which that is due now, or 0: to be asked for each new slab of the use. */
void huge_watch_slab(uint32_t use, uint32_t slab);
uint32_t huge_slab_to_look_at(uint32_t use);
void huge_slab_is_gone(uint32_t use, uint32_t slab);

/* Asks for huge pages in the chunks that begin in the span, as far as memory is usable. */
struct huge_request huge_ask(uint32_t slice, uint32_t slices, uint32_t usable);

/* A chunk of which little is used, and that nobody has asked for, has small pages also where the kernel gives huge ones unasked. */
struct huge_request huge_keep_small(uint32_t chunk);

/* Takes the chunks that lie partly or wholly in [slice, end) out of the huge ones. */
struct huge_request huge_make_plain(uint32_t slice, uint32_t end);

/* What is unmapped has no advice any more. */
void huge_forget(uint32_t slice, uint32_t end);

/* True where huge pages were asked for in the chunk that begins there. */
bool huge_is_huge(uint32_t chunk);

/* No huge pages for a while: one took too long. */
void huge_rest(void);

/* Touches a chunk, which is zero and stays so. True when that took too long. Without the lock: it takes a fraction of a
 * millisecond at best. */
bool huge_is_slow(void *chunk);

/* Looks whether the chunk that was tried is a huge page, unless one was seen since the last slow one. Without the lock. */
void huge_look_if_given(const void *chunk);

/* Whether free memory is purged as a block of that use takes fresh memory: its faults are few, since huge pages come quickly, or since little of its
 * like was written. */
bool huge_gives_way(uint32_t use);

/* For how many slices to ask ahead. */
uint32_t huge_ahead(void);

#endif
