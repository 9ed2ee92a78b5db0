/* Which heap a thread exchanges blocks with. */
#include "heap_inside.h"
#include "magazine_pool.h"
#include "options.h"
#include "os.h"
#include "street.h"

enum { HEAPS_MOST = 1024 };

/* Heap 0 needs no memory of its own, so that a process with one thread starts without asking for any. */
static struct heap first_heap;

/* Protects `heap_others`, `heaps_so_far` (read without it: a heap, once there, stays) and the counts of threads, which heap_move reads
 * without it, and asks again under it. */
static struct lock choice;
struct heap *heap_others[HEAPS_MOST] LAID_LAST; /* but heap 0, which touches none of these pages */
static _Atomic unsigned heaps_so_far;

/* Threads of each heap. Not in the heaps: who looks for the least loaded reads them all, sixteen on a line, and no exchange writes there. */
static _Atomic uint32_t first_threads;
_Atomic uint32_t heap_others_threads[HEAPS_MOST] LAID_LAST;

struct heap *heap_numbered(unsigned number) { return number == 0 ? &first_heap : heap_others[number]; }

unsigned heap_number(const struct heap *heap) { return heap->number; }

struct heap *heap_for(struct heap *heap, unsigned class) { return class < LINE_CLASSES ? heap : heap->host; }

unsigned heap_count(void) {
    /* acquire: pairs with the release in heap_join */
    return atomic_load_explicit(&heaps_so_far, memory_order_acquire);
}

bool heap_start(void) {
    first_heap.host = &first_heap;
    /* release: who reads the count sees the heap, as in heap_join */
    atomic_store_explicit(&heaps_so_far, 1, memory_order_release);
    return arena_open() && street_bookkeeping_grow();
}

static unsigned most_heaps(void) {
    unsigned wanted = option_value(OPTION_HEAPS);
    if (wanted != 0) {
        return (unsigned)bits_min(wanted, HEAPS_MOST);
    }
    return (unsigned)bits_min(2 * (size_t)os_cpus(), HEAPS_MOST);
}

/* One for each CPU: the first so many heaps serve all classes. */
static unsigned hosts(void) { return (unsigned)bits_min(os_cpus(), HEAPS_MOST); }

/* Heaps that a program asks for serve all classes. */
static unsigned most_hosts(void) { return option_value(OPTION_HEAPS) != 0 ? HEAPS_MOST : hosts(); }

static _Atomic uint32_t *threads_of(unsigned number) {
    return number == 0 ? &first_threads : &heap_others_threads[number];
}

uint32_t heap_threads(unsigned number) { return atomic_load_explicit(threads_of(number), memory_order_relaxed); }

static void count_threads(const struct heap *heap, int more) {
    atomic_store_explicit(threads_of(heap->number), heap_threads(heap->number) + (uint32_t)more, memory_order_relaxed);
}

static struct heap *least_loaded(void) {
    unsigned count = heap_count();
    unsigned chosen = 0;
    uint32_t fewest = heap_threads(0);
    for (unsigned i = 1; i < count; i++) {
        uint32_t threads = heap_threads(i);
        if (threads < fewest) {
            fewest = threads;
            chosen = i;
        }
    }
    return heap_numbered(chosen);
}

void heap_join(struct heap **place) {
    lock_take(&choice);
    unsigned count = atomic_load_explicit(&heaps_so_far, memory_order_relaxed);
    struct heap *chosen = least_loaded();
    if (heap_threads(chosen->number) > 0 && count < most_heaps()) {
        struct heap *fresh = street_bookkeeping(sizeof(struct heap));
        if (fresh != NULL) { /* otherwise share one */
            fresh->number = count;
            fresh->host = count < most_hosts() ? fresh : heap_numbered(count % hosts());
            heap_others[count] = fresh;
            /* release: who reads the new count sees the heap's contents */
            atomic_store_explicit(&heaps_so_far, count + 1, memory_order_release);
            chosen = fresh;
        }
    }
    count_threads(chosen, 1);
    *place = chosen;
    lock_free(&choice);
}

void heap_leave(struct heap **place) {
    lock_take(&choice);
    count_threads(*place, -1);
    *place = NULL;
    lock_free(&choice);
}

static bool is_crowded(const struct heap *heap, const struct heap *other) {
    return heap_threads(heap->number) > heap_threads(other->number) + 1;
}

bool heap_move(struct heap **place) {
    if (likely(!is_crowded(*place, least_loaded()))) {
        return false;
    }
    lock_take(&choice);
    struct heap *chosen = least_loaded();
    bool moves = is_crowded(*place, chosen);
    if (moves) {
        count_threads(*place, -1);
        count_threads(chosen, 1);
        *place = chosen;
    }
    lock_free(&choice);
    return moves;
}

/* Nobody is inside any heap: a fork's child has them as they are, but for threads that no longer exist, whose caches it adopts. */
void heap_after_fork(void) {
    for (unsigned i = heap_count(); i-- > 0;) {
        lock_reset(&heap_numbered(i)->lock);
    }
    lock_reset(&choice);
    budget_after_fork();
    magazine_pool_after_fork();
}
