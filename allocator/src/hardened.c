#include "hardened.h"

#include "elf_objects.h"
#include "fence.h"
#include "gate.h"
#include "hard_inside.h"
#include "limit.h"
#include "message.h"
#include "options.h"
#include "os.h"
#include "patience.h"
#include "street.h"

enum {
    AHEAD_BYTES = 2048, /* of each class, taken ahead, and given at a time; */
    AHEAD_MOST = 16,    /* in blocks, */
    AHEAD_PLACES = 520, /* of all classes */
    ASIDE_MOST = 256,
    LOOKS = 8, /* passes over a slot that have to agree before the program is stopped */
};

/* Instead of a trailer while a slot is on its way: taken or freed by a thread that need not be inside, or resized. No trailer, which has a 0. */
static const uint64_t TRAILER_BUSY = UINT64_C(0xF1F1F1F1F1F1F1F1);

/* Places that the classes need: eight up to 128 bytes, four in each doubling above (size_class.h), and of each class above 2 KiB one of either
 * kind. */
#define AHEAD_OF(bytes) (AHEAD_BYTES / (bytes) < AHEAD_MOST ? AHEAD_BYTES / (bytes) : AHEAD_MOST)
#define AHEAD_ABOVE(bytes) \
    (AHEAD_OF((bytes) / 4 * 5) + AHEAD_OF((bytes) / 4 * 6) + AHEAD_OF((bytes) / 4 * 7) + AHEAD_OF((bytes) * 2))
_Static_assert(AHEAD_BYTES == 2048 && AHEAD_BYTES / AHEAD_MOST == 128, "as they are summed up here");
_Static_assert(AHEAD_PLACES >= 2 * (8 * AHEAD_MOST + AHEAD_ABOVE(128) + AHEAD_ABOVE(256) + AHEAD_ABOVE(512) +
                                    AHEAD_ABOVE(1024) + (CLASS_COUNT - 8 - 4 * 4)),
               "a cache has places for what is taken ahead and what is freed of every class");
#undef AHEAD_ABOVE
#undef AHEAD_OF

/* The slots that a thread has taken in advance, and those that it has freed. Each class has places
 * for both in `places`: first the taken ones, then the freed ones. */
struct hard_cache {
    struct hard_cache *before; /* made before this one; they stay for ever */
    uint8_t taken[CLASS_COUNT], freed[CLASS_COUNT];
    uint8_t inherited
        [CLASS_COUNT]; /* instead of `taken`, after a fork: places that the parent knows, and no block comes from */
    bool is_copy; /* made by a fork, and nothing of it was taken or freed inside since */
    void *places[AHEAD_PLACES];
};

struct hard_secret hard_secret;

/* The last that was made. Release, acquire: who finds it finds those before it. */
static _Atomic(struct hard_cache *) last_cache;

/* Freed blocks that have no room for what shelter_park writes: whoever is inside next frees them. Each place changes by one exchange; release,
 * acquire: what their owners did comes before. `any_aside` is set after a place, and taken back before they are looked at. */
_Atomic(void *) hard_aside[ASIDE_MOST] LAID_LAST;
static _Atomic bool any_aside;

static struct {
    uint8_t most;
    uint16_t first;
} ahead[CLASS_COUNT]; /* written by hardened_open alone */

static void **taken_of(struct hard_cache *cache, unsigned class) { return &cache->places[ahead[class].first]; }
static void **freed_of(struct hard_cache *cache, unsigned class) { return taken_of(cache, class) + ahead[class].most; }

/* The key of a generation, and where each shard places its blocks: each from random bytes of its own. */
static void draw(uint32_t generation, bool may_ask) {
    struct {
        struct random_key key;
        uint64_t chances[HARD_SHARDS], chance;
    } drawn;
    if (may_ask) {
        os_random(&drawn, sizeof drawn);
    } else { /* a filter may end the process for the call: what the parent's key makes of the time */
        struct random_key parent = hard_secret.keys[hard_secret.generation];
        uint64_t now = os_nanoseconds();
        for (size_t done = 0; done < sizeof drawn; done += sizeof now, now += UINT64_C(1) << 60) {
            uint64_t word = random_hash(&parent, now);
            memcpy((char *)&drawn + done, &word, sizeof word);
        }
    }
    if (generation < HARD_GENERATIONS) {
        hard_secret.keys[generation] = drawn.key;
        hard_secret.generation = generation;
    }
    hard_large_open(drawn.chance | 1);
    for (unsigned shard = 0; shard < HARD_SHARDS; shard++) {
        hard_shard_open(shard, drawn.chances[shard] | 1);
    }
}

