#include "thread_cache.h"

#include "arena.h"
#include "guarded.h"
#include "hardened.h"
#include "keeping.h"
#include "large.h"
#include "last_resort.h"
#include "message.h"
#include "os.h"
#include "shelter.h"
#include "slab.h"
#include "thread_inside.h"

/* A static link takes only the objects that something names. */
__attribute__((used)) static void (*const with_last_look)(void) = thread_last_look;

enum {
    CAPACITY_FIRST = 16,
    CAPACITY_BYTES = 64 * 1024,
    GIVEN_BYTES = 16 * 1024, /* what of a slot is only ever given: one magazine, of so many bytes at most */
    WORKING_BYTES = 32 * 1024, /* ... but for a thread at work, however many sleep */
    CAPACITY_THREADS = 8, /* with more threads at work than this, each has a share of what so many would have */
    LOOK_EXCHANGES = 256, /* exchanges of magazines between two looks at what others wait for, and at the other heaps */
    WISH_EXCHANGES = 32, /* ... and between two wishes for the keeper, */
    ROOM_LITTLE = 16 * 1024 * 1024,
    WISH_BYTES = 4 * 1024 * 1024, /* while the magazines of all threads have room for so much */
    ROOM_MOST = 8 * 1024 * 1024, /* of room in magazines that many threads do not use at the moment: */
    ROOM_SHARE = 256, /* this share of what is left of it is each one's, */
    ROOM_LEAST = 8 * 1024, /* and at least so much */
    ROOM_ALL = 48 * 1024 * 1024, /* of room in all magazines of many threads, about two thirds of which hold blocks: */
    ROOM_OWN_SHARE = 4, /* this share of what is left of it may be one thread's, */
    ROOM_OWN = 128 * 1024, /* and at least so much; */
    ROOM_STEP = 4, /* a slot grows by this share of what its thread has left of that */
    UNTOLD_SHARE = 8, /* this share of its room a thread may have more or less than it has told the others */
    CROWD_BYTES = 256 * 1024, /* a magazine with one block for every thread, from which on a thread earns it */
    EARNING_VISITS = 8, /* by so many slow paths */
    SWEEP_SLOTS = 2, /* emptied in one visit while a sweep goes on */
    PARKED_BLOCKS = 16, /* freed in one visit of what was parked during a fork */
};

/* Why the slots are gone through, a few at each visit. */
enum sweep {
    SWEEP_NONE,
    SWEEP_EXCESS, /* the thread has too much: those not used lately; it gives up their room too */
    SWEEP_GIVEN, /* what is only given: others may wait for it */
    SWEEP_IDLE, /* those not used since the last season */
    SWEEP_ALL, /* everything: the thread has moved to another heap */
};

/* From where the thread takes blocks of the class. */
static unsigned own_slot(const struct thread_cache *cache, unsigned class) {
    return slot_of(heap_number(cache->heap), class);
}

/* From now on blocks are popped from the slot: others keep their hands off what is loaded. */
static inline void begin_taking(struct thread_cache *cache, unsigned slot) {
    if (unlikely(cache->slots[slot].taken == TAKING_NOT)) {
        bool aside = sampling_is_dense();
        cache->slots[slot].taken = aside ? TAKING_ASIDE : TAKING;
        if (!aside) {
            thread_point_steps(slot_class(slot), &cache->slots[slot]);
        }
    }
}

/* -- capacities ---------------------------------------------------------------------------------------------- */

static size_t share_of(unsigned threads) {
    return threads <= CAPACITY_THREADS ? CAPACITY_BYTES : CAPACITY_BYTES * CAPACITY_THREADS / threads;
}

/* Blocks in a magazine at most. What all threads together may cache is bounded however many there are: but for one block in each
 * magazine, at about 32 MiB. While the magazines of all have little room, only those threads share it that work: others sleep, and took
 * little. Later who works is left some all the same: else each of its calls would go to a heap, for as long as others sleep. That room is asked
 * for only where it decides: many threads change it all the time. */
static unsigned capacity_most(struct thread_cache *cache, unsigned class) {
    size_t of_workers = share_of(thread_workers(cache));
    size_t of_all = share_of(atomic_load_explicit(&registry.count, memory_order_relaxed));
    size_t bytes = bits_max(of_all, bits_min(of_workers, WORKING_BYTES));
    if (of_workers > bytes && atomic_load_explicit(&registry.room, memory_order_relaxed) < ROOM_LITTLE) {
        bytes = of_workers;
    }
    return (unsigned)bits_min(bits_max(bytes / class_bytes[class], 1), MAGAZINE_MOST);
}

