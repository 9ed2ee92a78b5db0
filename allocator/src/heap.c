#include "heap.h"

#include "lock.h"
#include "message.h"
#include "options.h"
#include "os.h"
#include "slab.h"

enum {
    HEAPS_MOST = 1024,
    HEAPS_LEAST = 8,
    CANDIDATES = 4,                  /* slabs looked at for the fullest */
    DEPOT_CLASS_BYTES = 1024 * 1024, /* blocks a class may keep in its depot */
    DEPOT_HEAP_BYTES = 1024 * 1024,  /* ... and all classes of a heap, plus a share of its slabs: */
    DEPOT_HEAP_SHARE = 8,
    SETTLE_EVENTS = 64, /* exchanges between two looks at the clock */
    SETTLE_MS = 250,    /* a depot's magazines unneeded for this long are drained */
};

/* What a heap has of one size class. */
struct shelf {
    uint32_t slabs;         /* those with free blocks; 0 ends the list */
    uint32_t blocks;        /* in all slabs of the class */
    union magazine *depot;  /* full magazines */
    uint32_t depot_count;   /* how many */
    uint32_t depot_low;     /* fewest there were since the depots were last settled */
    size_t depot_blocks;    /* blocks in them */
};

struct heap {
    /* protects everything in the heap, the descriptors and bitmaps of its slabs, and the magazines in its depots */
    _Alignas(64) struct lock lock;
    uint32_t number;
    uint32_t threads; /* protected by `choice` */
    uint32_t events;
    bool gave_slab; /* to the arena, since arena_age was last called */
    uint64_t settled; /* milliseconds */
    size_t slab_bytes;
    size_t depot_bytes;
    union magazine *spare;
    struct shelf shelf[CLASS_COUNT];
};

/* Heap 0 needs no memory of its own, so that a process with one thread starts without asking for any. */
static struct heap first_heap;

/* Protects `heaps`, `heap_count` (read without it: a heap, once there, stays) and every heap's `threads`. */
static struct lock choice;
static struct heap *heaps[HEAPS_MOST] = {&first_heap};
static _Atomic unsigned heap_count = 1;

/* How many heaps the machine's CPUs ask for; written once, before there is a second thread's cache. */
static unsigned heaps_by_cpus;

/* Protects the slice that bookkeeping memory is cut from. */
static struct {
    struct lock lock;
    char *at, *end;
    size_t bytes; /* of all slices taken */
} bookkeeping;

struct heap *heap_numbered(unsigned number) { return heaps[number]; }

uint32_t heap_tag(const struct heap *heap) { return (heap->number + 1) << TAG_HEAP_SHIFT; }