/* An access far before the first block meets pages that nobody may touch: a mebibyte of addresses, and a few slices that nobody can guess. */
static void guard_start(void) {
    enum { LEAST = (1 << 20) / SLICE_BYTES };
    uint64_t chance = os_secret() | 1;
    bool zero;
    uint32_t slices = LEAST + random_below(&chance, LEAST);
    uint32_t slice = option_value(OPTION_GUARD_PAGES) != 0 ? arena_take(slices, 1, ARENA_NO_USE, &zero) : 0;
    if (slice != 0) { /* for ever, and of no tag */
        (void)hard_guard(arena_address(slice), (size_t)slices << SLICE_BITS);
        limit_release((size_t)slices << SLICE_BITS);
    }
}

void hardened_open(void) {
    draw(0, true);
    hard_share_open();
    guard_start();
    uint16_t first = 0;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        ahead[class].most = (uint8_t)bits_min(bits_max(AHEAD_BYTES / class_bytes[class], 1), AHEAD_MOST);
        ahead[class].first = first;
        first = (uint16_t)(first + 2 * ahead[class].most);
    }
}

struct hard_cache *hardened_cache(void) {
    (void)street_bookkeeping_grow();
    struct hard_cache *cache = street_bookkeeping(sizeof(struct hard_cache));
    if (cache != NULL) {
        cache->before = atomic_load_explicit(&last_cache, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&last_cache, &cache->before, cache, memory_order_release,
                                                      memory_order_relaxed)) {
        }
    }
    return cache;
}

/* -- checks -------------------------------------------------------------------------------------------------- */

/* An object with a C++ runtime of its own may hide its operators: what its new makes is made by malloc, or what its delete frees is freed by
 * free. That is kept once it was found; a library may be loaded later. */
static bool may_be_hidden(enum made was, enum made made) {
    static _Atomic bool found; /* relaxed: every thread finds the same */
    if (was != MADE_BY_MALLOC && made != MADE_BY_MALLOC) {
        return false;
    }
    if (!atomic_load_explicit(&found, memory_order_relaxed) && elf_has_further_runtime()) {
        atomic_store_explicit(&found, true, memory_order_relaxed);
    }
    return atomic_load_explicit(&found, memory_order_relaxed);
}

static OUT_OF_LINE void check_told(const void *block, enum made was, enum made made, size_t size, size_t told) {
    if (option_value(OPTION_KINDS) == 0) {
        return;
    }
    if (made != MADE_ANYHOW && was != made && !may_be_hidden(was, made)) {
        message_mismatch(block, made_name(was), made_end(made));
    }
    if (told != SIZE_UNTOLD && told != size) {
        message_other_size(block, told, size);
    }
}

void hard_check_kind(const void *block, enum made was, enum made made, size_t size, size_t told) {
    if (unlikely(made != was) || unlikely(told != SIZE_UNTOLD && told != size)) {
        check_told(block, was, made, size, told);
    }
}

OUT_OF_LINE _Noreturn void hard_not_clear(const unsigned char *block, size_t bytes, const unsigned char *broken) {
    message_written_after_free(block, bytes, (size_t)(broken - block));
}

/* Another thread may take or free the slot at any time: its trailer is there as a whole, or not at all. */
static INLINE_ALWAYS uint64_t *trailer_at(uint32_t slab, uint32_t slot) {
    size_t bytes = hard_slot_bytes(arena_span(slab)->size_class);
    return (uint64_t *)(void *)(hard_slab_block(slab, slot) + bytes - TRAILER_BYTES);
}

static INLINE_ALWAYS uint64_t trailer_seen(uint32_t slab, uint32_t slot) {
    /* acquire: who sees a trailer sees the canary before it */
    return __atomic_load_n(trailer_at(slab, slot), __ATOMIC_ACQUIRE);
}

/* From now on the slot has none. No exchange, which would wait for all that the program has just written: of two threads that free a block at the
 * same instant both may find its trailer, and the second slot that comes back is found in the shard. acquire: what who took the block has
 * written is there; the fence: who sees what is written next finds no trailer when he looks again. */