/* What its magazines may hold has changed. All threads read and change the sum, so small changes are kept back: the sum is right within an eighth,
 * and where there are no more than a few magazines, exactly. */
static void tell_room(struct thread_cache *cache) {
    size_t untold = cache->room - cache->told; /* modulo 2^64, as the sum */
    size_t most = cache->told / UNTOLD_SHARE;
    if (untold + most > 2 * most) {
        cache->told = cache->room;
        atomic_fetch_add_explicit(&registry.room, untold, memory_order_relaxed);
    }
}

/* Blocks by which both magazines of a slot may grow now. If threads are many, all magazines together have a bound,
 * whatever the classes are: a thread's share is one of what is left, so that those who sleep with what they got leave
 * some to each that comes. Up to the share in a class that all have alike a magazine always grows. */
static OUT_OF_LINE size_t growth_most(const struct thread_cache *cache, size_t before, unsigned class) {
    size_t threads = atomic_load_explicit(&registry.count, memory_order_relaxed); /* any recent answer will do */
    if (threads <= CAPACITY_THREADS) {
        return MAGAZINE_MOST;
    }
    size_t left = ROOM_ALL - bits_min(atomic_load_explicit(&registry.room, memory_order_relaxed), ROOM_ALL);
    size_t own = bits_max(left / ROOM_OWN_SHARE, ROOM_OWN);
    size_t growth = (own - bits_min(cache->room, own)) / ROOM_STEP / (2 * (size_t)class_bytes[class]);
    size_t alike = share_of((unsigned)threads) / class_bytes[class];
    return bits_max(growth, alike - bits_min(before, alike));
}

/* A class in use earns larger magazines: twice as large at each visit to the heap, up to the most. */
static unsigned grown_capacity(struct thread_cache *cache, struct cache_class *magazines, unsigned class) {
    size_t before = magazines->capacity;
    size_t capacity = bits_min(before == 0 ? CAPACITY_FIRST : 2 * before, capacity_most(cache, class));
    if (unlikely(capacity > before)) {
        capacity = bits_max(bits_min(capacity, before + growth_most(cache, before, class)), 1);
    }
    if (capacity != before) {
        magazines->capacity = (uint8_t)capacity;
        /* Of two magazines. Where there is less than before, the sum is right all the same, modulo 2^64. */
        cache->room += 2 * (capacity - before) * class_bytes[class];
        tell_room(cache);
    }
    return (unsigned)capacity;
}

/* With many threads, each keeps the magazines that it uses and little else, since no other thread
 * can take the loaded magazines of one that sleeps. The bound is a share of the room that is left:
 * early threads have no more than later ones, and the sum is bounded. */
static bool has_too_much(const struct thread_cache *cache) {
    size_t threads = atomic_load_explicit(&registry.count, memory_order_relaxed); /* any recent answer will do */
    size_t room = atomic_load_explicit(&registry.room, memory_order_relaxed);
    size_t left = ROOM_MOST - bits_min(room, ROOM_MOST);
    return threads > CAPACITY_THREADS && cache->room > bits_max(left / ROOM_SHARE, ROOM_LEAST);
}

/* What is emptied earns its magazines anew. */
static void give_up_room(struct thread_cache *cache, unsigned slot) {
    struct cache_class *magazines = &cache->slots[slot];
    cache->room -= 2 * (size_t)magazines->capacity * class_bytes[slot_class(slot)];
    magazines->capacity = 0;
    tell_room(cache);
}

/* ... of blocks that the thread only gives, fewer: others may wait for them. */
static unsigned capacity_here(struct thread_cache *cache, struct cache_class *magazines, unsigned class) {
    unsigned capacity = grown_capacity(cache, magazines, class);
    return magazines->taken ? capacity : (unsigned)bits_min(capacity, bits_max(GIVEN_BYTES / class_bytes[class], 1));
}

/* With many threads even one cached block per magazine adds up. A thread that touches a class only
 * once therefore caches none of it, since no other thread can take that block while it sleeps. */
static bool is_unearned(const struct thread_cache *cache, const struct cache_class *magazines, unsigned class) {
    size_t threads = atomic_load_explicit(&registry.count, memory_order_relaxed); /* any recent answer will do */
    size_t crowd = threads * (class_bytes[class] + MAGAZINE_BYTES);
    if (magazines->top != VOID_TOP || threads <= CAPACITY_THREADS) {
        return false;
    }
    bool earned = likely(crowd <= CROWD_BYTES) || magazines->visits > EARNING_VISITS * crowd / CROWD_BYTES;
    return !earned || growth_most(cache, 0, class) == 0;
}

