/* Guarded blocks: a few of a process's, each on pages of its own between pages that nobody may touch, at the one end or the other by chance.
 * What is written or read outside, or after the block was freed, faults there and then; guarded_report.c says what it was.
 *
 *   [ untouchable | page, page, ... | untouchable | page, ... ]     a place for each block; chosen at random, long used last
 *
 * There are few places: who finds none is served like everybody else, and counted. Who calls is inside (gate.h), and has noted his callers
 * before. */
#ifndef FREESTONE_GUARDED_H
#define FREESTONE_GUARDED_H

#include "trace.h"

/* Opens the pool; false when the kernel refuses: then nothing is guarded. */
bool guarded_open(void);

/* Larger blocks are never guarded: each would keep as many addresses for ever. */
enum { GUARDED_MOST = 1024 * 1024 };

/* Whether one more may be served just now: so many at once, and so many a second, however many are asked for; those that are not are counted. */
bool guarded_may_take(void);

/* A block of `size` bytes that reads as zero, or NULL. */
void *guarded_take(size_t size, size_t alignment, const struct trace *taken);

/* The block that the program would have been given, kept until the guarded one is freed; or NULL. So the others come in the order in which they come
 * where nothing is guarded: one that is left out shifts all that follow, and a program that takes and frees in a fixed order has what it
 * walks along scattered from then on (trees: twice the time). By who has taken the block, before anybody else knows of it. */
void guarded_stand_in(const void *block, void *instead);

/* Whether it lies in the pool. No lock; true also of what was freed. */
bool guarded_owns(const void *pointer);

/* Frees the block, whose pointer guarded_owns; reports what is wrong. `size`: what the caller says, SIZE_UNTOLD if nothing. `parked`: the
 * library itself has overwritten its first bytes. Returns the block that stood for it, which is the caller's to free, or NULL. */
void *guarded_give(void *block, size_t size, const struct trace *given, bool parked);

/* Freed by who is not inside, who parks it: guarded_give comes later. False, and reported, when it is parked already, or freed, and the process goes
 * on. */
bool guarded_park(void *block, const struct trace *given);

/* Bytes of a block in use, false where none starts there. No lock. */
bool guarded_size(const void *block, size_t *size);

/* Blocks served so far, and those that could not be; bytes of the pages in use. */
void guarded_figures(size_t *served, size_t *unguarded, size_t *in_use);

/* Memory is out, or a program asks for what is not used: addresses of large blocks that were freed. */
void guarded_reclaim(void);

/* In the child of a fork, where no other thread exists. */
void guarded_after_fork(void);

#endif
