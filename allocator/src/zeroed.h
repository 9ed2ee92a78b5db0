/* Fresh zeroed memory whose pages are brought in before the program comes to them.
 *
 * A program that reads such a page before it writes it faults twice: the kernel shows it a page of zeros that all have in common,
 * and copies that when it is written. Brought in at once, all pages of a block cost one call. But a table that stays sparse would
 * be memory then that nobody asked for; so this is done only for blocks whose two predecessors of about their size were written
 * from end to end, which the kernel is asked about, and a block that was brought in and then not written costs eight such proofs.
 *
 * Nothing is asked where a filter might punish it. */
#ifndef FREESTONE_ZEROED_H
#define FREESTONE_ZEROED_H

#include <stddef.h>

enum {
    ZEROED_LEAST = 256 * 1024,
    ZEROED_MOST = 4 * 1024 * 1024, /* larger ones are touched by many threads, each on its node of memory */
};

/* A large block of fresh memory, zero as the kernel gives it, is about to be handed out by calloc. Any thread, without locks. */
void zeroed_fresh(void *block, size_t bytes);

#endif
