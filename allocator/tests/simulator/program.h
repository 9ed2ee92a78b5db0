/* The program that is played: what it holds, and what each step does. Every block is filled with a pattern of its own, which nobody else
 * may change. */
#ifndef FREESTONE_SIMULATOR_PROGRAM_H
#define FREESTONE_SIMULATOR_PROGRAM_H

#include <malloc.h>

#include "script.h"

struct held {
    char *at; /* NULL: none of this number */
    size_t size, usable;
    bool in_hand; /* a thread is about to free or resize it, or has just done so */
};
extern struct held program_held[BLOCKS_MOST];

/* By the thread that runs: the whole step. */
void program_do(const struct step *step);

/* Blocks that may have been in the hands of those whom a fork has cut off. */
extern unsigned program_in_hand;

/* Requests so far for which there was no block. */
extern unsigned program_nulls;

/* To what a block of VERB_ALIGNED is aligned. */
size_t program_alignment(const struct step *step);

/* What the last VERB_FIGURES was told. */
extern struct mallinfo2 program_figures;

/* Chunks of the shelter that threads took when libc had called their destructors already. */
extern unsigned program_chunks_left;

/* Stops the run if the program has a block there: it would lose it. */
void program_lost(const void *at, size_t bytes, const char *how);

/* Every block is as the program left it. */
void program_check(void);

/* In the child of a fork: who was in the middle of something is no more. */
void program_fork(void);

#endif
