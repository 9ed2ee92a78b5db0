#include "zeroed.h"

#include <stdatomic.h>
#include <stdint.h>

#include "bits.h"
#include "keeper.h"
#include "options.h"
#include "os.h"

enum {
    SAMPLES = 8,       /* pages of a block that are left alone, and by which it is judged later */
    IN_A_ROW = 2,      /* blocks written from end to end, and the next is brought in */
    DEARER = 8,        /* ... so many times as many after one that was brought in for nothing */
    PAGES_LEAST = 64,  /* of a block, so that the samples are few of them */
    LEAST_BITS = 18,   /* 2 to that is ZEROED_LEAST */
    ORDERS = 5,        /* sizes, by powers of two, up to ZEROED_MOST */
    WORD_BITS = 4,     /* blocks begin at multiples of 16 */
    ADDRESS_BITS = 48, /* ... that fit here, or nothing is done */
    WRITTEN_MOST = 127,
    NEEDED_MOST = 127,
};

/* What was learned of the blocks of an order, in one word: where the last one begins, how many in a row were written, how many it
 * takes, whether the last one was brought in. The bytes of the last one are in a word of its own.
 *
 * relaxed, both: a hint. Threads that come at once lose each other's counts, and a word that does not belong to the other has other
 * pages looked at; what that can come to is a block brought in, or not. */
struct learned {
    _Atomic(uint64_t) word;
    _Atomic(size_t) bytes;
};

static struct learned learned[ORDERS];

static uint64_t pack(uintptr_t block, unsigned written, unsigned needed, bool brought) {
    return (uint64_t)(block >> WORD_BITS) << 15 | (uint64_t)written << 8 | (uint64_t)needed << 1 | brought;
}

/* One page in the middle of each of eight parts of a block. */
static uintptr_t sample(uintptr_t block, size_t bytes, unsigned number) {
    return bits_round_down(block + bytes / SAMPLES * number + bytes / SAMPLES / 2, os_page_bytes());
}

/* From end to end, as far as samples tell. */
static bool was_written(uintptr_t block, size_t bytes) {
    void *pages[SAMPLES];
    for (unsigned i = 0; i < SAMPLES; i++) {
        pages[i] = (void *)sample(block, bytes, i); /* NOLINT(performance-no-int-to-ptr): asked about, not read */
    }
    return os_are_written(pages, SAMPLES);
}

/* Of a block that was brought in: its memory went back to the kernel since. */
static bool is_gone(uintptr_t block) {
    void *first = (void *)bits_round_down(block, os_page_bytes()); /* NOLINT(performance-no-int-to-ptr): likewise */
    return !os_are_written(&first, 1);
}

/* All of it but the samples. */
static void bring_in(uintptr_t block, size_t bytes) {
    size_t page = os_page_bytes();
    uintptr_t from = bits_round_down(block, page);
    uintptr_t end = bits_round_up(block + bytes, page);
    for (unsigned i = 0; i <= SAMPLES; i++) {
        uintptr_t to = i < SAMPLES ? sample(block, bytes, i) : end;
        if (to > from) {
            os_populate((void *)from, to - from); /* NOLINT(performance-no-int-to-ptr): pages of the block */
        }
        from = to + page;
    }
}

void zeroed_fresh(void *block, size_t bytes) {
    uintptr_t at = (uintptr_t)block;
    if (bytes < ZEROED_LEAST || bytes > ZEROED_MOST || bytes < PAGES_LEAST * os_page_bytes() ||
        at >> ADDRESS_BITS != 0 || !keeper_may_ask()) {
        return;
    }
    struct learned *of = &learned[bits_highest(bytes) - LEAST_BITS];
    uint64_t word = atomic_load_explicit(&of->word, memory_order_relaxed);
    uintptr_t last = (uintptr_t)(word >> 15) << WORD_BITS;
    unsigned written = word >> 8 & WRITTEN_MOST;
    unsigned needed = word == 0 ? IN_A_ROW : word >> 1 & NEEDED_MOST;
    bool brought = word & 1;
    if (last != 0) {
        if (was_written(last, atomic_load_explicit(&of->bytes, memory_order_relaxed))) {
            written = (unsigned)bits_min(written + 1, WRITTEN_MOST);
        } else if (!brought) {
            written = 0;
        } else if (!is_gone(last)) {
            written = 0;
            needed = (unsigned)bits_min((size_t)needed * DEARER, NEEDED_MOST);
        }
    }
    brought = written >= needed;
    atomic_store_explicit(&of->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&of->word, pack(at, written, needed, brought), memory_order_relaxed);
    if (brought) {
        bring_in(at, bytes);
    }
}
