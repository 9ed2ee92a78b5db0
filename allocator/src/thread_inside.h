/* What the rooms of the threads share: a thread's life (thread_life), what others may do with its cache (borrow), its slow paths
 * (thread_cache), and forks (fork). */
#ifndef FREESTONE_THREAD_INSIDE_H
#define FREESTONE_THREAD_INSIDE_H

#include "gate.h"
#include "lock.h"
#include "thread_cache.h"
#include "thread_life.h"

/* Full to a push, empty to a pop: its one word in reach is the NULL at the very end. Never written. */
extern union magazine thread_void INTERNAL;
#define VOID_TOP (&thread_void.word[MAGAZINE_WORDS - 1])

/* Protects the list of caches, the unused ones, and the opening of the library. Taken before every other lock, by who is inside. */
struct registry {
    struct lock lock;
    struct thread_cache *alive;
    struct thread_cache *unused;
    struct thread_cache *cursor; /* the next to be looked at; see borrow.c */
    _Atomic uint32_t orphans; /* among those alive; relaxed: sooner or later somebody sees it */
    _Atomic size_t room; /* of those alive: what their magazines may hold; relaxed: any recent value will do */
};
extern struct registry registry INTERNAL;

/* Frees the blocks of a slot, or of all slots. By the cache's thread, inside, or by who has taken over what a thread left. */
void cache_flush_slot(struct thread_cache *cache, unsigned slot);
void cache_flush(struct thread_cache *cache);

/* Frees the blocks of the slot's other magazine; also by who has borrowed the cache. */
void cache_flush_previous(struct thread_cache *cache, unsigned slot);

/* The heap with which the thread exchanges blocks of the class. */
static inline struct heap *heap_of(const struct thread_cache *cache, unsigned class) {
    return heap_for(cache->heap, class);
}

/* Where the fast paths of this thread take blocks of the class from. */
void thread_point_steps(unsigned class, struct cache_class *magazines);

/* Threads that have worked lately, the cache's included; and, to be called now and then, what lately is. */
unsigned thread_workers(struct thread_cache *cache);
void thread_look_at_clock(void);

/* Takes over what threads have left that ended during a fork, or that are not in this child of one: some of it. The caller is inside. */
void thread_adopt_some(void);

/* Empties what others than `own` have cached and do not use: caches that were not used since the last look, or, `all`, all whose threads
 * are not inside. Goes on as long as `goes_on` says; the caller is inside, or asks the gate there. */
void borrow_caches(const struct thread_cache *own, bool all, bool (*goes_on)(void));
void borrow_after_fork(void);

#endif