/* -- now and then -------------------------------------------------------------------------------------------- */

/* A class that was used and has its magazines just as they were looks idle too; it is filled again. */
static bool is_idle(struct cache_class *magazines) {
    uint16_t top = (uint16_t)(uintptr_t)magazines->top, visits = (uint16_t)magazines->visits;
    bool idle = magazines->last_top == top && magazines->last_visits == visits;
    magazines->last_top = top;
    magazines->last_visits = visits;
    return idle;
}

static bool is_to_be_emptied(struct cache_class *magazines, enum sweep sweep) {
    bool idle = (sweep == SWEEP_IDLE || sweep == SWEEP_EXCESS) && is_idle(magazines);
    return magazines->top != VOID_TOP && (sweep == SWEEP_ALL || idle || (sweep == SWEEP_GIVEN && !magazines->taken));
}

/* Goes on with what was begun. */
static OUT_OF_LINE void sweep_on(struct thread_cache *cache) {
    unsigned emptied = 0;
    unsigned slot = cache->swept;
    while (slot < SLOT_COUNT && emptied < SWEEP_SLOTS) {
        if (is_to_be_emptied(&cache->slots[slot], cache->sweep)) {
            cache_flush_slot(cache, slot);
            if (cache->sweep == SWEEP_EXCESS) {
                give_up_room(cache, slot);
            }
            emptied++;
        }
        slot++;
    }
    cache->swept = (uint8_t)slot;
    if (slot == SLOT_COUNT) {
        cache->sweep = SWEEP_NONE;
    }
}
_Static_assert(SLOT_COUNT <= UINT8_MAX, "a slot's number fits");

/* What is more urgent takes the place of what was begun. */
static void begin_sweep(struct thread_cache *cache, enum sweep sweep) {
    if (sweep > cache->sweep) {
        cache->sweep = (uint8_t)sweep;
        cache->swept = 1;
    }
}

/* Follows the heap into a new season: a few hundred blocks of a class that is no longer in use can keep as many slabs from being used
 * for another. */
static inline void follow_season(struct thread_cache *cache) {
    uint32_t season = heap_season(cache->heap);
    if (unlikely(season != cache->season)) {
        cache->season = season;
        begin_sweep(cache, SWEEP_IDLE);
    }
}

/* What others may wait for does not grow old here, and threads spread over the heaps that others have left. The blocks of the heap
 * before would go home one magazine after the other, and lie there in depots. */
static OUT_OF_LINE void look_round(struct thread_cache *cache) {
    cache->looked = cache->exchanges;
    begin_sweep(cache, heap_move(&cache->heap) ? SWEEP_ALL : SWEEP_GIVEN);
}

/* Threads that go to sleep after their work leave memory in their magazines that is neither a free span nor free in a slab,
 * and only the keeper can tell that they sleep. */
static OUT_OF_LINE void wish(struct thread_cache *cache) {
    cache->wished = cache->exchanges;
    thread_look_at_clock();
    if (has_too_much(cache)) {
        begin_sweep(cache, SWEEP_EXCESS);
    }
    if (atomic_load_explicit(&registry.room, memory_order_relaxed) >= WISH_BYTES) {
        keeper_wish();
    }
}

/* What threads have left that are gone, and what could not be freed while a fork was under way. */
static inline void look_for_others(void) {
    if (unlikely(atomic_load_explicit(&registry.orphans, memory_order_relaxed) != 0) && thread_may_adopt()) {
        (void)thread_adopt_some();
    }
    if (shelter_has_parked()) {
        (void)thread_free_parked();
    }
}

void thread_cache_look(void) { look_for_others(); }

static inline void look_round_sometimes(struct thread_cache *cache) {
    if (unlikely(cache->exchanges - cache->wished >= WISH_EXCHANGES)) {
        wish(cache);
    }
    if (unlikely(cache->exchanges - cache->looked >= LOOK_EXCHANGES)) {
        look_round(cache);
    }
    if (unlikely(cache->sweep != SWEEP_NONE)) {
        sweep_on(cache);
    }
    look_for_others();
}

/* -- taking -------------------------------------------------------------------------------------------------- */

/* Counts what a heap gave for an empty magazine, the slot's next. */
static void count_exchange(struct thread_cache *cache, struct cache_class *magazines) {
    cache->exchanges++;
    magazines->surplus = false;
}

