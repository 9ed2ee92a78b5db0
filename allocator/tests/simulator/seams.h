/* What the auditor sees of the library's private state; each is defined by text that variants.toml adds to a source. */
#ifndef FREESTONE_SIMULATOR_SEAMS_H
#define FREESTONE_SIMULATOR_SEAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock.h"
#include "magazine.h"
#include "thread_cache.h"

/* True while somebody holds it. */
bool seam_arena_is_locked(void);

/* The first of the library's locks, but those of heaps, that somebody holds; NULL when all are free. */
const char *seam_lock_of_arena(void);
const char *seam_lock_of_street(void);
const char *seam_lock_of_large(void);
const char *seam_lock_of_choice(void);
const char *seam_lock_of_borrow(void);

const char *seam_option_name(unsigned option);

/* Whether a free span is in its bin, and how many the bins of its kind have. */
bool seam_bins_have(uint32_t slice);
size_t seam_bins_count(unsigned state);

/* Each span lies in the bin of its length, knows its neighbours, and is counted; and exactly those bins are marked that have some. */
bool seam_bins_are_whole(unsigned state);

uint32_t seam_ages_youngest(void);

/* Edges between chunks that are advised alike and others, as they are counted; as they are found, and how many there may be. */
uint32_t seam_huge_edges(uint32_t *found, uint32_t *most);

/* Places kept in the table of mappings for some to come, and whether it has memory. */
size_t seam_large_reserved(void);
bool seam_large_has_table(void);

/* Chunks that the shelter knows, and whether somebody takes what is parked. */
size_t seam_shelter_chunks(void);
bool seam_shelter_is_taking(void);

/* Chunks as the shelter counts them, and places that were ever used. */
size_t seam_shelter_enlisted(void);
size_t seam_shelter_places(void);

size_t seam_depot_class_bytes(void);
size_t seam_depot_heap_bytes(size_t slab_bytes);

/* A heap's depots have so much from now on: as they grow, and not later, since slabs may go before they do. */
void seam_depots_grew(size_t bytes, size_t slab_bytes);

/* Slices that a span may have for a block of so many bytes. */
uint32_t seam_large_slices_most(size_t bytes);

/* What the counts of the shelter's chunks come to; and the variable of each thread that says whether it has one. */
size_t seam_shelter_live(void);
const void *seam_shelter_own(void);

/* First slice that is not mapped. */
uint32_t seam_arena_usable(void);

/* How many looks of the keeper's slabs rest from one purge to the next, about. */
uint32_t seam_patience(void);

/* More is dirty than may be, or for so many milliseconds longer. */
bool seam_purge_is_overdue(uint32_t milliseconds);

/* Bookkeeping handed out so far. */
char *seam_bookkeeping(size_t *bytes);

/* ... of it in pieces, and whole pages, which magazines are made of. */
size_t seam_bookkeeping_pieces(void);
size_t seam_bookkeeping_pages(void);

/* Calls `find` for each magazine of the pool's, purged ones too; and whether its lists and counts are right. */
void seam_pool_each(void (*find)(const union magazine *magazine, const char *where));
bool seam_pool_is_whole(void);
const char *seam_lock_of_pool(void);

/* Pieces being purged, and threads asleep for that. */
uint32_t seam_purge_pieces(void);
extern uint32_t seam_purges_begun; /* pieces so far */
uint32_t seam_purge_awaiting(void);

/* What the fast paths of a thread see: that of the running one, where others' are told by fiber_local; and the cache of who has none. */
const struct thread_view *seam_view(void);
const struct thread_cache *seam_no_cache(void);

/* Threads counted as at work in this epoch. */
uint32_t seam_workers(void);

/* Bounds and steps as variants.toml has made them. */
size_t seam_given_bytes(void);
size_t seam_wish_bytes(void);
size_t seam_keeper_bytes(void);
size_t seam_budget_step(void);
bool seam_budget_busy(void);
uint32_t seam_keeper_slices(void);
uint32_t seam_retreat_slices(void);
uint32_t seam_settle_slices(void);
uint32_t seam_sweep_slots(void);
uint8_t seam_sweep_excess(void);
bool seam_has_too_much(const struct thread_cache *cache);
uint32_t seam_drain_magazines(void);
unsigned seam_heaps_most(void);

/* So many events ago, when it had last settled then and it was `now`, the heap had to settle. */
bool seam_settles(const struct heap *heap, uint32_t events, uint64_t settled, uint64_t now);

/* A keeper was wished for, and at that time nothing was in the way. */
bool seam_keeper_is_due(uint64_t milliseconds);

#endif
