#include "fork.h"

#include <pthread.h>

#include "arena.h"
#include "keeping.h"
#include "large.h"
#include "shelter.h"
#include "thread_inside.h"

enum {
    WAIT_MS = 1000,       /* for others to come out; they do nothing there that waits for this thread, */
    WAIT_INSIDE_MS = 20,  /* unless it is inside itself, interrupted by a signal: with a lock, perhaps, that they wait for */
};

static bool is_inside(void) {
    return thread_view.outside != 0 || atomic_load_explicit(&thread_view.cache->busy, memory_order_relaxed) != 0;
}

/* Nobody but the calling thread is inside. The list of caches is whole: under the lock, or in a child. */
static bool others_are_out(void) {
    /* seq_cst: see gate.h */
    if (atomic_load_explicit(&gate.outsiders, memory_order_seq_cst) != thread_view.outside) {
        return false;
    }
    for (struct thread_cache *cache = registry.alive; cache != NULL; cache = cache->next) {
        if (cache != thread_view.cache && atomic_load_explicit(&cache->busy, memory_order_seq_cst) != 0) {
            return false;
        }
    }
    return true;
}

/* Whoever holds the lock is inside; so this waits for nobody. */
static bool is_quiet(void) {
    if (!lock_try(&registry.lock)) {
        return false;
    }
    bool quiet = others_are_out();
    lock_free(&registry.lock);
    return quiet;
}

static void before_fork(void) {
    (void)thread_start(); /* or it may be half done in the child */
    keeper_leave();
    (void)gate_close(is_quiet, is_inside() ? WAIT_INSIDE_MS : WAIT_MS);
}

static void after_fork_in_parent(void) {
    gate_reopen();
    bool alone = thread_view.cache->next == NULL && registry.alive == thread_view.cache; /* any recent answer will do */
    keeper_return(!alone);
    if (!alone && !is_inside()) {
        thread_serve_wishes();
    }
}

/* In a child, by its first to come inside: every lock is free, and the caches of threads that no longer exist are orphans, taken over
 * a few slots at a time. Not where somebody was inside at the fork. */
static bool put_child_right(void) {
    if (!others_are_out()) {
        return false;
    }
    lock_reset(&registry.lock);
    borrow_after_fork();
    heap_after_fork();
    arena_after_fork();
    large_after_fork();
    shelter_after_fork();
    keeper_after_fork();
    uint32_t orphans = 0;
    for (struct thread_cache *cache = registry.alive; cache != NULL; cache = cache->next) {
        bool other = cache != thread_view.cache;
        atomic_store_explicit(&cache->orphan, other, memory_order_relaxed);
        atomic_store_explicit(&cache->borrowed, 0, memory_order_relaxed);
        orphans += other;
    }
    atomic_store_explicit(&registry.orphans, orphans, memory_order_relaxed);
    return true;
}

void fork_open(void) { gate_watch(put_child_right); }

/* Registers with pthread_atfork, once, at the first allocation or as a constructor, whichever comes first. Handlers that
 * run before a fork run in the opposite order of registration: the earlier ours registers, the later it closes the gate. */
__attribute__((constructor(101))) void fork_watch(void) {
    static _Atomic bool watching; /* relaxed: only who sets it first registers */
    if (!atomic_exchange_explicit(&watching, true, memory_order_relaxed)) {
        (void)pthread_atfork(before_fork, after_fork_in_parent, gate_mark_child);
    }
}
