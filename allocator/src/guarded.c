#include "guarded.h"

#include <string.h>

#include "fault_handler.h"
#include "guarded_inside.h"
#include "keeper.h"
#include "lock.h"
#include "made.h"
#include "options.h"
#include "os.h"
#include "random.h"

enum {
    PLACES = 64, /* a page each while they are used, at least */
    LARGE_PLACES = 16, /* the last of them: each a mapping of its own */
    SMALL_PLACES = PLACES - LARGE_PLACES,
    SMALL_MOST = 8 * 1024, /* of which the others have pages: address space that a limit on locked memory counts */
    MAGIC = 0xA5,
    AT_ONCE = 32,      /* served in a row, */
    MS_FOR_ONE = 2, /* and one more in so many milliseconds: it takes some twenty microseconds, */
    MS_FOR_ONE_MOST = 10,
    ALLOCATIONS_MS =
        500, /* and in no less than it takes a program of half a million allocations a second to come to the next */
};

/* `lock` protects the places and the state of chance. */
static struct {
    struct lock lock;
    uint64_t chance;
    unsigned char *base; /* of the small places */
    size_t stride;
    struct guarded_place *places;
    _Atomic uint32_t open; /* release: who sees it finds the places */
    _Atomic uint32_t served, unguarded; /* relaxed: figures, */
    _Atomic uint32_t allowed; /* ... how many may be served now, */
    _Atomic uint64_t counted; /* ... and when that was counted last, in `pace` */
    uint32_t pace;            /* milliseconds for one more */
} pool;

bool guarded_open(void) {
    size_t page = os_page_bytes();
    size_t stride = bits_round_up(SMALL_MOST, page) + page;
    pool.places = os_map(bits_round_up(PLACES * sizeof *pool.places, page), page);
    pool.base = pool.places != NULL ? os_reserve(SMALL_PLACES * stride + page, page) : NULL;
    if (pool.base == NULL) {
        return false;
    }
    pool.stride = stride;
    pool.chance = os_secret() | 1;
    pool.pace = (uint32_t)bits_min(bits_max(option_value(OPTION_GUARD) / ALLOCATIONS_MS, MS_FOR_ONE), MS_FOR_ONE_MOST);
    for (unsigned i = 0; i < SMALL_PLACES; i++) {
        pool.places[i].from = pool.base + i * stride + page;
        pool.places[i].room = stride - page;
    }
    atomic_store_explicit(&pool.open, 1, memory_order_release);
    return true;
}

/* All relaxed: one more or less is no matter. */
bool guarded_may_take(void) {
    uint64_t now = os_milliseconds() / pool.pace;
    uint64_t before = atomic_load_explicit(&pool.counted, memory_order_relaxed);
    uint32_t allowed = atomic_load_explicit(&pool.allowed, memory_order_relaxed);
    if (now != before && atomic_compare_exchange_strong_explicit(&pool.counted, &before, now, memory_order_relaxed,
                                                                 memory_order_relaxed)) {
        allowed = (uint32_t)bits_min(allowed + bits_min(now - before, AT_ONCE), AT_ONCE);
    }
    atomic_store_explicit(&pool.allowed, allowed > 0 ? allowed - 1 : 0, memory_order_relaxed);
    if (allowed == 0) {
        atomic_fetch_add_explicit(&pool.unguarded, 1, memory_order_relaxed);
    }
    return allowed > 0;
}

/* -- finding --------------------------------------------------------------------------------------------------- */

static bool is_open(void) { return atomic_load_explicit(&pool.open, memory_order_acquire) != 0; }

static uint32_t state_of(const struct guarded_place *place) {
    return atomic_load_explicit(&place->state, memory_order_acquire);
}

/* The place whose pages, or a page beside them, hold the address. */
static struct guarded_place *place_of(const void *pointer) {
    size_t offset = (uintptr_t)pointer - (uintptr_t)pool.base;
    if (offset < SMALL_PLACES * pool.stride + os_page_bytes()) {
        return &pool.places[bits_min(offset / pool.stride, SMALL_PLACES - 1)];
    }
    for (unsigned i = SMALL_PLACES; i < PLACES; i++) {
        const unsigned char *from = __atomic_load_n(&pool.places[i].from, __ATOMIC_ACQUIRE);
        size_t room = __atomic_load_n(&pool.places[i].room, __ATOMIC_ACQUIRE);
        size_t before = (uintptr_t)pointer - (uintptr_t)from + os_page_bytes();
        /* Once more: the pages may have been changed for others meanwhile, whose room this is. */
        bool same = from != NULL && from == __atomic_load_n(&pool.places[i].from, __ATOMIC_ACQUIRE);
        if (same && room != 0 && before < room + 2 * os_page_bytes()) {
            return &pool.places[i];
        }
    }
    return NULL;
}

struct guarded_place *guarded_place_of(const void *pointer) { return is_open() ? place_of(pointer) : NULL; }

bool guarded_owns(const void *pointer) { return is_open() && place_of(pointer) != NULL; }

