/* Slabs with free slots and freed slots held back, by shards. */
#include "hard_inside.h"

struct class_slabs {
    uint32_t first, last; /* slabs with free slots; 0: none */
    struct hard_window window;
    bool has_held; /* `held` was set up, or cannot be */
    struct hard_held held;
};

/* `lock` protects the rest, and the descriptors and bits of the shard's slabs. */
struct hard_shard {
    struct lock lock;
    struct class_slabs classes[HARD_CLASSES];
    size_t slabs, in_use, held; /* bytes; what threads have taken ahead counts as in use */
};

struct hard_shard hard_shards[HARD_SHARDS] LAID_LAST;

/* State of random_next, for each shard, whose lock protects it. Together: a child of a fork draws all of them, and copies no page of each shard for it. */
static struct {
    _Alignas(64) uint64_t state;
} chances[HARD_SHARDS];

static uint64_t *chance_of(const struct hard_shard *shard) { return &chances[shard - hard_shards].state; }

void hard_shard_open(unsigned shard, uint64_t chance) { chances[shard % HARD_SHARDS].state = chance; }

/* -- slabs with free slots ------------------------------------------------------------------------------------ */

static void link_slab(struct class_slabs *class, uint32_t slab) {
    struct span *span = arena_span(slab);
    span->next = 0;
    span->prev = class->last;
    if (class->last != 0) {
        arena_span(class->last)->next = slab;
    } else {
        class->first = slab;
    }
    class->last = slab;
}

static void unlink_slab(struct class_slabs *class, uint32_t slab) {
    const struct span *span = arena_span(slab);
    if (span->next != 0) {
        arena_span(span->next)->prev = span->prev;
    } else {
        class->last = span->prev;
    }
    if (span->prev != 0) {
        arena_span(span->prev)->next = span->next;
    } else {
        class->first = span->next;
    }
}

/* The lock of the shard is held, and again when this returns. False when memory is out. */
static OUT_OF_LINE bool add_slab(struct hard_shard *shard, unsigned class) {
    struct class_slabs *slabs = &shard->classes[class];
    bool opens = !slabs->has_held;
    struct hard_held held;
    lock_free(&shard->lock);
    if (opens) {
        hard_held_open(&held, class);
    }
    uint32_t slab = hard_slab_make(class, (unsigned)(shard - hard_shards));
    lock_take(&shard->lock);
    if (opens &&
        !slabs->has_held) { /* what another thread has opened meanwhile stays: a kibibyte or two unused, once */
        slabs->has_held = true;
        slabs->held = held;
    }
    if (slab == 0) {
        return false;
    }
    shard->slabs += (size_t)arena_span(slab)->slices << SLICE_BITS;
    arena_tag(slab, arena_span(slab)->slices, TAG_HARD);
    link_slab(slabs, slab);
    return true;
}

/* Takes from the first slab that has some. With the lock. */
static unsigned take_slots(struct hard_shard *shard, unsigned class, void **slots, unsigned want) {
    struct class_slabs *slabs = &shard->classes[class];
    uint32_t slab = slabs->first;
    unsigned taken = 0;
    while (taken < want && arena_span(slab)->free_blocks > 0) {
        slots[taken++] = hard_slab_take(slab, &slabs->window, chance_of(shard));
    }
    if (arena_span(slab)->free_blocks == 0) {
        unlink_slab(slabs, slab);
    }
    shard->in_use += taken * hard_slot_bytes(class);
    return taken;
}

unsigned hard_shard_take(unsigned number, unsigned class, void **slots, unsigned want) {
    struct hard_shard *shard = &hard_shards[number % HARD_SHARDS];
    unsigned taken = 0;
    lock_take(&shard->lock);
    bool has_some = true;
    while (has_some && shard->classes[class].first == 0) {
        has_some = add_slab(shard, class);
    }
    if (has_some) {
        taken = take_slots(shard, class, slots, want);
    }
    lock_free(&shard->lock);
    return taken;
}

OUT_OF_LINE void *hard_shard_take_anywhere(unsigned class) {
    void *slot = NULL;
    for (unsigned i = 0; slot == NULL && i < HARD_SHARDS; i++) {
        lock_take(&hard_shards[i].lock);
        if (hard_shards[i].classes[class].first != 0) {
            (void)take_slots(&hard_shards[i], class, &slot, 1);
        }
        lock_free(&hard_shards[i].lock);
    }
    return slot;
}

/* -- freed slots ---------------------------------------------------------------------------------------------- */

/* Where nobody takes its slots any more, nobody would look at them either. */
static OUT_OF_LINE void unmake(uint32_t slab) {
    const struct span *span = arena_span(slab);
    for (uint32_t slot = 0; span->size_class != HARD_NOTHING && slot < span->blocks; slot++) {
        hard_check_clear(hard_slab_block(slab, slot), hard_slot_bytes(span->size_class));
    }
    hard_slab_unmake(slab);
}