/* Blocks for an empty slot: its other magazine, or one of the heap's. Returns the top of what is loaded then; NULL when there is no memory
 * for a first magazine, and `empty` stays. */
static void **refill(struct thread_cache *cache, struct cache_class *magazines, unsigned class, void **empty) {
    void **top = magazines->previous;
    if (top != NULL && !magazine_is_empty(top)) {
        magazines->previous = empty;
        return magazine_unfold(top);
    }
    top = heap_exchange_empty(heap_of(cache, class), class, empty == VOID_TOP ? NULL : empty,
                              grown_capacity(cache, magazines, class));
    if (top != NULL) {
        count_exchange(cache, magazines);
    }
    return top;
}

static void *take_from(struct thread_cache *cache, unsigned class) {
    unsigned slot = own_slot(cache, class);
    struct cache_class *magazines = &cache->slots[slot];
    magazines->visits++;
    follow_season(cache);
    if (unlikely(is_unearned(cache, magazines, class))) {
        cache->exchanges++;
        struct zeros zeros;
        return heap_take_one(heap_of(cache, class), class, &zeros);
    }
    begin_taking(cache, slot);
    void **top = slot_unload(magazines);
    if (magazine_is_empty(top)) {
        void **full = refill(cache, magazines, class, top);
        if (full == NULL) {
            slot_load(magazines, top);
            struct zeros zeros;
            return heap_take_one(heap_of(cache, class), class, &zeros);
        }
        top = full;
    }
    if (unlikely(magazine_is_empty(top))) {
        slot_load(magazines, top);
        return NULL;
    }
    void *block = *top;
    if (unlikely(!magazine_is_block(block))) { /* freed, and popped by nobody */
        message_interior_pointer(block, "size class", class_bytes[class]);
    }
    slot_load(magazines, top - 1);
    return block;
}

static bool always(void) { return true; }

static OUT_OF_LINE void reclaim_caches(void) {
    if (thread_view.state == THREAD_ALIVE) {
        cache_flush(thread_view.cache);
    }
    while (shelter_has_parked() && thread_free_parked()) {
    }
    borrow_caches(thread_view.cache, true, always);
    thread_adopt_all(); /* others' hands do not reach what such a thread took from last */
    heap_reclaim();
}

void thread_cache_reclaim(void) {
    guarded_reclaim();
    reclaim_caches();
    arena_make_room();
}

/* -- the last resort ------------------------------------------------------------------------------------------ */

struct small_request {
    struct request request; /* first */
    unsigned class;
};

static unsigned class_of_request(const struct request *request) {
    return ((const struct small_request *)(const void *)request)->class;
}

static void *take_one(const struct request *request, enum pass pass) {
    unsigned class = class_of_request(request);
    struct heap *heap = pass == PASS_CACHE ? heap_of(thread_view.cache, class) : heap_for(heap_numbered(0), class);
    struct zeros zeros;
    return heap_take_one(heap, class, &zeros);
}

static void *take_elsewhere(const struct request *request, enum pass pass) {
    (void)pass;
    return heap_take_anywhere(class_of_request(request), request->alignment);
}

static void reclaim(enum pass pass) {
    (void)pass;
    thread_cache_reclaim();
}

static OUT_OF_LINE void *take_last(unsigned class, size_t alignment, enum pass *pass) {
    size_t slab = (size_t)class_slices[class] << SLICE_BITS;
    struct small_request small = {{class_bytes[class], alignment, slab, take_one, take_elsewhere, reclaim}, class};
    return last_resort(&small.request, pass);
}

/* -- taking, again -------------------------------------------------------------------------------------------- */

OUT_OF_LINE void *thread_cache_take(unsigned class, size_t alignment) {
    void *block;
    enum pass pass = thread_go_inside();
    if (unlikely(pass == PASS_REFUSED) &&
        (pass = thread_take_shelter(class_bytes[class], alignment, &block)) == PASS_REFUSED) {
        return block;
    }
    if (likely(pass == PASS_CACHE)) {
        struct thread_cache *cache = thread_view.cache;
        look_round_sometimes(cache);
        block = take_from(cache, class);
        if (unlikely(((uintptr_t)block & (alignment - 1)) != 0)) { /* a lent one */
            struct zeros zeros;
            heap_give(&block, 1);
            block = heap_take_one(heap_of(cache, class), class, &zeros);
        }
    } else {
        struct zeros zeros;
        block = heap_take_one(heap_numbered(0), class, &zeros);
    }
    if (unlikely(block == NULL)) {
        block = take_last(class, alignment, &pass);
    }
    thread_come_out(pass);
    thread_serve_wishes();
    return block;
}

