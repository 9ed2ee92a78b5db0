#define _GNU_SOURCE
#include "tally.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { SAID_BYTES = 64 * 1024, TURNS = 4096 };

static __thread struct tally *mine __attribute__((tls_model("initial-exec")));
__thread volatile int tally_depth;
static pthread_key_t ending;
static _Atomic bool has_key;
static _Atomic(void (*)(void)) before_end;

uint64_t tally_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void say(struct tally *tally) {
    const int64_t now = atomic_fetch_add_explicit(&state.in_use, tally->pending, memory_order_relaxed) + tally->pending;
    tally->pending = 0;
    int64_t before = atomic_load_explicit(&state.most, memory_order_relaxed);
    while (now > before && !atomic_compare_exchange_weak_explicit(&state.most, &before, now, memory_order_relaxed,
                                                                  memory_order_relaxed)) {
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
    atomic_fetch_sub_explicit(&state.threads, 1, memory_order_relaxed);
    /* release: whoever takes it next sees what is pending as it was left */
    atomic_store_explicit(&tally->used, tally->shared, memory_order_release);
}

void tally_before_end(void (*look)(void)) { atomic_store_explicit(&before_end, look, memory_order_relaxed); }

__attribute__((constructor)) static void make_key(void) {
    if (pthread_key_create(&ending, thread_ends) == 0)
        atomic_store_explicit(&has_key, true, memory_order_release); /* the key is there before it is used */
}

/* `claimed` only grows; relaxed, for whoever reads it finds zeros in a tally that is not written yet. */
static struct tally *numbered(uint32_t place) {
    uint32_t before = atomic_load_explicit(&state.claimed, memory_order_relaxed);
    while (before <= place && !atomic_compare_exchange_weak_explicit(&state.claimed, &before, place + 1,
                                                                     memory_order_relaxed, memory_order_relaxed)) {
    }
    state.tallies[place].number = place + 1;
    return &state.tallies[place];
}

/* A place in the file for a tally that was never used. One thread at a time is at it, or what another has begun to count
 * would be written over; who is interrupted here by a signal whose handler asks for memory does without. */
static bool has_place(uint32_t place) {
    static _Atomic bool reserving;
    /* acquire and release: who has it sees how many were claimed by those before */
    for (unsigned i = 0; atomic_exchange_explicit(&reserving, true, memory_order_acquire); i++) {
        if (i == 1000)
            return false;
        sched_yield();
    }
    const bool known = place < atomic_load_explicit(&state.claimed, memory_order_relaxed);
    /* malloc is no place where a thread may be cancelled: its caller holds locks. */
    int cancellable;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellable);
    const bool there = known || state_reserve(place);
    pthread_setcancelstate(cancellable, NULL);
    if (there && !known)
        (void)numbered(place);
    atomic_store_explicit(&reserving, false, memory_order_release);
    return there;
}

/* The first tally is nobody's own: it is shared by the threads for which there is none. */
static struct tally *claimed(void) {
    for (uint32_t i = 1; i < STATE_TALLIES; i++) {
        if (i >= atomic_load_explicit(&state.claimed, memory_order_relaxed) && !has_place(i))
            break;
        /* acquire: what the thread before has left pending is seen */
        if (!atomic_load_explicit(&state.tallies[i].used, memory_order_relaxed) &&
            !atomic_exchange_explicit(&state.tallies[i].used, true, memory_order_acquire))
            return numbered(i);
    }
    state.tallies[0].shared = true;
    return numbered(0);
}

struct tally *tally_mine(void) {
    if (mine != NULL)
        return mine;
    mine = claimed();
    const uint32_t now = atomic_fetch_add_explicit(&state.threads, 1, memory_order_relaxed) + 1;
    uint32_t before = atomic_load_explicit(&state.most_threads, memory_order_relaxed);
    while (now > before && !atomic_compare_exchange_weak_explicit(&state.most_threads, &before, now,
                                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    /* May ask for memory itself, which finds `mine` set. */
    if (atomic_load_explicit(&has_key, memory_order_acquire))
        pthread_setspecific(ending, mine);
    return mine;
}

static unsigned bits(uint64_t value) { return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value); }

void tally_size(struct tally *tally, size_t size) {
    unsigned row = size <= 1 ? 0 : bits(size - 1);
    if (row >= STATE_SIZES)
        row = STATE_SIZES - 1;
    tally_add(&tally->size_calls[row], 1);
    tally_add(&tally->size_bytes[row], size);
    tally_add(&tally->asked, size);
    atomic_fetch_add_explicit(&state.asked, size, memory_order_relaxed);
}

bool tally_live(struct tally *tally, int64_t bytes) {
    tally->pending += bytes;
    const bool much = tally->pending >= SAID_BYTES || tally->pending <= -SAID_BYTES;
    if (much)
        say(tally);
    return much || tally->turn % TURNS == 0;
}

int64_t tally_in_use(void) { return atomic_load_explicit(&state.in_use, memory_order_relaxed); }

uint64_t tally_asked(void) { return atomic_load_explicit(&state.asked, memory_order_relaxed); }

void tally_knob(int parameter, int value) {
    const uint32_t place = atomic_fetch_add_explicit(&state.knob_count, 1, memory_order_relaxed);
    if (place < STATE_KNOBS) {
        state.knobs[place][0] = parameter;
        state.knobs[place][1] = value;
    }
}

int64_t tally_pending(void) {
    int64_t pending = 0;
    for (uint32_t i = 0; i < atomic_load_explicit(&state.claimed, memory_order_relaxed); i++)
        pending += state.tallies[i].pending;
    return pending;
}

static void clear(_Atomic uint64_t *first, const _Atomic uint64_t *behind) {
    for (; first < behind; first++)
        atomic_store_explicit(first, 0, memory_order_relaxed);
}

void tally_forked(void) {
    for (uint32_t i = 0; i < atomic_load_explicit(&state.claimed, memory_order_relaxed); i++) {
        struct tally *tally = &state.tallies[i];
        clear(&tally->mallocs, (const _Atomic uint64_t *)&tally->pending);
        if (tally != mine)
            atomic_store_explicit(&tally->used, false, memory_order_relaxed); /* its thread is not in the child */
    }
    atomic_store_explicit(&state.asked, 0, memory_order_relaxed);
    atomic_store_explicit(&state.threads, 1, memory_order_relaxed);
    atomic_store_explicit(&state.most_threads, 1, memory_order_relaxed);
    atomic_store_explicit(&state.most, tally_in_use(), memory_order_relaxed);
}