/* An empty slab is nobody's from now on. With the lock. */
static void take_out(struct hard_shard *shard, uint32_t slab) {
    const struct span *span = arena_span(slab);
    unlink_slab(&shard->classes[span->size_class], slab);
    shard->slabs -= (size_t)span->slices << SLICE_BITS;
    arena_tag(slab, span->slices, TAG_NONE);
}

/* The slot is free again; the lock of its shard is held. True when its slab is empty and no longer needed: nobody's, then. */
static bool free_slot(struct hard_shard *shard, uint32_t slab, const void *block) {
    struct span *span = arena_span(slab);
    unsigned number = span->size_class;
    struct class_slabs *class = &shard->classes[number];
    hard_slab_free(slab, hard_slab_slot(slab, block));
    shard->in_use -= hard_slot_bytes(number);
    if (span->free_blocks == 1) {
        link_slab(class, slab);
    }
    bool empty = span->free_blocks == span->blocks && class->first != class->last;
    if (unlikely(empty)) {
        take_out(shard, slab);
    }
    return empty;
}

/* One lock after the other, each for as many slots as belong to its shard. */
static void free_slots(void *const *slots, unsigned count) {
    struct hard_shard *locked = NULL;
    for (unsigned i = 0; i < count; i++) {
        uint32_t slab = hard_slab_of(slots[i]);
        struct hard_shard *shard = &hard_shards[arena_span(slab)->heap];
        if (shard != locked) {
            if (locked != NULL) {
                lock_free(&locked->lock);
            }
            lock_take(&shard->lock);
            locked = shard;
        }
        if (unlikely(free_slot(shard, slab, slots[i]))) {
            lock_free(&shard->lock);
            locked = NULL;
            unmake(slab);
        }
    }
    if (locked != NULL) {
        lock_free(&locked->lock);
    }
}

void hard_shard_give(unsigned number, unsigned class, void *const *slots, unsigned count) {
    enum { AT_A_TIME = 16 };
    struct hard_shard *shard = &hard_shards[number % HARD_SHARDS];
    while (count > 0) {
        unsigned now = (unsigned)bits_min(count, AT_A_TIME), freed = 0;
        void *no_longer[AT_A_TIME];
        lock_take(&shard->lock);
        for (unsigned i = 0; i < now; i++) {
            void *other = hard_held_swap(&shard->classes[class].held, slots[i], chance_of(shard));
            if (other != NULL) {
                no_longer[freed++] = other;
            }
        }
        shard->held += (now - freed) * hard_slot_bytes(class);
        lock_free(&shard->lock);
        free_slots(no_longer, freed);
        slots += now;
        count -= now;
    }
}

/* The last slab of a class stays where there is memory; in the middle of what others want as one piece it is in the way. */
static void give_last_up(struct hard_shard *shard, unsigned class) {
    struct class_slabs *slabs = &shard->classes[class];
    lock_take(&shard->lock);
    uint32_t slab = slabs->first;
    bool empty = slab != 0 && arena_span(slab)->free_blocks == arena_span(slab)->blocks;
    if (empty) {
        take_out(shard, slab);
    }
    lock_free(&shard->lock);
    if (empty) {
        unmake(slab);
    }
}

void hard_shard_reclaim(void) {
    for (unsigned i = 0; i < HARD_SHARDS; i++) {
        for (unsigned class = 0; class < CLASS_COUNT; class++) {
            void *block;
            do {
                lock_take(&hard_shards[i].lock);
                block = hard_held_pop(&hard_shards[i].classes[class].held);
                hard_shards[i].held -= block != NULL ? hard_slot_bytes(class) : 0;
                lock_free(&hard_shards[i].lock);
                free_slots(&block, block != NULL);
            } while (block != NULL);
            give_last_up(&hard_shards[i], class);
        }
    }
}

/* -- looking -------------------------------------------------------------------------------------------------- */

/* What is held back: nobody touches it while the lock is held. */
static void check_held(const struct hard_held *held, unsigned class) {
    for (uint32_t i = 0; i < held->row + held->ring; i++) {
        if (held->places[i] != NULL) {
            hard_check_clear(held->places[i], hard_slot_bytes(class));
        }
    }
}

void hard_shard_check(struct patience *patience) {
    for (unsigned i = 0; i < HARD_SHARDS; i++) {
        if (!lock_take_within(&hard_shards[i].lock, patience)) {
            continue;
        }
        for (unsigned class = 0; class < CLASS_COUNT; class++) {
            check_held(&hard_shards[i].classes[class].held, class);
        }
        lock_free(&hard_shards[i].lock);
    }
}

static bool holds(const struct hard_held *held, const void *block) {
    for (uint32_t i = 0; i < held->row + held->ring; i++) {
        if (held->places[i] == block) {
            return true;
        }
    }
    return false;
}

