#include "bins.h"

enum {
    BIN_EXACT = 64, /* a bin for each length up to 64 slices, then eight bins per doubling */
    BIN_COUNT = BIN_EXACT + (24 - 6) * 8 + 8,
    BIN_WORDS = (BIN_COUNT + 63) / 64,
    FIT_SEARCH = 32, /* spans of an inexact bin looked at for the best fit */
    ALIGNED_SEARCH = 64, /* spans looked at that are as long as is asked for, and perhaps aligned so */
    KINDS = 5,
};

/* Free spans of one kind by length. */
struct bins {
    uint32_t head[BIN_COUNT];
    uint64_t occupied[BIN_WORDS];
    uint32_t spans, slices; /* in all of them */
};

static struct bins kinds[KINDS]; /* dirty, clean, huge, kept, unmapped */

static struct bins *bins_of(enum span_state state) { return &kinds[state - SPAN_DIRTY]; }
_Static_assert(SPAN_CLEAN == SPAN_DIRTY + 1 && SPAN_HUGE == SPAN_DIRTY + 2 && SPAN_KEPT == SPAN_DIRTY + 3 &&
                   SPAN_UNMAPPED == SPAN_DIRTY + 4,
               "the bins are numbered so");

static unsigned bin_of(uint32_t slices) {
    if (slices <= BIN_EXACT) {
        return slices - 1;
    }
    unsigned doubling = bits_highest(slices); /* 6 and more */
    return BIN_EXACT + (doubling - 6) * 8 + ((slices >> (doubling - 3)) & 7);
}

void bins_insert(uint32_t slice) {
    struct span *span = arena_span(slice);
    struct bins *bins = bins_of(span->state);
    unsigned bin = bin_of(span->slices);
    span->prev = 0;
    span->next = bins->head[bin];
    if (span->next != 0) {
        arena_span(span->next)->prev = slice;
    }
    bins->head[bin] = slice;
    bins->spans++;
    bins->slices += span->slices;
    bins->occupied[bin / 64] |= UINT64_C(1) << (bin % 64);
}

void bins_remove(uint32_t slice) {
    struct span *span = arena_span(slice);
    struct bins *bins = bins_of(span->state);
    unsigned bin = bin_of(span->slices);
    bins->spans--;
    bins->slices -= span->slices;
    if (span->next != 0) {
        arena_span(span->next)->prev = span->prev;
    }
    if (span->prev != 0) {
        arena_span(span->prev)->next = span->next;
    } else {
        bins->head[bin] = span->next;
        if (span->next == 0) {
            bins->occupied[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
        }
    }
}

/* The shortest of the first FIT_SEARCH spans in the bin that are at least `slices` long, or 0. */
static uint32_t bin_best(const struct bins *bins, unsigned bin, uint32_t slices) {
    uint32_t best = 0;
    uint32_t at = bins->head[bin];
    for (int seen = 0; at != 0 && seen < FIT_SEARCH; seen++) {
        uint32_t length = arena_span(at)->slices;
        if (length >= slices && (best == 0 || length < arena_span(best)->slices)) {
            best = at;
        }
        at = arena_span(at)->next;
    }
    return best;
}

/* The first bin from `bin` on that is occupied, or BIN_COUNT. */
static unsigned next_occupied(const struct bins *bins, unsigned bin) {
    for (unsigned word = bin / 64; word < BIN_WORDS; word++) {
        uint64_t occupied = bins->occupied[word] & ~(word == bin / 64 ? bits_low(bin % 64) : 0);
        if (occupied != 0) {
            return word * 64 + bits_lowest(occupied);
        }
    }
    return BIN_COUNT;
}

uint32_t bins_find(enum span_state state, uint32_t slices) {
    const struct bins *bins = bins_of(state);
    unsigned bin = bin_of(slices);
    uint32_t found = bin_best(bins, bin, slices);
    if (found == 0) { /* every span in a higher bin is long enough */
        bin = next_occupied(bins, bin + 1);
        found = bin < BIN_COUNT ? bin_best(bins, bin, slices) : 0;
    }
    return found;
}

uint32_t bins_find_aligned(enum span_state state, uint32_t slices, uint32_t alignment, uintptr_t base) {
    const struct bins *bins = bins_of(state);
    unsigned last = bin_of(slices + alignment - 1);
    int seen = 0;
    for (unsigned bin = next_occupied(bins, bin_of(slices)); bin <= last && seen < ALIGNED_SEARCH;
         bin = next_occupied(bins, bin + 1)) {
        for (uint32_t at = bins->head[bin]; at != 0 && seen < ALIGNED_SEARCH; at = arena_span(at)->next, seen++) {
            uintptr_t head = bits_round_up(base + at, alignment) - (base + at);
            if (head + slices <= arena_span(at)->slices) {
                return at;
            }
        }
    }
    return bins_find(state, slices + alignment - 1); /* long enough wherever it lies */
}

uint32_t bins_spans(enum span_state state) { return bins_of(state)->spans; }

uint32_t bins_slices(enum span_state state) { return bins_of(state)->slices; }

uint32_t bins_any(enum span_state state) {
    const struct bins *bins = bins_of(state);
    for (unsigned word = 0; word < BIN_WORDS; word++) {
        if (bins->occupied[word] != 0) {
            return bins->head[word * 64 + bits_lowest(bins->occupied[word])];
        }
    }
    return 0;
}
