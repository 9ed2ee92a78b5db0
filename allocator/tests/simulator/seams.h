/* What the auditor sees of the library's private state; each is defined by text that variants.toml adds to a source. */
#ifndef FREESTONE_SIMULATOR_SEAMS_H
#define FREESTONE_SIMULATOR_SEAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock.h"

/* True while somebody holds it. */
bool seam_arena_is_locked(void);

/* The first of the library's locks, but those of heaps, that somebody holds; NULL when all are free. */
const char *seam_lock_of_arena(void);
const char *seam_lock_of_street(void);
const char *seam_lock_of_large(void);
const char *seam_lock_of_choice(void);
const char *seam_lock_of_borrow(void);

/* Whether a free span is in its bin, and how many the bins of its kind have. */
bool seam_bins_have(uint32_t slice);
size_t seam_bins_count(unsigned state);

uint32_t seam_ages_youngest(void);

/* Places kept in the table of mappings for some to come, and whether it has memory. */
size_t seam_large_reserved(void);
bool seam_large_has_table(void);

/* Chunks that the shelter knows, and whether somebody takes what is parked. */
size_t seam_shelter_chunks(void);
bool seam_shelter_is_taking(void);

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

/* More is dirty than may be, or for so many milliseconds longer. */
bool seam_purge_is_overdue(uint32_t milliseconds);

/* Bookkeeping handed out so far. */
char *seam_bookkeeping(size_t *bytes);

/* Pieces being purged, and threads asleep for that. */
uint32_t seam_purge_pieces(void);

#endif