/* Whether the thread has blocks of the class that were in use before, or gets some from its heap. To clear one costs less than
 * the page fault of a fresh one. */
static bool has_used(struct thread_cache *cache, unsigned class) {
    struct cache_class *magazines = &cache->slots[own_slot(cache, class)];
    void **loaded = slot_unload(magazines);
    bool has_some = !magazine_is_empty(loaded);
    slot_load(magazines, loaded);
    if (has_some || (magazines->previous != NULL && !magazine_is_empty(magazines->previous))) {
        return true;
    }
    if (magazines->top == VOID_TOP) {
        return false;
    }
    unsigned capacity = capacity_here(cache, magazines, class); /* there may be none, and the slot only given to */
    void **top = heap_exchange_used(heap_of(cache, class), class, slot_unload(magazines), capacity);
    slot_load(magazines, top);
    if (magazine_is_empty(top)) {
        return false;
    }
    count_exchange(cache, magazines);
    return true;
}

static void *take_zero(struct thread_cache *cache, unsigned class, struct zeros *zeros) {
    if (cache == NULL) {
        return heap_take_one(heap_numbered(0), class, zeros);
    }
    return has_used(cache, class) ? take_from(cache, class) : heap_take_one(heap_of(cache, class), class, zeros);
}

void *thread_cache_take_zero(unsigned class, struct zeros *zeros) {
    void *block;
    enum pass pass = thread_go_inside();
    if (unlikely(pass == PASS_REFUSED) && (pass = thread_take_shelter(class_bytes[class], 1, &block)) == PASS_REFUSED) {
        *zeros = (struct zeros){0, class_bytes[class]};
        return block;
    }
    *zeros = (struct zeros){0, 0};
    struct thread_cache *cache = pass == PASS_CACHE ? thread_view.cache : NULL;
    block = take_zero(cache, class, zeros);
    if (unlikely(block == NULL)) {
        block = take_last(class, 1, &pass);
        *zeros = (struct zeros){0, pass == PASS_REFUSED ? class_bytes[class] : 0};
    }
    thread_come_out(pass);
    return block;
}

/* -- giving -------------------------------------------------------------------------------------------------- */

/* A magazine of which the keeper has taken all up to the very end has no room any more: it gets all of it again. Left as it is, a
 * depot might pass it on for a full one. */
static inline void **reopened(struct thread_cache *cache, struct cache_class *magazines, unsigned class, void **top) {
    union magazine *magazine = magazine_of(top);
    return unlikely(magazine_capacity(magazine) == 0) ? magazine_clear(magazine, capacity_here(cache, magazines, class))
                                                      : top;
}

/* Room where the thread takes blocks of the class too: its two magazines change places, and a full one goes to the heap. Returns the top of
 * what is loaded then. */
static void **room_in_previous(struct thread_cache *cache, struct cache_class *magazines, unsigned class, void **full) {
    struct heap *heap = heap_of(cache, class);
    void **other = magazines->previous;
    if (other == NULL) {
        other = heap_spare(heap, magazines->capacity);
        if (other == NULL) {
            return heap_exchange_full(heap, class, full, magazines->capacity, GIVES_MORE);
        }
    } else if (magazine_is_full(other)) {
        cache->exchanges++;
        unsigned capacity = grown_capacity(cache, magazines, class);
        other = heap_exchange_full(heap, class, other, capacity, magazines->surplus ? GIVES_MORE : GIVES_AND_TAKES);
        magazines->surplus = true;
    }
    magazines->previous = full;
    return other;
}

/* Whether the block is one of a magazine's last two. Below the bottom may lie anything. */
static inline bool is_among_last(void **top, const void *block) {
    return top != NULL && (unlikely(top[0] == block) || (unlikely(top[-1] == block) && magazine_count(top) > 1));
}

/* Room in another magazine than the slot's loaded one, which is full. The last block freed comes along, so that free() finds it there,
 * should it be freed again: where a magazine holds but one, every free comes here and looks into both. */
