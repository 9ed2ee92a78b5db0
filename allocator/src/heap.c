#include "heap.h"

#include "keeper.h"
#include "lock.h"
#include "message.h"
#include "options.h"
#include "os.h"
#include "slab.h"

enum {
    HEAPS_MOST = 1024,
    CANDIDATES = 4,                  /* slabs looked at for the fullest */
    PREFETCH_BLOCKS = 24,            /* how far a flush looks ahead */
    PREFETCH_SLABS = 128,            /* ... from this many slabs of a class on: fewer stay in a first-level cache */
    DENSE_SLABS = 4,                 /* full slabs that promise that the next will be filled too */
    DEPOT_CLASS_BYTES = 1024 * 1024, /* blocks a class may keep in its depot */
    DEPOT_HEAP_BYTES = 1024 * 1024,  /* ... and all classes of a heap, plus a share of its slabs: */
    DEPOT_HEAP_SHARE = 2,
    DEPOT_OTHERS_BYTES = 128 * 1024, /* in all of a heap's depots, from which on it keeps no more of other heaps' */
    SETTLE_EVENTS = 64, /* exchanges between two looks at the clock */
    SETTLE_MS = 250,    /* a depot's magazines unneeded for this long are drained, */
    SETTLE_BYTES = 1024 * 1024, /* and those unneeded while the heap took this many bytes of slabs, */
    SETTLE_SHARE = 16,          /* or this share of those it has */
    SETTLE_TRAFFIC = 4 * 1024 * 1024, /* what a depot did not need while so many bytes were exchanged is cold anyway */
    KEEPER_BYTES = 4 * 1024 * 1024, /* free in bitmaps since the last look: worth a thread that returns it */
};

/* What a heap has of one size class. */
struct shelf {
    uint32_t slabs; /* those with free blocks; 0 ends the list */
    uint32_t blocks; /* in all slabs of the class */
    union magazine *depot; /* full magazines */
    uint32_t depot_count; /* how many */
    uint32_t depot_low; /* fewest there were since the depots were last settled */
    size_t depot_blocks; /* blocks in them */
};

struct heap {
    /* protects everything in the heap, the descriptors and bitmaps of its slabs, and the magazines in its depots */
    _Alignas(64) struct lock lock;
    uint32_t number;
    struct heap *host; /* serves the classes that this one does not; itself where it serves all */
    _Atomic uint32_t threads; /* changed under `choice`; read without by heap_move, which asks again under it */
    uint32_t events;
    bool gave_slab; /* to the arena, since arena_age was last called */
    uint64_t settled; /* milliseconds */
    size_t grown; /* bytes of slabs taken since the depots were last settled */
    size_t traffic; /* bytes of blocks exchanged since they were last drained for that */
    _Atomic uint32_t seasons; /* times they were settled; read without the lock: see heap_season */
    size_t slab_bytes;
    size_t depot_bytes;
    size_t free_bytes; /* of blocks in bitmaps */
    size_t clean_bytes; /* of pages among them that are purged */
    size_t looked_at; /* free_bytes less clean_bytes as the keeper left them, or less since, and what is new in slabs */
    union magazine *spare;
    union magazine *strays; /* full ones, of other heaps' blocks: sent home once the lock is free */
    struct shelf shelf[CLASS_COUNT];
};

/* Heap 0 needs no memory of its own, so that a process with one thread starts without asking for any. */
static struct heap first_heap;

/* Protects `heaps`, `heap_count` (read without it: a heap, once there, stays) and every heap's `threads`. There are none before
 * heap_start: without an initial value the 8 KiB are zero pages, of which only the first is ever touched. */
static struct lock choice;
static struct heap *heaps[HEAPS_MOST];
static _Atomic unsigned heap_count;

/* How many heaps the machine's CPUs ask for; written once, before there is a second thread's cache. */
static struct {
    unsigned all, hosts; /* the first `hosts` serve all classes */
} by_cpus;

/* Protects the slice that bookkeeping memory is cut from. */
static struct {
    struct lock lock;
    char *at, *end;
    size_t bytes; /* of all slices taken */
} bookkeeping;

struct heap *heap_numbered(unsigned number) { return heaps[number]; }

unsigned heap_number(const struct heap *heap) { return heap->number; }

struct heap *heap_for(struct heap *heap, unsigned class) { return class < LINE_CLASSES ? heap : heap->host; }