static INLINE_ALWAYS uint64_t take_trailer(uint64_t *at) {
    uint64_t trailer = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    __atomic_store_n(at, TRAILER_BUSY, __ATOMIC_RELAXED);
    fence_release();
    return trailer;
}

/* The slot is free, and lies where free slots are looked for. release: who sees the 0 finds it there. */
static INLINE_ALWAYS void clear_trailer(uint64_t *at) { __atomic_store_n(at, 0, __ATOMIC_RELEASE); }

/* What lies before the block is the end of a slot, in use or not. */
static INLINE_ALWAYS bool ends_well(uint32_t slab, uint32_t slot) {
    uint64_t trailer = trailer_seen(slab, slot);
    size_t size;
    enum made made;
    uint64_t canary;
    return trailer == 0 || trailer_read(hard_slab_block(slab, slot), trailer, &size, &made, &canary) ||
           trailer == TRAILER_BUSY || option_value(OPTION_CLEAR) == 0;
}

static INLINE_ALWAYS const unsigned char *canary_broken_of(uint64_t canary, const unsigned char *block, size_t most,
                                                           size_t size) {
    const unsigned char *to = block + bits_min((size + CANARY_MOST) & ~(size_t)7, most);
    return option_value(OPTION_CANARIES) != 0 ? canary_broken(canary, block + size, to) : NULL;
}

/* Whether some thread has the slot at hand. Read while they go on: relaxed, the program stops whatever the answer is. */
static bool is_at_hand(const void *block, unsigned class) {
    struct hard_cache *cache = atomic_load_explicit(&last_cache, memory_order_acquire);
    for (; cache != NULL; cache = cache->before) {
        unsigned taken = __atomic_load_n(&cache->taken[class], __ATOMIC_RELAXED) +
                         __atomic_load_n(&cache->inherited[class], __ATOMIC_RELAXED);
        unsigned freed = __atomic_load_n(&cache->freed[class], __ATOMIC_RELAXED);
        for (unsigned i = 0; i < ahead[class].most; i++) {
            if ((i < taken && __atomic_load_n(&taken_of(cache, class)[i], __ATOMIC_RELAXED) == block) ||
                (i < freed && __atomic_load_n(&freed_of(cache, class)[i], __ATOMIC_RELAXED) == block)) {
                return true;
            }
        }
    }
    return false;
}

/* The trailer is none: the slot is free, or somebody has written over it. A slot that is on its way from one of the places where free ones lie to
 * another is there a moment later. */
static OUT_OF_LINE _Noreturn void stop_without_trailer(const unsigned char *block, size_t bytes) {
    enum { TRIES = 3 };
    uint32_t slab = hard_slab_of(block), slot = hard_slab_slot(slab, block);
    struct patience patience = patience_begin();
    for (unsigned try = 0; try < TRIES; try++) {
        if (is_at_hand(block, arena_span(slab)->size_class) || hard_shard_has(slab, slot, &patience)) {
            message_double_free(block, "size class", bytes);
        }
        os_nap(1);
    }
    message_overflow(block, "size class", bytes, 0);
}

/* Reads what the trailer tells of a block, and looks at the canary. */
static INLINE_ALWAYS void check_block(const unsigned char *block, size_t bytes, uint64_t trailer, size_t *size,
                                      enum made *made) {
    size_t most = bytes - TRAILER_BYTES;
    uint64_t canary;
    if (unlikely(trailer == 0) || unlikely(!trailer_read(block, trailer, size, made, &canary)) ||
        unlikely(*size > most)) {
        stop_without_trailer(block, bytes);
    }
    const unsigned char *broken = canary_broken_of(canary, block, most, *size);
    if (unlikely(broken != NULL)) {
        message_overflow(block, "size", *size, (size_t)(broken - block) - *size + 1);
    }
}

/* What one pass over a slot in use has found. */
struct look {
    uint64_t trailer; /* 0: taken ahead or freed, unless who writes zeros has gone over it */
    size_t size;
    const unsigned char *broken; /* NULL where the trailer itself is */
    unsigned char value;
};

/* False when something is wrong that was so from the first to the last instant of the pass, as far as the trailer tells: it is the same again where
 * the block was resized and resized back meanwhile, or freed and taken again. */
