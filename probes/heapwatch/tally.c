#define _GNU_SOURCE
#include "tally.h"

#include <pthread.h>
#include <time.h>

enum { TALLIES = 1024, SAID_BYTES = 64 * 1024, TURNS = 4096 };

static struct tally tallies[TALLIES]; /* the last one is shared by all threads beyond: its counts are a lower bound */
static __thread struct tally *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t ending;
static _Atomic bool has_key;
static _Atomic(void (*)(void)) before_end;

static _Atomic int64_t in_use, most;
static _Atomic uint64_t asked;
static _Atomic uint32_t threads, most_threads;

static _Atomic uint32_t knob_count;
static int knobs[TALLY_KNOBS][2];

uint64_t tally_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void say(struct tally *tally) {
    const int64_t now = atomic_fetch_add_explicit(&in_use, tally->pending, memory_order_relaxed) + tally->pending;
    tally->pending = 0;
    int64_t before = atomic_load_explicit(&most, memory_order_relaxed);
    while (now > before &&
           !atomic_compare_exchange_weak_explicit(&most, &before, now, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* The thread ends. What it still frees, in destructors behind this one, gets a tally anew. */
static void thread_ends(void *value) {
    struct tally *tally = value;
    say(tally);
    void (*const look)(void) = atomic_load_explicit(&before_end, memory_order_relaxed); /* set once, a function */
    if (look != NULL)
        look();
    mine = NULL;
    atomic_fetch_sub_explicit(&threads, 1, memory_order_relaxed);
    /* release: whoever takes it next sees what is pending as it was left */
    atomic_store_explicit(&tally->used, tally->shared, memory_order_release);
}

void tally_before_end(void (*look)(void)) { atomic_store_explicit(&before_end, look, memory_order_relaxed); }

__attribute__((constructor)) static void make_key(void) {
    if (pthread_key_create(&ending, thread_ends) == 0)
        atomic_store_explicit(&has_key, true, memory_order_release); /* the key is there before it is used */
}

static struct tally *claimed(void) {
    for (uint32_t i = 0; i < TALLIES - 1; i++) {
        /* acquire: what the thread before has left pending is seen */
        if (!atomic_load_explicit(&tallies[i].used, memory_order_relaxed) &&
            !atomic_exchange_explicit(&tallies[i].used, true, memory_order_acquire)) {
            tallies[i].number = i + 1;
            return &tallies[i];
        }
    }
    tallies[TALLIES - 1].shared = true;
    tallies[TALLIES - 1].number = TALLIES;
    return &tallies[TALLIES - 1];
}

struct tally *tally_mine(void) {
    if (mine != NULL)
        return mine;
    mine = claimed();
    const uint32_t now = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    uint32_t before = atomic_load_explicit(&most_threads, memory_order_relaxed);
    while (now > before && !atomic_compare_exchange_weak_explicit(&most_threads, &before, now, memory_order_relaxed,
                                                                  memory_order_relaxed)) {
    }
    /* May ask for memory itself, which finds `mine` set. */
    if (atomic_load_explicit(&has_key, memory_order_acquire))
        pthread_setspecific(ending, mine);
    return mine;
}

static unsigned bits(uint64_t value) { return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value); }

void tally_size(struct tally *tally, size_t size) {
    unsigned row = size <= 1 ? 0 : bits(size - 1);
    if (row >= TALLY_SIZES)
        row = TALLY_SIZES - 1;
    tally_add(&tally->size_calls[row], 1);
    tally_add(&tally->size_bytes[row], size);
    tally_add(&tally->asked, size);
    atomic_fetch_add_explicit(&asked, size, memory_order_relaxed);
}

bool tally_live(struct tally *tally, int64_t bytes) {
    tally->pending += bytes;
    const bool much = tally->pending >= SAID_BYTES || tally->pending <= -SAID_BYTES;
    if (much)
        say(tally);
    return much || tally->turn % TURNS == 0;
}

int64_t tally_in_use(void) { return atomic_load_explicit(&in_use, memory_order_relaxed); }

int64_t tally_most(void) { return atomic_load_explicit(&most, memory_order_relaxed); }

uint64_t tally_asked(void) { return atomic_load_explicit(&asked, memory_order_relaxed); }

uint32_t tally_most_threads(void) { return atomic_load_explicit(&most_threads, memory_order_relaxed); }

void tally_knob(int parameter, int value) {
    const uint32_t place = atomic_fetch_add_explicit(&knob_count, 1, memory_order_relaxed);
    if (place < TALLY_KNOBS) {
        knobs[place][0] = parameter;
        knobs[place][1] = value;
    }
}

size_t tally_knobs(int (*found)[2]) {
    const uint32_t count = atomic_load_explicit(&knob_count, memory_order_relaxed);
    const size_t known = count < TALLY_KNOBS ? count : TALLY_KNOBS;
    for (size_t i = 0; i < known; i++) {
        found[i][0] = knobs[i][0];
        found[i][1] = knobs[i][1];
    }
    return known;
}

static void clear(_Atomic uint64_t *first, const _Atomic uint64_t *behind) {
    for (; first < behind; first++)
        atomic_store_explicit(first, 0, memory_order_relaxed);
}

void tally_forked(void) {
    for (uint32_t i = 0; i < TALLIES; i++) {
        struct tally *tally = &tallies[i];
        clear(&tally->mallocs, (const _Atomic uint64_t *)&tally->pending);
        if (tally != mine)
            atomic_store_explicit(&tally->used, false, memory_order_relaxed); /* its thread is not in the child */
    }
    atomic_store_explicit(&threads, 1, memory_order_relaxed);
    atomic_store_explicit(&most_threads, 1, memory_order_relaxed);
    atomic_store_explicit(&most, atomic_load_explicit(&in_use, memory_order_relaxed), memory_order_relaxed);
}

#define SUM(field) tally_add(&sum->field, atomic_load_explicit(&tally->field, memory_order_relaxed))

void tally_sum(struct tally *sum) {
    for (uint32_t i = 0; i < TALLIES; i++) {
        struct tally *tally = &tallies[i];
        if (tally->number == 0)
            continue;
        SUM(mallocs);
        SUM(callocs);
        SUM(frees);
        SUM(reallocs);
        SUM(moved);
        SUM(copied);
        SUM(small_steps);
        SUM(cleared);
        SUM(asked);
        SUM(looked);
        SUM(waited);
        SUM(waited_ns);
        SUM(sampled_frees);
        SUM(remote_frees);
        for (unsigned row = 0; row < TALLY_SIZES; row++) {
            SUM(size_calls[row]);
            SUM(size_bytes[row]);
        }
        for (unsigned row = 0; row < TALLY_LIFETIMES; row++)
            SUM(lifetimes[row]);
        sum->pending += tally->pending;
    }
}
