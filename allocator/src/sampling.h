/* Sampling: one allocation in so many, by chance, comes to the slow path although a magazine has blocks. No instruction of the fast path is
 * for it: a magazine ends early, at a block chosen when it is loaded (magazine_plant). Whoever pops as far finds it empty, is served
 * elsewhere, and the rest of the magazine is there again. What the slow path serves without such an end is sampled by chance, one by one.
 *
 * A thread that takes what it has just freed comes to no early end, and loads no magazine in which there could be another. So the keeper
 * summons one thread in every few milliseconds (borrow.c): its loaded magazines are withheld, so that whatever it does next comes to the
 * slow path, which gives them back. An allocation is sampled then; behind a free, the next that comes to the slow path.
 *
 * Where more than one in a hundred is to be sampled, no allocation takes the fast path, and each is drawn. */
#ifndef FREESTONE_SAMPLING_H
#define FREESTONE_SAMPLING_H

#include <stdatomic.h>

#include "tag.h"

struct cache_class;
struct thread_cache;

/* What is withheld from a thread: by who has borrowed its cache, until the thread is inside. */
struct summons {
    _Atomic uint32_t out; /* 1 while anything is; relaxed: the handshake of borrow.c orders it */
    bool answered; /* the thread has come, and no allocation was sampled for it yet, */
    uint8_t frees; /* but so many blocks freed */
    void **withheld[SLOT_COUNT]; /* tops of loaded magazines, NULL for none */
};

/* From now on: before, nothing is sampled. */
void sampling_arm(void);

/* Whether the allocation that the calling thread is about to make is one of them; `class` may be CLASS_COUNT: none. Not inside (gate.h). */
bool sampling_is_due(unsigned class);

/* Indexed by n: the chance that one of the next n allocations is sampled, in units of 2^-64. All
 * are 0 before sampling_arm. */
extern uint64_t sampling_within[] INTERNAL;

/* Plants an early end in the loaded magazine if the number that was drawn selects one; sampling_lift removes it. Called
 * by slot_load and slot_unload. */
void sampling_sow(struct cache_class *magazines, void **top, uint64_t drawn);
void sampling_lift(void **top);

/* Whether every allocation is drawn. */
bool sampling_is_dense(void);

/* Room for summons; NULL when memory is out, or nobody is summoned. */
struct summons *sampling_summons(void);

/* Milliseconds from one summons to the next; 0 for never. */
uint32_t sampling_interval(void);

/* The thread is inside with its cache, or it is gone and the caller empties what it has left: what was withheld is there again. */
void sampling_answer(struct thread_cache *cache);

/* Threads that have come since the process began; relaxed, any recent number will do. */
uint32_t sampling_answers(void);

/* The thread has come with a free, and is inside: the slot's magazine is withheld again, for the allocation that takes the block. So that a
 * second free of it comes to the slow path too, and is seen. */
void sampling_wait_on(struct thread_cache *cache, unsigned slot);

#endif