static INLINE_ALWAYS bool looks_sound(uint32_t slab, uint32_t slot, struct look *look) {
    const unsigned char *block = hard_slab_block(slab, slot);
    size_t most = hard_slot_bytes(arena_span(slab)->size_class) - TRAILER_BYTES;
    enum made made;
    uint64_t canary;
    *look = (struct look){.trailer = trailer_seen(slab, slot)};
    if (look->trailer == 0 || look->trailer == TRAILER_BUSY) {
        return true;
    }
    if (trailer_read(block, look->trailer, &look->size, &made, &canary) && look->size <= most) {
        look->broken = canary_broken_of(canary, block, most, look->size);
        if (likely(look->broken == NULL)) {
            return true;
        }
        look->value = __atomic_load_n(look->broken, __ATOMIC_RELAXED);
    }
    fence_acquire(); /* looks again after it has looked: see take_trailer */
    return trailer_seen(slab, slot) != look->trailer;
}

/* Several passes, between which whoever resizes or frees goes on, see the same only where it is so. */
static OUT_OF_LINE void check_again(uint32_t slab, uint32_t slot, const struct look *first) {
    for (unsigned pass = 1; pass < LOOKS; pass++) {
        struct look look;
        os_nap(1);
        if (looks_sound(slab, slot, &look) || look.trailer != first->trailer || look.broken != first->broken ||
            look.value != first->value) {
            return;
        }
    }
    const unsigned char *block = hard_slab_block(slab, slot);
    if (first->broken == NULL) {
        message_overflow(block, "size class", hard_slot_bytes(arena_span(slab)->size_class), 0);
    }
    message_overflow(block, "size", first->size, (size_t)(first->broken - block) - first->size + 1);
}

bool hard_check_used(uint32_t slab, uint32_t slot) {
    struct look look;
    if (unlikely(!looks_sound(slab, slot, &look))) {
        check_again(slab, slot, &look);
    }
    return look.trailer != 0 && look.trailer != TRAILER_BUSY;
}

bool hard_has_no_trailer(uint32_t slab, uint32_t slot) { return trailer_seen(slab, slot) == 0; }

/* relaxed: see check_lost */
void hard_mark_at_hand(uint32_t slab, uint64_t *marks) {
    unsigned class = arena_span(slab)->size_class;
    struct hard_cache *cache = atomic_load_explicit(&last_cache, memory_order_acquire);
    for (; cache != NULL; cache = cache->before) {
        unsigned taken = __atomic_load_n(&cache->taken[class], __ATOMIC_RELAXED) +
                         __atomic_load_n(&cache->inherited[class], __ATOMIC_RELAXED);
        unsigned freed = __atomic_load_n(&cache->freed[class], __ATOMIC_RELAXED);
        for (unsigned i = 0; i < ahead[class].most; i++) {
            if (i < taken) {
                hard_mark(slab, marks, __atomic_load_n(&taken_of(cache, class)[i], __ATOMIC_RELAXED));
            }
            if (i < freed) {
                hard_mark(slab, marks, __atomic_load_n(&freed_of(cache, class)[i], __ATOMIC_RELAXED));
            }
        }
    }
}

/* A slot in use that has no trailer and lies nowhere among free ones: zeros were written over its end, or a thread that is inside has it. So it is
 * looked at again, several times, while nobody else is inside. A thread that is not has written TRAILER_BUSY there. False when nothing is
 * certain. */
static OUT_OF_LINE bool check_lost(uint32_t slab, uint32_t slot, struct patience *patience, bool (*is_alone)(void)) {
    enum { TRIES = 4 * LOOKS };
    unsigned seen = 0;
    for (unsigned try = 0; try < TRIES && seen < LOOKS; try++) {
        bool alone = is_alone();
        if (!hard_shard_has_lost(slab, slot, patience)) {
            return true;
        }
        seen += alone && is_alone();
        os_nap(1);
    }
    if (seen < LOOKS) {
        return false;
    }
    message_overflow(hard_slab_block(slab, slot), "size class", hard_slot_bytes(arena_span(slab)->size_class), 0);
}

/* -- slots and blocks ------------------------------------------------------------------------------------------ */

/* The class of the least slots for such a block, CLASS_COUNT when it is a large one. */
static inline unsigned class_for(size_t size, size_t alignment) {
    if (size > HARD_SLOT_MOST - TRAILER_BYTES || alignment > HARD_SLOT_MOST) {
        return CLASS_COUNT;
    }
    unsigned class = class_of(bits_max(bits_max(size + TRAILER_BYTES, alignment), HARD_LEAST));
    while (alignment > 16 && class < CLASS_COUNT && class_bytes[class] % alignment != 0) {
        class++;
    }
    return class < CLASS_COUNT && class_bytes[class] <= HARD_SLOT_MOST ? class : CLASS_COUNT;
}