void *heap_bookkeeping(size_t bytes) {
    bytes = bits_round_up(bytes, MAGAZINE_BYTES);
    lock_take(&bookkeeping.lock);
    if (bytes > (size_t)(bookkeeping.end - bookkeeping.at)) {
        bool zero;
        uint32_t slice = arena_take(1, 1, false, &zero);
        if (slice == 0) {
            lock_free(&bookkeeping.lock);
            return NULL;
        }
        if (!zero) {
            __builtin_memset(arena_address(slice), 0, SLICE_BYTES);
        }
        bookkeeping.at = arena_address(slice); /* what was left of the last slice is lost, less than a request */
        bookkeeping.end = bookkeeping.at + SLICE_BYTES;
        bookkeeping.bytes += SLICE_BYTES;
    }
    void *memory = bookkeeping.at;
    bookkeeping.at += bytes;
    lock_free(&bookkeeping.lock);
    return memory;
}

bool heap_start(void) {
    heaps[0] = &first_heap;
    first_heap.host = &first_heap;
    /* release: who reads the count sees the heap, as in heap_join */
    atomic_store_explicit(&heap_count, 1, memory_order_release);
    unsigned cpus = os_cpus(); /* asked now: a sandboxed program may forbid the question later */
    by_cpus.all = (unsigned)bits_min(2 * (size_t)cpus, HEAPS_MOST);
    by_cpus.hosts = (unsigned)bits_min(cpus, HEAPS_MOST);
    return arena_open();
}

/* -- which heap ---------------------------------------------------------------------------------------------- */

static unsigned most_heaps(void) {
    unsigned wanted = option_value(OPTION_HEAPS);
    if (wanted != 0) {
        return (unsigned)bits_min(wanted, HEAPS_MOST);
    }
    return by_cpus.all;
}

/* Heaps that a program asks for serve all classes. */
static unsigned most_hosts(void) { return option_value(OPTION_HEAPS) != 0 ? HEAPS_MOST : by_cpus.hosts; }

static uint32_t threads_of(struct heap *heap) { return atomic_load_explicit(&heap->threads, memory_order_relaxed); }

static void count_threads(struct heap *heap, int more) {
    atomic_store_explicit(&heap->threads, threads_of(heap) + (uint32_t)more, memory_order_relaxed);
}

static struct heap *least_loaded(void) {
    /* acquire: pairs with the release in heap_join */
    unsigned count = atomic_load_explicit(&heap_count, memory_order_acquire);
    struct heap *chosen = heaps[0];
    for (unsigned i = 1; i < count; i++) {
        if (threads_of(heaps[i]) < threads_of(chosen)) {
            chosen = heaps[i];
        }
    }
    return chosen;
}

