/* What a thread leaves at its end for the next: its cache with the magazines in it.
 *
 * A thread that lives for milliseconds would fetch its first blocks from bitmaps, and its end would put them back there one by one. So the
 * cache of one that ends stays as it is, within bounds, and the next thread that is born to the same heap goes on with it. What nobody
 * has taken by the keeper's second look is emptied; so is all of it when memory is out, and by malloc_trim.
 *
 * A cache that was left is in no list, counts as nobody's, and nobody's fast path knows it: whoever takes it out of the table, with the
 * registry's lock, is the only one to touch it. Who ends has put it there with that lock, so whoever takes it finds all that was done. */
#include "left.h"

#include "thread_inside.h"

enum {
    LEFT_MOST = 8, /* caches */
    LEFT_BYTES = 512 * 1024, /* of blocks in one, */
    LEFT_ALL = 1024 * 1024, /* and in all */
};

/* Protected by the registry's lock; `count` and `bytes` are also read without, relaxed: as hints. */
static struct {
    _Atomic uint32_t count;
    uint32_t looks; /* of the keeper */
    _Atomic size_t bytes; /* of blocks in all of them */
    struct {
        struct thread_cache *cache;
        size_t bytes;
        uint32_t looks; /* when it was left */
    } of[LEFT_MOST]; /* the last one that was left at the end */
} left;

static uint32_t count_left(void) { return atomic_load_explicit(&left.count, memory_order_relaxed); }

static size_t bytes_left(void) { return atomic_load_explicit(&left.bytes, memory_order_relaxed); }

size_t left_prepare(struct thread_cache *cache) {
    if ((modes() & (MODE_HARDENED | MODE_GUARDED)) != 0 || cache->sweep != 0 || count_left() >= LEFT_MOST) {
        return LEFT_NOT;
    }
    size_t most = bits_min(LEFT_BYTES, LEFT_ALL - bits_min(bytes_left(), LEFT_ALL)), room = most;
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        struct cache_class *magazines = &cache->slots[slot];
        if (magazines->top == VOID_TOP) {
            continue;
        }
        size_t blocks = magazine_count(magazines->top);
        blocks += magazines->previous != NULL ? magazine_count(magazines->previous) : 0;
        size_t bytes = blocks * magazines->bytes;
        if (!magazines->taken || bytes > room) { /* what is only given others wait for */
            cache_flush_slot(cache, slot);
        } else {
            room -= bytes;
        }
    }
    return most - room;
}

bool left_put(struct thread_cache *cache, size_t bytes) {
    uint32_t count = count_left();
    if (bytes == LEFT_NOT || count == LEFT_MOST) {
        return false;
    }
    left.of[count].cache = cache;
    left.of[count].bytes = bytes;
    atomic_store_explicit(&left.bytes, bytes_left() + bytes, memory_order_relaxed);
    left.of[count].looks = left.looks;
    atomic_store_explicit(&left.count, count + 1, memory_order_relaxed);
    return true;
}

const struct thread_cache *left_at(uint32_t place) { return place < count_left() ? left.of[place].cache : NULL; }

/* Takes out number `place`; those behind it move up. */
static struct thread_cache *take_out(uint32_t place) {
    struct thread_cache *cache = left.of[place].cache;
    uint32_t count = count_left() - 1;
    atomic_store_explicit(&left.bytes, bytes_left() - left.of[place].bytes, memory_order_relaxed);
    for (uint32_t i = place; i < count; i++) {
        left.of[i] = left.of[i + 1];
    }
    atomic_store_explicit(&left.count, count, memory_order_relaxed);
    return cache;
}

struct thread_cache *left_take(const struct heap *heap) {
    for (uint32_t place = count_left(); place-- > 0;) {
        if (left.of[place].cache->heap == heap) {
            return take_out(place);
        }
    }
    return NULL;
}

/* One that was left before so many looks of the keeper, the longest first; NULL when there is none. */
static struct thread_cache *take_oldest(uint32_t looks) {
    struct thread_cache *cache = NULL;
    lock_take(&registry.lock);
    if (count_left() > 0 && left.looks - left.of[0].looks >= looks) {
        cache = take_out(0);
    }
    lock_free(&registry.lock);
    return cache;
}

bool left_empty_one(bool all) {
    struct thread_cache *cache = count_left() > 0 ? take_oldest(all ? 0 : 1) : NULL;
    if (cache != NULL) {
        cache_empty_left(cache);
    }
    return cache != NULL;
}

void left_look(void) {
    lock_take(&registry.lock);
    left.looks++;
    lock_free(&registry.lock);
}