static inline bool is_nothing(size_t size, size_t alignment) { return size == 0 && alignment <= 16; }

static INLINE_ALWAYS void write_end(unsigned char *block, size_t bytes, size_t size, enum made made) {
    size_t most = bytes - TRAILER_BYTES;
    struct hard_end end = end_of(block, size, made, hard_secret.generation);
    if (option_value(OPTION_CANARIES) != 0) {
        canary_write(end.canary, block + size, block + bits_min((size + CANARY_MOST) & ~(size_t)7, most));
    }
    /* release: see trailer_seen */
    __atomic_store_n((uint64_t *)(void *)(block + most), end.trailer, __ATOMIC_RELEASE);
}

static OUT_OF_LINE void check_slot_again(unsigned char *slot, size_t bytes, uint64_t *trailer) {
    *trailer = *trailer == TRAILER_BUSY ? 0 : *trailer;
    hard_check_clear(slot, bytes);
}

/* Whether nothing was written to a slot that has just been taken: its trailer may be TRAILER_BUSY. */
static INLINE_ALWAYS void check_slot(unsigned char *slot, size_t bytes) {
    uint64_t *last = (uint64_t *)(void *)(slot + bytes - (size_t)2 * TRAILER_BYTES);
    if (unlikely(zero_broken(slot, bytes - (size_t)2 * TRAILER_BYTES) != NULL) || unlikely(last[0] != 0) ||
        unlikely(last[1] != TRAILER_BUSY && last[1] != 0)) {
        check_slot_again(slot, bytes, &last[1]);
    }
}

/* A slot becomes a block. */
static INLINE_ALWAYS void *block_in(unsigned char *slot, size_t bytes, size_t size, enum made made) {
    if (likely(option_value(OPTION_CLEAR) != 0)) {
        check_slot(slot, bytes);
    } else {
        zero_write(slot, bytes - (size_t)2 * TRAILER_BYTES);
        *(uint64_t *)(void *)((unsigned char *)slot + bytes - (size_t)2 * TRAILER_BYTES) = 0;
    }
    write_end(slot, bytes, size, made);
    return slot;
}

/* -- kept aside ---------------------------------------------------------------------------------------------- */

/* Of no bytes: the bit alone tells. */
static OUT_OF_LINE void check_nothing(uint32_t slab, uint32_t slot, const void *block) {
    if (hard_slab_is_free(slab, slot)) {
        message_double_free(block, "size class", hard_slot_bytes(HARD_NOTHING));
    }
}

/* Where all places are taken the block stays in use for ever. */
static void put_aside(void *block) {
    void *none = NULL;
    for (unsigned i = 0; i < ASIDE_MOST; i++, none = NULL) {
        if (atomic_compare_exchange_strong_explicit(&hard_aside[i], &none, block, memory_order_release,
                                                    memory_order_relaxed)) {
            atomic_store_explicit(&any_aside, true, memory_order_release);
            return;
        }
    }
}

static OUT_OF_LINE void give_all_aside(void) {
    for (unsigned i = 0; i < ASIDE_MOST; i++) {
        void *block = atomic_load_explicit(&hard_aside[i], memory_order_relaxed) == NULL
                          ? NULL
                          : atomic_exchange_explicit(&hard_aside[i], NULL, memory_order_acquire);
        uint32_t tag;
        if (block != NULL && tag_of(block, &tag) && tag == TAG_HARD_LARGE) {
            hard_large_give(block, MADE_ANYHOW, SIZE_UNTOLD);
        } else if (block != NULL) {
            uint32_t slab = hard_slab_of(block);
            check_nothing(slab, hard_slab_slot(slab, block), block);
            hard_shard_give(arena_span(slab)->heap, HARD_NOTHING, &block, 1);
        }
    }
}

static inline void give_aside(void) {
    if (unlikely(atomic_load_explicit(&any_aside, memory_order_relaxed)) &&
        atomic_exchange_explicit(&any_aside, false, memory_order_acquire)) {
        give_all_aside();
    }
}