void heap_join(struct heap **place) {
    lock_take(&choice);
    unsigned count = atomic_load_explicit(&heap_count, memory_order_relaxed);
    struct heap *chosen = least_loaded();
    /* Not between a fork's handlers: the new heap's lock would not be among those held. */
    if (threads_of(chosen) > 0 && count < most_heaps() && !lock_holds_all()) {
        struct heap *fresh = heap_bookkeeping(sizeof(struct heap));
        if (fresh != NULL) { /* otherwise share one */
            fresh->number = count;
            fresh->host = count < most_hosts() ? fresh : heaps[count % by_cpus.hosts];
            heaps[count] = fresh;
            /* release: who reads the new count sees the heap's contents */
            atomic_store_explicit(&heap_count, count + 1, memory_order_release);
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

static bool is_crowded(struct heap *heap, struct heap *other) { return threads_of(heap) > threads_of(other) + 1; }

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

/* -- slabs --------------------------------------------------------------------------------------------------- */

static void list_slab(struct shelf *shelf, uint32_t slab) {
    struct span *span = arena_span(slab);
    span->prev = 0;
    span->next = shelf->slabs;
    if (span->next != 0) {
        arena_span(span->next)->prev = slab;
    }
    shelf->slabs = slab;
}

static void unlist_slab(struct shelf *shelf, uint32_t slab) {
    struct span *span = arena_span(slab);
    if (span->next != 0) {
        arena_span(span->next)->prev = span->prev;
    }
    if (span->prev != 0) {
        arena_span(span->prev)->next = span->next;
    } else {
        shelf->slabs = span->next;
    }
}

/* The fullest of the first few slabs that have a free block: emptier ones get the chance to empty out. A new one
 * when there is none; 0 when memory is out. */
static uint32_t choose_slab(struct heap *heap, unsigned class) {
    struct shelf *shelf = &heap->shelf[class];
    uint32_t best = shelf->slabs;
    if (best == 0) {
        bool dense = shelf->blocks >= DENSE_SLABS * class_blocks(class);
        best = slab_make(class, heap->number, dense);
        if (best != 0) {
            list_slab(shelf, best);
            shelf->blocks += arena_span(best)->blocks;
            size_t bytes = (size_t)arena_span(best)->blocks * class_bytes[class];
            heap->free_bytes += bytes;
            heap->looked_at += bytes; /* nobody has freed them: no reason for a keeper */
            heap->slab_bytes += (size_t)class_slices[class] << SLICE_BITS;
            heap->grown += (size_t)class_slices[class] << SLICE_BITS;
        }
        return best;
    }
    uint32_t at = arena_span(best)->next;
    for (int seen = 1; at != 0 && seen < CANDIDATES; seen++) {
        if (arena_span(at)->free_blocks < arena_span(best)->free_blocks) {
            best = at;
        }
        at = arena_span(at)->next;
    }
    return best;
}

static unsigned take_from_slab(struct heap *heap, uint32_t slab, void **end, unsigned want) {
    const struct span *span = arena_span(slab);
    size_t clean = span->clean_pages;
    unsigned taken = slab_take(slab, end, want);
    heap->free_bytes -= (size_t)taken * class_bytes[span->size_class];
    heap->clean_bytes -= (clean - span->clean_pages) * os_page_bytes();
    if (span->free_blocks == 0) {
        unlist_slab(&heap->shelf[span->size_class], slab);
    }
    return taken;
}

/* Takes up to `want` blocks and stores them downwards from `end`; fewer only when memory is out. */
static unsigned take_blocks(struct heap *heap, unsigned class, void **end, unsigned want) {
    unsigned taken = 0;
    while (taken < want) {
        uint32_t slab = choose_slab(heap, class);
        if (slab == 0) {
            break;
        }
        taken += take_from_slab(heap, slab, end - taken, want - taken);
    }
    return taken;
}

static __attribute__((noinline)) void release_slab(struct heap *heap, uint32_t slab) {
    struct span *span = arena_span(slab);
    struct shelf *shelf = &heap->shelf[span->size_class];
    unlist_slab(shelf, slab);
    shelf->blocks -= span->blocks;
    heap->slab_bytes -= (size_t)span->slices << SLICE_BITS;
    heap->free_bytes -= (size_t)span->blocks * class_bytes[span->size_class];
    heap->clean_bytes -= span->clean_pages * os_page_bytes();
    heap->gave_slab = true;
    slab_unmake(slab);
}

/* All blocks of the slab are free. A class's only slab of one slice is kept, so that a program around its edge does not make
 * it anew. */
static __attribute__((noinline)) void slab_emptied(struct heap *heap, unsigned class, uint32_t slab) {
    bool only = heap->shelf[class].slabs == slab && arena_span(slab)->next == 0;
    if (!only || class_slices[class] > 1) {
        release_slab(heap, slab);
    }
}

/* Frees the run of neighbours at[0], at[-1], ... of this heap into its slab's bitmap, as far as one word of that goes. Returns
 * how many; the heap's free_bytes are the caller's to add to. */
static __attribute__((noinline)) unsigned give_run(struct heap *heap, unsigned class, uint32_t slab, void **at) {
    const struct span *span = arena_span(slab);
    unsigned given = slab_give_run(slab, at);
    if (unlikely(span->free_blocks == given)) {
        list_slab(&heap->shelf[class], slab);
    }
    if (unlikely(span->free_blocks == span->blocks)) {
        slab_emptied(heap, class, slab);
    }
    return given;
}

/* The same for one block. */
static INLINE_ALWAYS void give_one(struct heap *heap, unsigned class, const struct slab_shape *shape, uint32_t slab,
                                   void *block) {
    const struct span *span = &shape->spans[slab];
    if (unlikely(slab_give_one(slab, shape, block)) && span->free_blocks == 1) {
        list_slab(&heap->shelf[class], slab);
    }
    if (unlikely(span->free_blocks == shape->blocks)) {
        slab_emptied(heap, class, slab);
    }
}

/* -- magazines and depots ------------------------------------------------------------------------------------ */

static void keep_spare(struct heap *heap, union magazine *magazine) {
    magazine->next = heap->spare;
    heap->spare = magazine;
}

static union magazine *take_spare(struct heap *heap) {
    enum { BATCH = 4 };
    if (heap->spare == NULL) {
        char *fresh = heap_bookkeeping(BATCH * (size_t)MAGAZINE_BYTES);
        if (fresh == NULL) {
            return NULL;
        }
        for (unsigned i = BATCH; i-- > 0;) {
            keep_spare(heap, (union magazine *)(void *)(fresh + i * (size_t)MAGAZINE_BYTES));
        }
    }
    union magazine *magazine = heap->spare;
    heap->spare = magazine->next;
    return magazine;
}

/* False when no slab is there (any more). */
static bool slab_tag_of(const void *block, uint32_t *tag) { return tag_of(block, tag) && tag_is_slab(*tag); }

/* The heap whose slab the block lies in; NULL without one. */
static struct heap *owner_of(const void *block) {
    uint32_t tag;
    return slab_tag_of(block, &tag) ? heaps[tag_heap(tag)] : NULL;
}

/* The same for a block that was one of the class when it was freed: NULL also when the slab there is of another by now. */
static struct heap *home_of(const void *block, unsigned class) {
    uint32_t tag;
    return slab_tag_of(block, &tag) && tag_class(tag) == class ? heaps[tag_heap(tag)] : NULL;
}

/* Keeps a block of another heap for later, or stops the program: it was a slab's of the class when it was freed, and since
 * then the slab, with all blocks free, has gone. */
static OUT_OF_LINE void keep_stray(void *block, unsigned class, void **strays, unsigned count) {
    if (home_of(block, class) == NULL) {
        message_double_free(block, "size class", class_bytes[class]);
    }
    strays[count] = block;
}

/* Frees this heap's blocks from `top` down to the NULL into bitmaps; what the block `ahead` places further down will need is
 * fetched meanwhile, but not for 0. Returns how many are not this heap's; they go to `strays`. */
static INLINE_ALWAYS unsigned flush_each(struct heap *heap, unsigned class, const struct slab_shape *shape, void **top,
                                         unsigned ahead, void **strays) {
    const uint32_t *tags = (const uint32_t *)shape->base;
    uint32_t expected = tag_of_slab(heap->number, class);
    const union magazine *magazine = magazine_of(top);
    void *const *prefetch_from = &magazine->word[magazine->bottom + 1] + ahead;
    unsigned stray = 0;
    for (void *block = *top, *next; block != NULL; block = next) {
        if (ahead > 0 && top >= prefetch_from) {
            slab_prefetch(top[-(ptrdiff_t)ahead], shape);
        }
        next = top[-1];
        uint32_t slice = slab_shape_slice(shape, block);
        /* relaxed: no other thread changes the tag of a slab of this heap, whose lock is held */
        if (unlikely(__atomic_load_n(&tags[slice], __ATOMIC_RELAXED) != expected)) {
            keep_stray(block, class, strays, stray++);
            top--;
            continue;
        }
        uint32_t slab = slab_shape_slab(shape, slice);
        if (slab_is_run(shape, block, next)) {
            top -= give_run(heap, class, slab, top);
            next = *top;
        } else {
            give_one(heap, class, shape, slab, block);
            top--;
        }
    }
    return stray;
}

/* The same for a class whose slabs are of one slice. Blocks that were freed in random order are a miss or two each where it has
 * many slabs: those of a few blocks later are fetched meanwhile. */
static INLINE_ALWAYS unsigned flush_singles(struct heap *heap, unsigned class, const struct slab_shape *shape,
                                            void **top, void **strays) {
    bool many = heap->shelf[class].blocks > PREFETCH_SLABS * shape->blocks;
    return many ? flush_each(heap, class, shape, top, PREFETCH_BLOCKS, strays)
                : flush_each(heap, class, shape, top, 0, strays);
}

/* Frees a magazine's blocks into bitmaps, as far as they are this heap's. True when none are left; else the magazine is a full
 * one of what is left. */
static bool flush_blocks(struct heap *heap, unsigned class, void **top) {
    void *strays[MAGAZINE_MOST];
    struct slab_shape shape = slab_shape(class);
    union magazine *magazine = magazine_of(top);
    void **lowest = &magazine->word[magazine->bottom + 1];
    unsigned stray;
    if (shape.slices == 1) { /* a loop of its own, without what slabs of several slices need */
        stray = flush_singles(heap, class, &shape, top, strays);
    } else {
        stray = flush_each(heap, class, &shape, top, 0, strays);
    }
    heap->free_bytes += ((size_t)(top + 1 - lowest) - stray) * shape.size;
    if (likely(stray == 0)) {
        return true;
    }
    void **bottom = magazine_clear(magazine, stray);
    for (unsigned i = stray; i-- > 0;) {
        *++bottom = strays[i];
    }
    return false;
}

static void push_depot(struct heap *heap, unsigned class, union magazine *full) {
    struct shelf *shelf = &heap->shelf[class];
    unsigned blocks = magazine_capacity(full);
    full->next = shelf->depot;
    shelf->depot = full;
    shelf->depot_count++;
    shelf->depot_blocks += blocks;
    heap->depot_bytes += (size_t)blocks * class_bytes[class];
}

static union magazine *pop_depot(struct heap *heap, unsigned class) {
    struct shelf *shelf = &heap->shelf[class];
    union magazine *full = shelf->depot;
    if (full == NULL) {
        return NULL;
    }
    unsigned blocks = magazine_capacity(full);
    shelf->depot = full->next;
    shelf->depot_count--;
    shelf->depot_low = (uint32_t)bits_min(shelf->depot_low, shelf->depot_count);
    shelf->depot_blocks -= blocks;
    heap->depot_bytes -= (size_t)blocks * class_bytes[class];
    return full;
}

static bool depot_has_room(const struct heap *heap, unsigned class, unsigned blocks) {
    size_t bytes = (size_t)blocks * class_bytes[class];
    return heap->shelf[class].depot_blocks * class_bytes[class] + bytes <= DEPOT_CLASS_BYTES &&
           heap->depot_bytes + bytes <= DEPOT_HEAP_BYTES + heap->slab_bytes / DEPOT_HEAP_SHARE;
}

static void drain_depot(struct heap *heap, unsigned class, uint32_t magazines) {
    while (magazines-- > 0) {
        union magazine *full = pop_depot(heap, class);
        if (flush_blocks(heap, class, magazine_full_top(full))) {
            keep_spare(heap, full);
        } else {
            full->size_class = class;
            full->next = heap->strays;
            heap->strays = full;
        }
    }
    heap->shelf[class].depot_low = heap->shelf[class].depot_count;
}

static void drain_unneeded(struct heap *heap) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        if (heap->shelf[class].depot_count > 0) {
            drain_depot(heap, class, heap->shelf[class].depot_low);
        }
    }
}

/* Blocks are about to be exchanged. From a depot they come in the order in which they were freed, from the bitmaps in that of
 * their addresses, neighbours on one cache line: the depot's are better only while they are still in a cache. */
static void count_traffic(struct heap *heap, unsigned class, unsigned blocks) {
    heap->traffic += (size_t)blocks * class_bytes[class];
    if (unlikely(heap->traffic > SETTLE_TRAFFIC)) {
        heap->traffic = 0;
        drain_unneeded(heap);
    }
}

/* Now and then drains what the depots did not need since the last time: by the clock, and, since a block in a depot keeps
 * a whole slab from being used for something else, before the heap grows by more than a little. True when it did. */
static bool settle(struct heap *heap) {
    bool grown = heap->grown > SETTLE_BYTES && heap->grown > heap->slab_bytes / SETTLE_SHARE;
    if (likely(++heap->events % SETTLE_EVENTS != 0 && !grown)) {
        return false;
    }
    uint64_t now = os_milliseconds();
    if (now - heap->settled < SETTLE_MS && !grown) {
        return false;
    }
    heap->settled = now;
    heap->grown = 0;
    drain_unneeded(heap);
    atomic_fetch_add_explicit(&heap->seasons, 1, memory_order_relaxed);
    return true;
}

uint32_t heap_season(struct heap *heap) {
    /* relaxed: any recent value will do; where the heap is its own host every season counts twice, which is as well */
    return atomic_load_explicit(&heap->seasons, memory_order_relaxed) +
           atomic_load_explicit(&heap->host->seasons, memory_order_relaxed);
}

/* Free and not purged. Clean pages may reach into what is left over behind a slab's last block, which is no free block. */
static size_t returnable_bytes(const struct heap *heap) {
    return heap->free_bytes - bits_min(heap->free_bytes, heap->clean_bytes);
}

/* Frees the heap's lock. True when the arena may have to purge. */
static bool unlock_heap(struct heap *heap) {
    bool due = heap->gave_slab;
    heap->gave_slab = false;
    size_t returnable = returnable_bytes(heap);
    if (unlikely(returnable >= heap->looked_at + KEEPER_BYTES)) {
        keeper_wish();
    }
    heap->looked_at = bits_min(heap->looked_at, returnable);
    lock_free(&heap->lock);
    return due;
}

/* Frees a magazine's blocks, none of which need be of one heap, into the bitmaps of their heaps, one lock at a time. The
 * magazine is then the caller's. True when the arena may have to purge. */
static bool send_home(unsigned class, union magazine *magazine) {
    bool due = false, done = false;
    while (!done) {
        void **top = magazine_full_top(magazine);
        struct heap *home = home_of(*top, class);
        if (home == NULL) {
            message_double_free(*top, "size class", class_bytes[class]);
        }
        lock_take(&home->lock);
        done = flush_blocks(home, class, top);
        due |= unlock_heap(home);
    }
    return due;
}

/* The same for all that were found among others; each magazine stays as a spare of the heap. */
static OUT_OF_LINE bool send_strays(struct heap *heap, union magazine *strays) {
    bool due = false;
    while (strays != NULL) {
        union magazine *next = strays->next;
        due |= send_home(strays->size_class, strays);
        lock_take(&heap->lock);
        keep_spare(heap, strays);
        lock_free(&heap->lock);
        strays = next;
    }
    return due;
}

/* Frees the heap's lock, sends home what was found of others', and then lets the arena purge if that may be due. */
static void leave_heap(struct heap *heap, bool settled) {
    union magazine *strays = heap->strays;
    heap->strays = NULL;
    bool due = unlock_heap(heap) || settled;
    if (unlikely(strays != NULL)) {
        due |= send_strays(heap, strays);
    }
    if (due) {
        arena_age();
    }
}

/* The same for the keeper, who wishes for nothing and looks at the arena himself. */
static void leave_for_keeper(struct heap *heap) {
    union magazine *strays = heap->strays;
    heap->strays = NULL;
    lock_free(&heap->lock);
    if (strays != NULL) {
        (void)send_strays(heap, strays);
    }
}

void **heap_spare(struct heap *heap, unsigned capacity) {
    lock_take(&heap->lock);
    union magazine *magazine = take_spare(heap);
    lock_free(&heap->lock);
    return magazine == NULL ? NULL : magazine_clear(magazine, capacity);
}

void heap_return_spare(struct heap *heap, void **top) {
    lock_take(&heap->lock);
    keep_spare(heap, magazine_of(top));
    lock_free(&heap->lock);
}

/* The top of a magazine that `taken` blocks were stored into from its end: full at that many, empty with room for `capacity`
 * when there are none. */
static void **filled(union magazine *magazine, unsigned taken, unsigned capacity) {
    void **bottom = magazine_clear(magazine, taken > 0 ? taken : capacity);
    return taken > 0 ? magazine_full_top(magazine) : bottom;
}

void **heap_exchange_empty(struct heap *heap, unsigned class, void **empty, unsigned capacity) {
    union magazine *magazine = empty == NULL ? NULL : magazine_of(empty);
    lock_take(&heap->lock);
    bool settled = settle(heap);
    count_traffic(heap, class, capacity);
    union magazine *full = pop_depot(heap, class);
    void **top = NULL;
    if (full != NULL) {
        if (magazine != NULL) {
            keep_spare(heap, magazine);
        }
        top = magazine_full_top(full);
    } else if (magazine != NULL || (magazine = take_spare(heap)) != NULL) {
        top = filled(magazine, take_blocks(heap, class, &magazine->word[MAGAZINE_WORDS], capacity), capacity);
    }
    leave_heap(heap, settled);
    return top;
}

/* Free blocks of the slab that were taken before: those that never were are the highest, and all free. */
static unsigned used_blocks(const struct span *span) { return span->free_blocks - (span->blocks - span->fresh); }

/* take_blocks of blocks that were in use before, as far as the slabs that would be taken from have any. */
static unsigned take_used(struct heap *heap, unsigned class, void **end, unsigned want) {
    unsigned taken = 0;
    while (taken < want && heap->shelf[class].slabs != 0) {
        uint32_t slab = choose_slab(heap, class);
        unsigned used = used_blocks(arena_span(slab));
        if (used == 0) {
            break;
        }
        taken += take_from_slab(heap, slab, end - taken, (unsigned)bits_min(used, want - taken));
    }
    return taken;
}

void **heap_exchange_used(struct heap *heap, unsigned class, void **empty, unsigned capacity) {
    union magazine *magazine = magazine_of(empty);
    void **top;
    lock_take(&heap->lock);
    union magazine *full = pop_depot(heap, class);
    if (full != NULL) {
        keep_spare(heap, magazine);
        top = magazine_full_top(full);
    } else {
        top = filled(magazine, take_used(heap, class, &magazine->word[MAGAZINE_WORDS], capacity), capacity);
    }
    count_traffic(heap, class, magazine_count(top));
    leave_heap(heap, false);
    return top;
}

/* Puts a full magazine into the heap's depot, for a spare one; NULL when there is no room, or none of those. */
static union magazine *keep_full(struct heap *heap, unsigned class, union magazine *full, unsigned capacity) {
    unsigned blocks = magazine_capacity(full);
    bool keep = blocks >= capacity / 2 && depot_has_room(heap, class, blocks); /* few blocks are not worth a magazine */
    union magazine *spare = keep ? take_spare(heap) : NULL;
    if (spare != NULL) {
        push_depot(heap, class, full);
    }
    return spare;
}

/* The heap that two of three of a full magazine's blocks belong to; NULL when each is another's. Magazines that are mixed by
 * chance stay where they are so, instead of carrying a heap's blocks away with a few of others'. */
static struct heap *home_of_most(void **full, unsigned class) {
    union magazine *magazine = magazine_of(full);
    unsigned blocks = magazine_capacity(magazine);
    struct heap *top = home_of(full[0], class);
    struct heap *middle = home_of(full[-(ptrdiff_t)(blocks / 2)], class);
    struct heap *bottom = home_of(magazine->word[magazine->bottom + 1], class);
    return top == middle || top == bottom ? top : middle == bottom ? middle : NULL;
}

void **heap_exchange_full(struct heap *heap, unsigned class, void **full, unsigned capacity, enum trade trade) {
    union magazine *magazine = magazine_of(full);
    struct heap *home = home_of(*full, class);
    struct heap *most = trade == GIVES_AND_TAKES ? NULL : home_of_most(full, class);
    struct heap *at = heap;
    if (trade == ONLY_GIVES && home != NULL) {
        at = most != NULL ? most : home;
    }
    lock_take(&at->lock);
    bool settled = settle(at);
    count_traffic(at, class, magazine_capacity(magazine));
    bool enough = most != NULL && most != at && at->depot_bytes >= DEPOT_OTHERS_BYTES;
    union magazine *spare = enough ? NULL : keep_full(at, class, magazine, capacity);
    struct heap *next = enough ? most : home;
    if (spare == NULL && next != NULL && next != at) {
        leave_heap(at, settled);
        at = next;
        lock_take(&at->lock);
        settled = false;
        spare = keep_full(at, class, magazine, capacity);
    }
    bool done = spare != NULL || flush_blocks(at, class, full);
    leave_heap(at, settled);
    if (unlikely(!done) && send_home(class, magazine)) {
        arena_age();
    }
    return magazine_clear(spare == NULL ? magazine : spare, capacity);
}

void heap_flush(struct heap *heap, unsigned class, void **top) {
    union magazine *magazine = magazine_of(top);
    lock_take(&heap->lock);
    bool done = magazine_is_empty(top) || flush_blocks(heap, class, top);
    if (done) {
        keep_spare(heap, magazine);
    }
    leave_heap(heap, false);
    if (unlikely(!done)) {
        if (send_home(class, magazine)) {
            arena_age();
        }
        heap_return_spare(heap, top);
    }
}

/* -- without a cache ----------------------------------------------------------------------------------------- */

void *heap_take_one(struct heap *heap, unsigned class, bool *zero) {
    void *block = NULL;
    *zero = false;
    lock_take(&heap->lock);
    uint32_t slab = choose_slab(heap, class);
    if (slab != 0) {
        uint32_t fresh = arena_span(slab)->fresh;
        take_from_slab(heap, slab, &block + 1, 1);
        *zero = arena_span(slab)->fresh != fresh;
    }
    lock_free(&heap->lock);
    return block;
}

static struct heap *owner_or_die(const void *block) {
    struct heap *owner = owner_of(block);
    if (unlikely(owner == NULL)) {
        size_t bytes = 0;
        (void)arena_was_freed(block, &bytes);
        message_double_free(block, "span", bytes);
    }
    return owner;
}

void heap_give(void **blocks, unsigned count) {
    while (count > 0) {
        struct heap *owner = owner_or_die(blocks[0]);
        unsigned others = 0;
        lock_take(&owner->lock);
        for (unsigned i = 0; i < count; i++) {
            void *block = blocks[i];
            if (owner_or_die(block) == owner) { /* asked under the lock: its slab cannot go meanwhile */
                unsigned class = arena_span(slab_of(block))->size_class;
                struct slab_shape shape = slab_shape(class);
                owner->free_bytes += shape.size;
                give_one(owner, class, &shape, slab_of(block), block);
            } else {
                blocks[others++] = block;
            }
        }
        leave_heap(owner, false);
        count = others;
    }
}

/* -- giving back --------------------------------------------------------------------------------------------- */

static void drain_all(struct heap *heap) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        drain_depot(heap, class, heap->shelf[class].depot_count);
    }
}