static size_t distance(const struct guarded_place *place, const void *pointer) {
    uintptr_t at = (uintptr_t)pointer, start = (uintptr_t)place->block, end = start + place->size;
    return at < start ? start - at : at < end ? 0 : at - end + 1;
}

/* Between two places lies one page that is before the one and behind the other. */
struct guarded_place *guarded_nearest(const void *pointer) {
    struct guarded_place *place = is_open() ? place_of(pointer) : NULL, *nearest = NULL;
    if (place == NULL) {
        return NULL;
    }
    bool small = place < pool.places + SMALL_PLACES;
    for (int step = small ? -1 : 0; step <= small; step++) {
        struct guarded_place *other = place + step;
        if (other < pool.places || (small && other >= pool.places + SMALL_PLACES) || state_of(other) < GUARDED_USED) {
            continue;
        }
        if (nearest == NULL || distance(other, pointer) < distance(nearest, pointer)) {
            nearest = other;
        }
    }
    return nearest;
}

bool guarded_size(const void *block, size_t *size) {
    const struct guarded_place *place = place_of(block);
    *size = place != NULL ? place->size : 0;
    return place != NULL && state_of(place) == GUARDED_USED && place->block == block;
}

/* -- taking ------------------------------------------------------------------------------------------------------ */

/* A place that is not in use, at random; NULL when there is none. */
static struct guarded_place *claim(bool small) {
    unsigned first = small ? 0 : SMALL_PLACES, count = small ? SMALL_PLACES : LARGE_PLACES;
    struct guarded_place *claimed = NULL;
    lock_take(&pool.lock);
    unsigned start = random_below(&pool.chance, count);
    for (unsigned i = 0; claimed == NULL && i < count; i++) {
        struct guarded_place *place = &pool.places[first + (start + i) % count];
        if (state_of(place) == GUARDED_EMPTY || state_of(place) == GUARDED_FREED) {
            atomic_store_explicit(&place->state, GUARDED_TAKING, memory_order_release);
            claimed = place;
        }
    }
    lock_free(&pool.lock);
    return claimed;
}

/* A large place has no pages any more. */
static void drop_pages(struct guarded_place *place) {
    size_t page = os_page_bytes();
    unsigned char *had = place->from;
    size_t room = place->room;
    /* Before they are anybody else's: another place's pages may be there next. release, as below: who looks for an address finds the room that
     * goes with the pages, or none. */
    __atomic_store_n(&place->room, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&place->from, NULL, __ATOMIC_RELEASE);
    atomic_store_explicit(&place->mended, false, memory_order_relaxed); /* they go, whatever they were */
    if (had != NULL) {
        os_unmap(had - page, room + 2 * page);
    }
}

/* The pages of a large place: new ones, where those that it has do not do. */
static bool has_pages(struct guarded_place *place, size_t bytes) {
    size_t page = os_page_bytes();
    if (place->room >= bytes && place->room / 2 <= bytes) {
        return true;
    }
    drop_pages(place);
    unsigned char *base = os_reserve(bytes + 2 * page, page);
    if (base != NULL) {
        __atomic_store_n(&place->from, base + page, __ATOMIC_RELEASE);
        __atomic_store_n(&place->room, bytes, __ATOMIC_RELEASE);
    }
    return base != NULL;
}

static void *refuse(struct guarded_place *place) {
    if (place != NULL) {
        atomic_store_explicit(&place->state, GUARDED_EMPTY, memory_order_release);
    }
    atomic_fetch_add_explicit(&pool.unguarded, 1, memory_order_relaxed);
    return NULL;
}

/* At the pages' end or at their start, by chance; what is left of them on either side is filled. */
static void lay(struct guarded_place *place, unsigned char *from, size_t bytes, size_t size, size_t alignment) {
    lock_take(&pool.lock);
    bool at_end = random_next(&pool.chance) >> 63 != 0;
    lock_free(&pool.lock);
    size_t offset = at_end ? (bytes - size) & ~(bits_max(alignment, 16) - 1) : 0;
    place->block = from + offset;
    place->size = size;
    place->bytes = bytes;
    memset(from, MAGIC, offset);
    memset(from + offset + size, MAGIC, bytes - offset - size);
}

/* After a fault pages of the place, or beside it, may be accessible, and dirty. False when the kernel refuses. */
static bool is_as_before(struct guarded_place *place) {
    size_t page = os_page_bytes(), bytes = place->room + 2 * page;
    if (likely(!atomic_load_explicit(&place->mended, memory_order_relaxed))) {
        return true;
    }
    if (!os_purge(place->from - page, bytes) || !os_guard(place->from - page, bytes)) {
        return false;
    }
    atomic_store_explicit(&place->mended, false, memory_order_relaxed);
    return true;
}