bool hardened_make_room(void *block, uint32_t tag) {
    uint32_t slab = hard_slab_of(block);
    unsigned class = arena_span(slab)->size_class; /* not of a large block */
    if (tag == TAG_HARD_LARGE ? !hard_large_has_room(block) : class == HARD_NOTHING) {
        put_aside(block);
        return false;
    }
    if (tag == TAG_HARD) {
        uint32_t slot = hard_slab_slot(slab, block);
        size_t size;
        enum made made;
        check_block(block, class_bytes[class], trailer_seen(slab, slot), &size, &made);
        if (size < sizeof(void *)) { /* the slot has more: its canary begins behind them from now on */
            (void)take_trailer(trailer_at(slab, slot));
            write_end(block, class_bytes[class], sizeof(void *), made);
        }
    }
    return true;
}

/* -- taking -------------------------------------------------------------------------------------------------- */

static INLINE_ALWAYS void *take_ahead(struct hard_cache *cache, unsigned class) {
    unsigned count = cache->taken[class];
    if (unlikely(count == 0)) {
        return NULL;
    }
    void *slot = taken_of(cache, class)[count - 1];
    uint64_t *trailer = (uint64_t *)(void *)((unsigned char *)slot + class_bytes[class] - TRAILER_BYTES);
    if (likely(*trailer == 0)) { /* else it was written after it was freed, which block_in finds */
        __atomic_store_n(trailer, TRAILER_BUSY, __ATOMIC_RELAXED);
    }
    /* release: who sees the place empty sees that the slot is on its way */
    __atomic_store_n(&cache->taken[class], (uint8_t)(count - 1), __ATOMIC_RELEASE);
    return slot;
}

void *hardened_take_ahead(struct hard_cache *cache, size_t size, size_t alignment, enum made made) {
    unsigned class = class_for(size, alignment);
    if (unlikely(cache == NULL || class == CLASS_COUNT || size == 0 || !gate_is_right())) {
        return NULL;
    }
    void *slot = take_ahead(cache, class);
    return likely(slot != NULL) ? block_in(slot, class_bytes[class], size, made) : NULL;
}

/* Copied first: a signal's handler that frees while this waits for a lock puts its block into the same places. */
static void give_all(void *const *places, uint8_t *count, unsigned shard, unsigned class) {
    void *slots[AHEAD_MOST];
    unsigned had = *count;
    memcpy(slots, places, had * sizeof *slots);
    *count = 0;
    hard_shard_give(shard, class, slots, had);
}

static inline void give_inherited(struct hard_cache *cache, unsigned shard, unsigned class) {
    if (unlikely(cache->inherited[class] > 0)) {
        give_all(taken_of(cache, class), &cache->inherited[class], shard, class);
    }
}

/* A small block with pages of its own. */
static OUT_OF_LINE void *take_with_pages(size_t size, size_t alignment, enum made made) {
    void *block = hard_large_take(size, alignment, made, true);
    if (block == NULL) {
        hard_share_give(bits_round_up(size, os_page_bytes()));
    }
    return block;
}

void *hardened_take(struct hard_cache *cache, unsigned shard, size_t size, size_t alignment, enum made made) {
    void *slot = NULL;
    give_aside();
    if (unlikely(is_nothing(size, alignment))) {
        (void)hard_shard_take(shard, HARD_NOTHING, &slot, 1);
        return slot;
    }
    unsigned class = class_for(size, alignment);
    if (unlikely(class == CLASS_COUNT)) {
        return hard_large_take(size, alignment, made, false); /* which may be aligned, and of no bytes */
    }
    if (unlikely(hard_share_take(size)) && (slot = take_with_pages(size, alignment, made)) != NULL) {
        return slot;
    }
    if (unlikely(cache == NULL)) {
        (void)hard_shard_take(shard, class, &slot, 1);
    } else if (likely((slot = take_ahead(cache, class)) == NULL)) { /* not of no bytes and aligned, nor after a fork */
        give_inherited(cache, shard, class);
        cache->taken[class] = (uint8_t)hard_shard_take(shard, class, taken_of(cache, class), ahead[class].most);
        slot = take_ahead(cache, class);
    }
    return likely(slot != NULL) ? block_in(slot, class_bytes[class], size, made) : NULL;
}