void *heap_bookkeeping(size_t bytes) {
    bytes = bits_round_up(bytes, MAGAZINE_BYTES);
    lock_take(&bookkeeping.lock);
    if (bytes > (size_t)(bookkeeping.end - bookkeeping.at)) {
        bool zero;
        uint32_t slice = arena_take(1, 1, &zero);
        if (slice == 0) {
            lock_free(&bookkeeping.lock);
            return NULL;
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
    unsigned cpus = os_cpus(); /* asked now: a sandboxed program may forbid the question later */
    heaps_by_cpus = HEAPS_LEAST;
    while (heaps_by_cpus < 2 * cpus && heaps_by_cpus < HEAPS_MOST) {
        heaps_by_cpus *= 2;
    }
    return arena_open();
}

/* -- which heap ---------------------------------------------------------------------------------------------- */

static unsigned most_heaps(void) {
    unsigned wanted = option_value(OPTION_HEAPS);
    if (wanted != 0) {
        return (unsigned)bits_min(wanted, HEAPS_MOST);
    }
    return heaps_by_cpus;
}

struct heap *heap_choose(void) {
    lock_take(&choice);
    unsigned count = atomic_load_explicit(&heap_count, memory_order_relaxed);
    struct heap *chosen = heaps[0];
    for (unsigned i = 1; i < count; i++) {
        if (heaps[i]->threads < chosen->threads) {
            chosen = heaps[i];
        }
    }
    /* Not between a fork's handlers: the new heap's lock would not be among those held. */
    if (chosen->threads > 0 && count < most_heaps() && !lock_holds_all()) {
        struct heap *fresh = heap_bookkeeping(sizeof(struct heap));
        if (fresh != NULL) { /* otherwise share one */
            __builtin_memset(fresh, 0, sizeof *fresh);
            fresh->number = count;
            heaps[count] = fresh;
            /* release: who reads the new count sees the heap's contents */
            atomic_store_explicit(&heap_count, count + 1, memory_order_release);
            chosen = fresh;
        }
    }
    chosen->threads++;
    lock_free(&choice);
    return chosen;
}

void heap_leave(struct heap *heap) {
    lock_take(&choice);
    heap->threads--;
    lock_free(&choice);
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
        best = slab_make(class, heap->number);
        if (best != 0) {
            list_slab(shelf, best);
            shelf->blocks += arena_span(best)->blocks;
            heap->slab_bytes += (size_t)class_slices[class] << SLICE_BITS;
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

/* Takes up to `want` blocks and stores them downwards from `end`; fewer only when memory is out. */
static unsigned take_blocks(struct heap *heap, unsigned class, void **end, unsigned want) {
    unsigned taken = 0;
    while (taken < want) {
        uint32_t slab = choose_slab(heap, class);
        if (slab == 0) {
            break;
        }
        taken += slab_take(slab, end - taken, want - taken);
        if (arena_span(slab)->free_blocks == 0) {
            unlist_slab(&heap->shelf[class], slab);
        }
    }
    return taken;
}

static void release_slab(struct heap *heap, uint32_t slab) {
    struct span *span = arena_span(slab);
    struct shelf *shelf = &heap->shelf[span->size_class];
    unlist_slab(shelf, slab);
    shelf->blocks -= span->blocks;
    heap->slab_bytes -= (size_t)span->slices << SLICE_BITS;
    heap->gave_slab = true;
    slab_unmake(slab);
}

/* Frees blocks of one slab of this heap into its bitmap: top[0], top[-1], ... down to a NULL or another slab's block.
 * Returns how many. */
static unsigned give_run(struct heap *heap, void **top) {
    uint32_t slab = slab_of(*top);
    struct span *span = arena_span(slab);
    struct shelf *shelf = &heap->shelf[span->size_class];
    unsigned given = slab_give(slab, top);
    if (span->free_blocks == given) {
        list_slab(shelf, slab);
    }
    if (unlikely(span->free_blocks == span->blocks)) {
        /* A class's only slab of one slice is kept, so that a program around its edge does not make it anew. */
        bool only = shelf->slabs == slab && span->next == 0;
        if (!only || span->slices > 1) {
            release_slab(heap, slab);
        }
    }
    return given;
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

/* Frees all blocks of a magazine of the class into bitmaps. */
static void flush_blocks(struct heap *heap, unsigned class, void **top) {
    uint32_t expected = heap_tag(heap) | class;
    while (*top != NULL) {
        uint32_t tag;
        if (unlikely(!tag_of(*top, &tag) || tag != expected)) {
            /* It was this slab's when it was freed; since then the slab, with all blocks free, has gone. */
            message_double_free(*top, "size class", class_bytes[class]);
        }
        top -= give_run(heap, top);
    }
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
        flush_blocks(heap, class, magazine_full_top(full));
        keep_spare(heap, full);
    }
    heap->shelf[class].depot_low = heap->shelf[class].depot_count;
}

/* Now and then drains what the depots did not need since the last time. True when it looked. */
static bool settle(struct heap *heap) {
    if (likely(++heap->events % SETTLE_EVENTS != 0)) {
        return false;
    }
    uint64_t now = os_milliseconds();
    if (now - heap->settled < SETTLE_MS) {
        return false;
    }
    heap->settled = now;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        if (heap->shelf[class].depot_count > 0) {
            drain_depot(heap, class, heap->shelf[class].depot_low);
        }
    }
    return true;
}

/* Frees the heap's lock, and then lets the arena purge if that may be due. */
static void leave_heap(struct heap *heap, bool settled) {
    bool due = settled || heap->gave_slab;
    heap->gave_slab = false;
    lock_free(&heap->lock);
    if (due) {
        arena_age();
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

void **heap_exchange_empty(struct heap *heap, unsigned class, void **empty, unsigned capacity) {
    lock_take(&heap->lock);
    bool settled = settle(heap);
    void **top;
    union magazine *full = pop_depot(heap, class);
    if (full != NULL) {
        keep_spare(heap, magazine_of(empty));
        top = magazine_full_top(full);
    } else {
        union magazine *magazine = magazine_of(empty);
        unsigned taken = take_blocks(heap, class, &magazine->word[MAGAZINE_WORDS], capacity);
        /* Full at exactly that many when memory ran short; as it was when there is none. */
        top = magazine_clear(magazine, taken > 0 ? taken : capacity);
        if (taken > 0) {
            top = magazine_full_top(magazine);
        }
    }
    leave_heap(heap, settled);
    return top;
}

void **heap_exchange_full(struct heap *heap, unsigned class, void **full, unsigned capacity) {
    lock_take(&heap->lock);
    bool settled = settle(heap);
    union magazine *magazine = magazine_of(full);
    union magazine *spare = depot_has_room(heap, class, magazine_capacity(magazine)) ? take_spare(heap) : NULL;
    if (spare != NULL) {
        push_depot(heap, class, magazine);
    } else {
        flush_blocks(heap, class, full);
        spare = magazine;
    }
    leave_heap(heap, settled);
    return magazine_clear(spare, capacity);
}

void heap_flush(struct heap *heap, unsigned class, void **top) {
    lock_take(&heap->lock);
    flush_blocks(heap, class, top);
    keep_spare(heap, magazine_of(top));
    leave_heap(heap, false);
}

/* -- without a cache ----------------------------------------------------------------------------------------- */

void *heap_take_one(struct heap *heap, unsigned class) {
    void *block = NULL;
    lock_take(&heap->lock);
    (void)take_blocks(heap, class, &block + 1, 1);
    lock_free(&heap->lock);
    return block;
}

/* The heap that owns the block, NULL when no slab is there (any more). */
static struct heap *owner_of(const void *block) {
    uint32_t tag;
    if (!tag_of(block, &tag) || tag == TAG_NONE || tag >= TAG_LARGE) {
        return NULL;
    }
    return heaps[(tag >> TAG_HEAP_SHIFT) - 1];
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
                void *one[2] = {NULL, block};
                (void)give_run(owner, &one[1]);
            } else {
                blocks[others++] = block;
            }
        }
        leave_heap(owner, false);
        count = others;
    }
}

/* -- trimming and figures ------------------------------------------------------------------------------------ */

static void trim(struct heap *heap) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        drain_depot(heap, class, heap->shelf[class].depot_count);
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

void heap_trim_all(void) {
    /* acquire: pairs with the release in heap_choose */
    unsigned count = atomic_load_explicit(&heap_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        lock_take(&heaps[i]->lock);
        trim(heaps[i]);
        lock_free(&heaps[i]->lock);
    }
}

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