void *guarded_take(size_t size, size_t alignment, const struct trace *taken) {
    size_t page = os_page_bytes();
    if (!is_open() || alignment > page || size > GUARDED_MOST) {
        return NULL;
    }
    size_t bytes = bits_round_up(size, page);
    bool small = bytes <= pool.stride - page;
    struct guarded_place *place = claim(small);
    if (place == NULL || !is_as_before(place) || (!small && !has_pages(place, bytes)) ||
        (bytes > 0 && !os_commit(place->from, bytes))) {
        return refuse(place);
    }
    lay(place, place->from, bytes, size, alignment);
    place->taken = *taken;
    place->given.thread = 0;
    place->instead = NULL;
    atomic_store_explicit(&place->state, GUARDED_USED, memory_order_release);
    atomic_fetch_add_explicit(&pool.served, 1, memory_order_relaxed);
    fault_handler_set();
    return place->block;
}

void guarded_stand_in(const void *block, void *instead) { place_of(block)->instead = instead; }

/* -- giving ------------------------------------------------------------------------------------------------------ */

/* The magic on both sides. Reports what was written there. */
static void check_margins(const struct guarded_place *place, bool parked) {
    static const struct guarded_access found_later = {.how = "was written"};
    const unsigned char *end = place->from + place->bytes;
    for (const unsigned char *at = place->block; at > place->from; at--) {
        if (at[-1] != MAGIC) {
            guarded_report(GUARDED_UNDERFLOW, place, at - 1, &found_later, 0);
            return;
        }
    }
    for (const unsigned char *at = place->block + bits_max(place->size, parked ? sizeof(void *) : 0); at < end; at++) {
        if (*at != MAGIC) {
            guarded_report(GUARDED_OVERFLOW, place, at, &found_later, 0);
            return;
        }
    }
}

bool guarded_park(void *block, const struct trace *given) {
    struct guarded_place *place = guarded_nearest(block);
    bool used = place != NULL && state_of(place) == GUARDED_USED, same = place != NULL && place->block == block;
    if (used && (!same || !atomic_exchange_explicit(&place->parked, true, memory_order_relaxed))) {
        return true; /* what else is wrong with it is seen when it is taken from there */
    }
    struct guarded_access access = {.how = same ? "freed again" : "freed", .trace = given};
    guarded_report(same ? GUARDED_DOUBLE_FREE : GUARDED_INVALID_FREE, place, block, &access, 0);
    return false;
}

void *guarded_give(void *block, size_t size, const struct trace *given, bool parked) {
    struct guarded_place *place = guarded_nearest(block);
    struct guarded_access freed = {.how = "freed", .trace = given}, again = {.how = "freed again", .trace = given};
    if (place == NULL || place->block != block) {
        guarded_report(GUARDED_INVALID_FREE, place, block, &freed, 0);
        return NULL;
    }
    lock_take(&pool.lock);
    bool used = state_of(place) == GUARDED_USED && atomic_load_explicit(&place->parked, memory_order_relaxed) == parked;
    if (used) {
        atomic_store_explicit(&place->state, GUARDED_FREEING, memory_order_release);
    }
    lock_free(&pool.lock);
    if (!used) {
        guarded_report(GUARDED_DOUBLE_FREE, place, block, &again, 0);
        return NULL;
    }
    atomic_store_explicit(&place->parked, false, memory_order_relaxed);
    void *instead = place->instead;
    place->given = *given;
    check_margins(place, parked);
    if (size != SIZE_UNTOLD && size != place->size && option_value(OPTION_KINDS) != 0) {
        guarded_report(GUARDED_WRONG_SIZE, place, block, &freed, size);
    }
    if (unlikely(
            keeper_is_confined())) { /* the program is under filters by now, and no more is guarded: nothing is asked of the kernel */
        memset(place->from, 0, place->bytes);
    } else if (place->bytes > 0) {
        if (!os_purge(place->from, place->bytes)) { /* locked memory */
            memset(place->from, 0, place->bytes);
        }
        (void)os_guard(place->from, place->bytes);
    }
    atomic_store_explicit(&place->state, GUARDED_FREED, memory_order_release); /* last: from now on it can be had */
    return instead;
}

/* -- figures and fork -------------------------------------------------------------------------------------------- */

void guarded_reclaim(void) {
    for (unsigned i = SMALL_PLACES; is_open() && i < PLACES; i++) {
        struct guarded_place *place = &pool.places[i];
        lock_take(&pool.lock);
        bool unused = state_of(place) == GUARDED_EMPTY || state_of(place) == GUARDED_FREED;
        if (unused) {
            atomic_store_explicit(&place->state, GUARDED_TAKING, memory_order_release);
        }
        lock_free(&pool.lock);
        if (unused) {
            drop_pages(place);
            atomic_store_explicit(&place->state, GUARDED_EMPTY, memory_order_release);
        }
    }
}

void guarded_figures(size_t *served, size_t *unguarded, size_t *in_use) {
    *in_use = 0;
    for (unsigned i = 0; is_open() && i < PLACES; i++) {
        *in_use += state_of(&pool.places[i]) == GUARDED_USED ? pool.places[i].bytes : 0;
    }
    *served = atomic_load_explicit(&pool.served, memory_order_relaxed);
    *unguarded = atomic_load_explicit(&pool.unguarded, memory_order_relaxed);
}

void guarded_after_fork(void) {
    lock_reset(&pool.lock);
    guarded_report_after_fork();
    fault_handler_after_fork();
}