OUT_OF_LINE void *hardened_take_anywhere(size_t size, size_t alignment, enum made made) {
    for (unsigned class = class_for(size, alignment); class < CLASS_COUNT; class++) {
        void *slot = class_bytes[class] % alignment == 0 ? hard_shard_take_anywhere(class) : NULL;
        if (slot != NULL) {
            return block_in(slot, class_bytes[class], size, made);
        }
    }
    return NULL;
}

/* -- giving -------------------------------------------------------------------------------------------------- */

enum hard_given hardened_give_ahead(struct hard_cache *cache, void *block, enum made made, size_t told, bool inside) {
    uint32_t slab = hard_slab_of(block);
    uint32_t slot = hard_slab_slot(slab, block);
    unsigned class = arena_span(slab)->size_class;
    bool nothing = class == HARD_NOTHING;
    bool room = likely(cache != NULL) && likely(!nothing) && likely(cache->freed[class] < ahead[class].most);
    if (unlikely(!room) && !inside) {
        return HARD_FULL;
    }
    if (unlikely(nothing)) {
        check_nothing(slab, slot, block);
        hard_check_kind(block, made, made, 0, told);
        return HARD_CLEARED;
    }
    size_t bytes = class_bytes[class], size;
    enum made was;
    uint64_t *last = (uint64_t *)(void *)((unsigned char *)block + bytes - (size_t)2 * TRAILER_BYTES);
    uint64_t trailer = take_trailer(&last[1]);
    check_block(block, bytes, trailer, &size, &was);
    hard_check_kind(block, was, made, size, told);
    if (slot > 0 && unlikely(!ends_well(slab, slot - 1))) {
        message_underflow(block, "size", size, 0);
    }
    if (likely(option_value(OPTION_CLEAR) != 0)) {
        zero_write(block, bytes - (size_t)2 * TRAILER_BYTES);
        last[0] = 0;
    }
    if (likely(room)) {
        unsigned count = cache->freed[class];
        freed_of(cache, class)[count] = block;
        cache->freed[class] = (uint8_t)(count + 1);
    }
    clear_trailer(&last[1]);
    return likely(room) ? HARD_GIVEN : HARD_CLEARED;
}

static void give_freed(struct hard_cache *cache, unsigned shard, unsigned class) {
    give_all(freed_of(cache, class), &cache->freed[class], shard, class);
}

void hardened_give_cleared(struct hard_cache *cache, unsigned shard, void *block) {
    give_aside();
    unsigned class = arena_span(hard_slab_of(block))->size_class;
    if (cache != NULL && class != HARD_NOTHING) {
        give_freed(cache, shard, class);
    }
    hard_shard_give(shard, class, &block, 1);
}

void hardened_give_large(void *block, enum made made, size_t size) {
    give_aside();
    hard_large_give(block, made, size);
}

/* A fork has taken the child's other threads where they stood: one may have been about to take a slot, or just have freed it. */
static void settle(void *const *places, unsigned count, unsigned class) {
    for (unsigned i = 0; i < count; i++) {
        uint64_t *trailer = (uint64_t *)(void *)((unsigned char *)places[i] + class_bytes[class] - TRAILER_BYTES);
        if (unlikely(*trailer == TRAILER_BUSY)) {
            clear_trailer(trailer);
        }
    }
}

void hardened_flush(struct hard_cache *cache, unsigned shard) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        settle(freed_of(cache, class), cache->freed[class], class);
        settle(taken_of(cache, class), (unsigned)cache->taken[class] + cache->inherited[class], class);
        give_freed(cache, shard, class);
        give_inherited(cache, shard, class);
        give_all(taken_of(cache, class), &cache->taken[class], shard, class);
    }
}

/* -- asking and resizing -------------------------------------------------------------------------------------- */

static bool is_large(const void *block) {
    uint32_t tag;
    return tag_of(block, &tag) && tag == TAG_HARD_LARGE;
}

bool hardened_size(const void *block, size_t *size) {
    *size = 0;
    if (is_large(block)) {
        return hard_large_size(block, size);
    }
    uint32_t slab = hard_slab_of(block), slot = hard_slab_slot(slab, block);
    unsigned class = arena_span(slab)->size_class;
    if (class == HARD_NOTHING) {
        return !hard_slab_is_free(slab, slot);
    }
    uint64_t trailer = trailer_seen(slab, slot);
    enum made made;
    if (trailer != 0) {
        check_block(block, class_bytes[class], trailer, size, &made);
    }
    return trailer != 0;
}