static void release_empty(struct heap *heap) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        uint32_t slab = heap->shelf[class].slabs;
        while (slab != 0) {
            const struct span *span = arena_span(slab);
            uint32_t next = span->next;
            if (span->free_blocks == span->blocks) {
                release_slab(heap, slab);
            }
            slab = next;
        }
    }
}

/* Cleans the slab at `slice`, if one is there, and busy ones too when `at_once`; returns the slice behind what was looked
 * at. */
static uint32_t clean_slab_at(uint32_t slice, bool at_once, size_t *bytes, bool *more) {
    uint32_t next = slice + 1;
    struct heap *heap = owner_of(arena_address(slice));
    if (heap == NULL) {
        return next;
    }
    lock_take(&heap->lock);
    if (owner_of(arena_address(slice)) == heap) { /* asked under its lock: the slab cannot go meanwhile */
        uint32_t slab = arena_span(slice)->first;
        bool busy;
        if (at_once) {
            arena_span(slab)->taken = false;
            arena_span(slab)->examined = 0;
        }
        size_t cleaned = slab_clean(slab, &busy);
        heap->clean_bytes += cleaned;
        heap->looked_at = returnable_bytes(heap);
        *bytes += cleaned;
        *more |= busy;
        next = slab + arena_span(slab)->slices;
    }
    lock_free(&heap->lock);
    return next;
}