bool hard_shard_has(uint32_t slab, uint32_t slot, struct patience *patience) {
    unsigned class = arena_span(slab)->size_class;
    bool has = hard_slab_is_free(slab, slot); /* without the lock: the program stops whatever the answer is */
    for (unsigned i = 0; !has && i < HARD_SHARDS; i++) {
        if (lock_take_within(&hard_shards[i].lock, patience)) {
            has = holds(&hard_shards[i].classes[class].held, hard_slab_block(slab, slot));
            lock_free(&hard_shards[i].lock);
        }
    }
    return has;
}

/* Free slots of the slab that are not in it. relaxed, and without the locks of other shards: see check_lost. */
static OUT_OF_LINE void mark_free(uint32_t slab, uint64_t *marks) {
    for (unsigned i = 0; i < HARD_SHARDS; i++) {
        const struct hard_held *held = &hard_shards[i].classes[arena_span(slab)->size_class].held;
        void **places = __atomic_load_n(&held->places, __ATOMIC_ACQUIRE);
        uint32_t row = __atomic_load_n(&held->row, __ATOMIC_RELAXED);
        uint32_t ring = __atomic_load_n(&held->ring, __ATOMIC_RELAXED);
        for (uint32_t at = 0; places != NULL && at < row + ring; at++) {
            hard_mark(slab, marks, __atomic_load_n(&places[at], __ATOMIC_RELAXED));
        }
    }
    hard_mark_at_hand(slab, marks);
}

/* The lock of the slab's shard is held. Of slots that have no trailer, the first that is not marked. */
static OUT_OF_LINE uint32_t find_lost(uint32_t slab, const uint64_t *bare) {
    uint64_t marks[BITMAP_BYTES / sizeof(uint64_t)] = {0};
    mark_free(slab, marks);
    for (uint32_t slot = 0; slot < arena_span(slab)->blocks; slot++) {
        uint64_t bit = UINT64_C(1) << slot % 64;
        if ((bare[slot / 64] & ~marks[slot / 64] & bit) != 0 && hard_has_no_trailer(slab, slot)) {
            return slot;
        }
    }
    return HARD_NONE_LOST;
}

/* The lock of its shard is held. All of it again: meanwhile another slab may have come to lie here, or one of which this is the middle. */
static bool is_there(uint32_t slab, const struct hard_shard *shard) {
    uint32_t tag;
    return tag_of(arena_address(slab), &tag) && tag == TAG_HARD && arena_span(slab)->first == slab &&
           &hard_shards[arena_span(slab)->heap % HARD_SHARDS] == shard;
}

bool hard_shard_has_lost(uint32_t slab, uint32_t slot, struct patience *patience) {
    struct hard_shard *shard = &hard_shards[arena_span(slab)->heap % HARD_SHARDS];
    uint64_t bare[BITMAP_BYTES / sizeof(uint64_t)] = {0};
    if (!lock_take_within(&shard->lock, patience)) {
        return false;
    }
    bool lost = is_there(slab, shard) && slot < arena_span(slab)->blocks && !hard_slab_is_free(slab, slot);
    if (lost) {
        bare[slot / 64] = UINT64_C(1) << slot % 64;
        lost = find_lost(slab, bare) == slot;
    }
    lock_free(&shard->lock);
    return lost;
}

size_t hard_slab_check(uint32_t slab, struct patience *patience, uint32_t *lost) {
    const struct span *span = arena_span(slab);
    struct hard_shard *shard = &hard_shards[span->heap % HARD_SHARDS];
    size_t used = 0;
    uint64_t bare[BITMAP_BYTES / sizeof(uint64_t)] = {0};
    bool any_bare = false;
    if (!lock_take_within(&shard->lock, patience)) {
        return 0;
    }
    bool there = is_there(slab, shard);
    for (uint32_t slot = 0; there && slot < span->blocks; slot++) {
        bool is_free = hard_slab_is_free(slab, slot);
        if (span->size_class == HARD_NOTHING) {
            used += !is_free;
        } else if (is_free) {
            hard_check_clear(hard_slab_block(slab, slot), hard_slot_bytes(span->size_class));
        } else if (hard_check_used(slab, slot)) {
            used++;
        } else {
            bare[slot / 64] |= UINT64_C(1) << slot % 64;
            any_bare = true;
        }
    }
    *lost = any_bare ? find_lost(slab, bare) : HARD_NONE_LOST;
    lock_free(&shard->lock);
    return used;
}

void hard_shard_figures(struct hardened_figures *figures) {
    for (unsigned i = 0; i < HARD_SHARDS; i++) {
        lock_take(&hard_shards[i].lock);
        figures->slabs += hard_shards[i].slabs;
        figures->in_use += hard_shards[i].in_use - bits_min(hard_shards[i].held, hard_shards[i].in_use);
        figures->held += hard_shards[i].held;
        lock_free(&hard_shards[i].lock);
    }
}

void hard_shard_after_fork(void) {
    for (unsigned i = 0; i < HARD_SHARDS; i++) {
        if (atomic_load_explicit(&hard_shards[i].lock.state, memory_order_relaxed) !=
            0) { /* else no page is copied for it */
            lock_reset(&hard_shards[i].lock);
        }
    }
}
