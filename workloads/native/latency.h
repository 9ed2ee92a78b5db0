/* How long every single call of malloc and of free takes: a cheap clock on both sides of it, and a histogram of nanoseconds
 * in memory that was mapped before.
 *
 * malloc is told twice: alone, and with the first write of the block's first word. An allocator that keeps a link or a
 * header in a free block has touched it inside the call, one that does not leaves that to the program: alone the first
 * pays for a page or a cache line that the second is let off, with the write each pays once. There is one look between
 * the two, so that both are of the same call; its floor is taken off as well.
 *
 * The clock is the processor's own counter where it runs at one speed (the TSC of x86-64 that says so, the virtual
 * counter of aarch64), else CLOCK_MONOTONIC. Two looks at it with nothing between take time as well: the mean of many
 * is taken off every call. */
#pragma once

#include "allocator.h"
#include "block.h"
#include "moment.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum latency_of { LATENCY_NOTHING, LATENCY_MALLOC, LATENCY_MALLOC_AND_WRITE, LATENCY_FREE, LATENCY_KINDS };

/* Whole nanoseconds below 32 have a bucket each, then every doubling has 32: a bucket is 3 % wide at most. The last one
 * holds whatever took 2^40 ns, 18 minutes, and more. */
enum { LATENCY_STEPS = 32, LATENCY_STEPS_LOG = 5, LATENCY_MOST_LOG = 40 };
enum { LATENCY_BUCKETS = (LATENCY_MOST_LOG - LATENCY_STEPS_LOG + 1) * LATENCY_STEPS };

struct latency_course {
    uint64_t calls[LATENCY_BUCKETS];
    uint64_t longest_ns;
};

/* One for each thread; in memory of the harness. */
struct latency {
    struct latency_course of[LATENCY_KINDS];
};

struct latency_clock {
    bool is_counter;
    double ns_per_tick;
    double floor_ticks;
    int64_t step_ticks; /* by which it goes up: what lies below is not told apart */
};
extern struct latency_clock latency_clock;

/* Find the clock, its speed and its floor; note how long nothing takes, which is what the machine itself does to a
 * program that calls nobody. Before anything else here. */
void latency_open(struct latency *of_nothing);

/* In order with what stands before and after it: a call is timed from its first instruction to its last. */
ALWAYS_INLINE int64_t latency_ticks(void) {
#if defined(__x86_64__)
    if (latency_clock.is_counter) {
        _mm_lfence();
        const uint64_t ticks = __rdtsc();
        _mm_lfence();
        return (int64_t)ticks;
    }
#elif defined(__aarch64__)
    if (latency_clock.is_counter) {
        uint64_t ticks;
        __asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(ticks) : : "memory");
        return (int64_t)ticks;
    }
#endif
    return (int64_t)moment_ns();
}

ALWAYS_INLINE size_t latency_bucket(uint64_t ns) {
    if (ns < LATENCY_STEPS)
        return (size_t)ns;
    const unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - LATENCY_STEPS_LOG;
    const size_t bucket = (size_t)shift * LATENCY_STEPS + (size_t)(ns >> shift);
    return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

/* Of what lies between two looks, or of what lies between the first and the last of three: `looks` is 1 or 2. */
ALWAYS_INLINE void latency_note(struct latency_course *course, int64_t from, int64_t to, double looks) {
    const double ticks = (double)(to - from) - looks * latency_clock.floor_ticks;
    const uint64_t ns = ticks <= 0 ? 0 : (uint64_t)(ticks * latency_clock.ns_per_tick);
    course->calls[latency_bucket(ns)]++;
    if (UNLIKELY(ns > course->longest_ns))
        course->longest_ns = ns;
}

/* Where the calls of this thread are noted; of all that come after it. */
void latency_into(struct latency *latency);

/* malloc and free, every call timed: an allocator like the others. A block has room for a word (BLOCK_LEAST). */
extern _Thread_local struct latency *latency_mine;

ALWAYS_INLINE void *latency_malloc(size_t bytes) {
    const int64_t from = latency_ticks();
    void *block = malloc(bytes);
    const int64_t to = latency_ticks();
    if (UNLIKELY(block == NULL))
        return NULL;
    block_put(block, 0);
    const int64_t written = latency_ticks();
    latency_note(&latency_mine->of[LATENCY_MALLOC], from, to, 1);
    latency_note(&latency_mine->of[LATENCY_MALLOC_AND_WRITE], from, written, 2);
    return block;
}

ALWAYS_INLINE void latency_free(void *block) {
    const int64_t from = latency_ticks();
    free(block);
    const int64_t to = latency_ticks();
    latency_note(&latency_mine->of[LATENCY_FREE], from, to, 1);
}

__attribute__((unused)) static const struct allocator timed = {latency_malloc, calloc,     realloc,
                                                               latency_free,   block_lost, block_not_zero};

void latency_add(struct latency *to, const struct latency *more);
uint64_t latency_calls(const struct latency_course *course);

/* Add to the line: clock_floor_ns and clock_step_ns; of each kind its median, 99.9 %, 99.99 % and longest in nanoseconds, as
 * malloc_ns and malloc_and_write_ns, and its calls by bucket, as malloc_calls. */
void latency_report(const struct latency *latency);