static size_t clean_slabs(bool at_once, bool *more) {
    size_t bytes = 0;
    uint32_t end = (uint32_t)(__atomic_load_n(&window.extent, __ATOMIC_RELAXED) >> SLICE_BITS);
    for (uint32_t slice = arena_first_slice(); slice < end;) {
        slice = clean_slab_at(slice, at_once, &bytes, more);
    }
    return bytes;
}

size_t heap_keep(bool *more) {
    *more = false;
    /* acquire: pairs with the release in heap_join */
    unsigned count = atomic_load_explicit(&heap_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        lock_take(&heaps[i]->lock);
        *more |= heaps[i]->depot_bytes > 0;
        drain_unneeded(heaps[i]);
        leave_for_keeper(heaps[i]);
    }
    return clean_slabs(false, more);
}

size_t heap_trim_all(void) {
    /* acquire: pairs with the release in heap_join */
    unsigned count = atomic_load_explicit(&heap_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        lock_take(&heaps[i]->lock);
        drain_all(heaps[i]);
        leave_for_keeper(heaps[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        lock_take(&heaps[i]->lock);
        release_empty(heaps[i]);
        lock_free(&heaps[i]->lock);
    }
    bool more = false;
    return clean_slabs(true, &more);
}

/* -- figures ------------------------------------------------------------------------------------------------- */

static void add_figures(struct heap *heap, struct heap_figures *figures, size_t *of_class) {
    figures->slabs += heap->slab_bytes;
    figures->depots += heap->depot_bytes;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        const struct shelf *shelf = &heap->shelf[class];
        size_t free_blocks = 0;
        for (uint32_t slab = shelf->slabs; slab != 0; slab = arena_span(slab)->next) {
            free_blocks += arena_span(slab)->free_blocks;
        }
        figures->free += free_blocks * class_bytes[class];
        figures->in_use += (shelf->blocks - free_blocks - shelf->depot_blocks) * class_bytes[class];
        if (of_class != NULL) {
            of_class[class] += shelf->blocks - free_blocks - shelf->depot_blocks;
        }
    }
}

void heap_figures(struct heap_figures *figures, size_t *of_class) {
    *figures = (struct heap_figures){0};
    if (of_class != NULL) {
        __builtin_memset(of_class, 0, CLASS_COUNT * sizeof *of_class);
    }
    lock_take(&bookkeeping.lock);
    figures->bookkeeping = bookkeeping.bytes;
    lock_free(&bookkeeping.lock);
    figures->heaps = atomic_load_explicit(&heap_count, memory_order_acquire);
    for (unsigned i = 0; i < figures->heaps; i++) {
        lock_take(&heaps[i]->lock);
        add_figures(heaps[i], figures, of_class);
        lock_free(&heaps[i]->lock);
    }
}

/* -- fork ---------------------------------------------------------------------------------------------------- */

void heap_before_fork(void) {
    lock_take(&choice);
    unsigned count = atomic_load_explicit(&heap_count, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++) {
        lock_take(&heaps[i]->lock);
    }
    lock_take(&bookkeeping.lock);
    arena_before_fork();
}

void heap_after_fork(bool child) {
    arena_after_fork(child);
    void (*open_lock)(struct lock *) = child ? lock_reset : lock_free;
    open_lock(&bookkeeping.lock);
    unsigned count = atomic_load_explicit(&heap_count, memory_order_relaxed);
    for (unsigned i = count; i-- > 0;) {
        open_lock(&heaps[i]->lock);
    }
    open_lock(&choice);
}