static void resize_in_slot(void *block, size_t size) {
    uint32_t slab = hard_slab_of(block);
    size_t bytes = class_bytes[arena_span(slab)->size_class], had;
    enum made made;
    check_block(block, bytes, take_trailer(trailer_at(slab, hard_slab_slot(slab, block))), &had, &made);
    hard_check_kind(block, made, MADE_BY_MALLOC, had, SIZE_UNTOLD);
    if (size > had) { /* a canary is nobody's to read */
        for (size_t at = had; at < size && at - had < CANARY_MOST; at++) {
            ((volatile unsigned char *)block)[at] = 0;
        }
    }
    write_end(block, bytes, size, made);
}

bool hardened_resize(void *block, size_t size) {
    unsigned class = arena_span(hard_slab_of(block))->size_class;
    if (is_large(block) || class == HARD_NOTHING || size == 0 || class_for(size, 1) != class) {
        return false;
    }
    resize_in_slot(block, size);
    return true;
}

void hardened_shrink(void *block, size_t size) {
    if (is_large(block)) {
        hard_large_shrink(block, size);
    } else {
        resize_in_slot(block, size);
    }
}

/* -- all of it ------------------------------------------------------------------------------------------------ */

/* Not a slot on its way: a handler of this thread's that looks, as exit does, may have interrupted the fast path that takes or frees it. */
static void check_place(void *slot, unsigned class) {
    const uint64_t *trailer = (uint64_t *)(void *)((unsigned char *)slot + class_bytes[class] - TRAILER_BYTES);
    if (*trailer != TRAILER_BUSY) {
        hard_check_clear(slot, class_bytes[class]);
    }
}

/* What the calling thread has at hand. */
static void check_ahead(const struct hard_cache *cache) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        void *const *places = &cache->places[ahead[class].first];
        for (unsigned i = 0; i < cache->taken[class] + cache->inherited[class]; i++) {
            check_place(places[i], class);
        }
        for (unsigned i = 0; i < cache->freed[class]; i++) {
            check_place(places[ahead[class].most + i], class);
        }
    }
}

size_t hardened_check(const struct hard_cache *cache, struct patience *patience, bool (*is_alone)(void)) {
    size_t used = 0;
    bool certain = true;
    uint32_t tag;
    if (patience == NULL) { /* who has little looks only */
        give_aside();
    }
    if (cache != NULL) {
        check_ahead(cache);
    }
    hard_shard_check(patience);
    for (uint32_t slice = arena_first_slice(); tag_of(arena_address(slice), &tag); slice++) {
        if (hardened_owns(tag) && arena_span(slice)->first == slice) {
            uint32_t lost = HARD_NONE_LOST;
            used += tag == TAG_HARD ? hard_slab_check(slice, patience, &lost) : hard_large_check(slice, patience);
            certain = certain && (lost == HARD_NONE_LOST || check_lost(slice, lost, patience, is_alone));
        }
    }
    return used;
}

size_t hardened_purge(bool all, bool *more) { return hard_large_purge(all, more); }

void hardened_reclaim(void) {
    give_aside();
    (void)hard_large_reclaim();
    hard_shard_reclaim();
    hard_closed_open();
}

void hardened_figures(struct hardened_figures *figures) {
    *figures = (struct hardened_figures){0};
    hard_shard_figures(figures);
    hard_large_figures(&figures->held_spans);
    figures->free = figures->slabs - bits_min(figures->slabs, figures->in_use);
    figures->unguarded = hard_unguarded();
}

void hardened_after_fork_in_parent(void) { hard_share_after_fork(); }

void hardened_after_fork(struct hard_cache *cache, bool may_ask) {
    hard_shard_after_fork();
    hard_slab_after_fork();
    hard_large_after_fork();
    hard_share_after_fork();
    hard_closed_after_fork();
    draw(hard_secret.generation + 1, may_ask);
    if (cache != NULL) {
        cache->is_copy = true;
    }
}

/* Not as soon as the child is put right: it may be in a handler that has interrupted hardened_take_ahead, and fork again there. */
void hardened_inherit(struct hard_cache *cache) {
    if (likely(!cache->is_copy)) {
        return;
    }
    cache->is_copy = false;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        cache->inherited[class] = (uint8_t)(cache->inherited[class] + cache->taken[class]); /* one of them is 0 */
        cache->taken[class] = 0;
    }
}
