/* Huge pages: which memory they are asked for in, chunk by chunk of 2 MiB, and when not at all. Beside the arena, whose lock protects all of
 * it but what says otherwise; the kernel is asked without a lock.
 *
 * A chunk of which pages are purged is taken out of the huge ones: the kernel would fill the holes again. Every two neighbours that are not
 * advised alike cost a mapping, of which a process has 65,530: what would need too many is left undone. */
#ifndef FREESTONE_HUGE_H
#define FREESTONE_HUGE_H

#include "span.h"

enum {
    CHUNK_SLICES = 32, /* a huge page: 2 MiB */
    HUGE_OBJECT = 64, /* slices of a block that has huge pages whatever the size of the program: 4 MiB */
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

/* Whether `slices` more of memory that will be written throughout are to have huge pages. */
bool huge_is_wanted(uint32_t slices);

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

/* For how many slices to ask ahead. */
uint32_t huge_ahead(void);

#endif