static void **make_room_elsewhere(struct thread_cache *cache, unsigned slot, void **full) {
    struct cache_class *magazines = &cache->slots[slot];
    unsigned class = slot_class(slot);
    void *last = magazine_capacity(magazine_of(full)) > 1 ? magazine_fold(full) : NULL;
    void **top;
    if (magazines->taken) {
        top = room_in_previous(cache, magazines, class, full);
    } else {
        cache->exchanges++;
        top =
            heap_exchange_full(heap_of(cache, class), class, full, capacity_here(cache, magazines, class), ONLY_GIVES);
    }
    if (likely(last != NULL) && likely(magazine_capacity(magazine_of(top)) > 1)) {
        *++top = last;
    } else if (last != NULL) { /* a crowd has left it room for the block in hand alone */
        heap_give(&last, 1);
    }
    return top;
}

/* Room behind `top`, the slot's loaded magazine, or its first. Returns the top of what is loaded then; NULL when a first one would take memory
 * that is out, or is not earned. */
static void **make_room(struct thread_cache *cache, unsigned slot, void **top) {
    struct cache_class *magazines = &cache->slots[slot];
    unsigned class = slot_class(slot);
    struct heap *heap = heap_of(cache, class);
    magazines->visits++;
    if (top == VOID_TOP && is_unearned(cache, magazines, class)) {
        cache->exchanges++;
        return NULL;
    }
    if (top == VOID_TOP) {
        return heap_spare(heap, capacity_here(cache, magazines, class));
    }
    top = reopened(cache, magazines, class, top);
    return magazine_is_full(top) ? make_room_elsewhere(cache, slot, top) : top;
}

static void give(struct thread_cache *cache, void *block, unsigned slot) {
    struct cache_class *magazines = &cache->slots[slot];
    if (unlikely(!slab_starts(slot_class(slot), block)) && !slab_lends(block)) {
        message_interior_pointer(block, "size class", slot_bytes[slot]);
    }
    void **top = NULL;
    if (likely(magazines->taken || slot_bytes[slot] <= GIVEN_BYTES / 2)) {
        void **before = slot_unload(magazines);
        if (unlikely(is_among_last(before, block) || is_among_last(magazines->previous, block))) {
            message_double_free(block, "size class", slot_bytes[slot]);
        }
        top = make_room(cache, slot, before);
        if (likely(top != NULL)) {
            *++top = block;
        }
        slot_load(magazines, top != NULL ? top : before);
    }
    if (unlikely(top == NULL)) { /* a large block is left to the heap at once */
        heap_give(&block, 1);
    }
}

__attribute__((noinline)) void thread_cache_give(void *block, unsigned slot) {
    enum pass pass = thread_go_inside();
    if (likely(pass == PASS_CACHE)) {
        struct thread_cache *cache = thread_view.cache;
        look_round_sometimes(cache);
        give(cache, block, slot);
        if (unlikely(cache->summons != NULL)) {
            sampling_wait_on(cache, slot);
        }
    } else if (pass == PASS_OUTSIDER) {
        heap_give(&block, 1);
    } else {
        shelter_park(block);
        keeper_wish(); /* perhaps nobody comes any more who would free it */
        return;
    }
    thread_come_out(pass);
    thread_serve_wishes();
}

static OUT_OF_LINE void give_hardened(void *block, uint32_t tag) {
    if (tag == TAG_HARD_LARGE) {
        hardened_give_large(block, MADE_ANYHOW, SIZE_UNTOLD);
    } else if (hardened_give_ahead(NULL, block, MADE_ANYHOW, SIZE_UNTOLD, true) == HARD_CLEARED) {
        hardened_give_cleared(NULL, 0, block);
    }
}

OUT_OF_LINE bool thread_free_parked(void) {
    if (!shelter_begin_taking()) {
        return false; /* another thread does */
    }
    void *block;
    for (unsigned freed = 0; freed < PARKED_BLOCKS && (block = shelter_take_parked()) != NULL; freed++) {
        uint32_t tag = TAG_NONE;
        if (tag_of(block, &tag) && tag_is_slab(tag)) {
            heap_give(&block, 1);
        } else if (guarded_owns(block)) {
            struct trace nobody = {0};
            void *instead = guarded_give(block, SIZE_UNTOLD, &nobody, true);
            if (instead != NULL && !shelter_give(instead)) {
                heap_give(&instead, 1);
            }
        } else if (hardened_owns(tag)) {
            give_hardened(block, tag);
        } else {
            large_give(block, tag);
        }
    }
    shelter_end_taking();
    return true;
}

void thread_cache_flush(void) {
    enum pass pass = thread_go_inside();
    if (pass == PASS_CACHE) {
        cache_flush(thread_view.cache);
    }
    thread_come_out(pass);
}
