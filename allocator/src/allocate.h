/* The fast paths, shared by every entry point: inlined into malloc, operator new, free and operator delete. */
#ifndef FREESTONE_ALLOCATE_H
#define FREESTONE_ALLOCATE_H

#include <stdatomic.h>

#include "made.h"
#include "tag.h"
#include "thread_cache.h"

/* Everything the fast paths leave to others; sets errno on failure. `size` may be anything. */
void *allocate_slow(size_t size);

/* malloc for a caller that can do without: neither counts a refusal nor sets errno. */
void *allocate_or_null(size_t size);

/* Counts a refused request, sets errno and returns NULL. */
void *allocate_refuse(void);

/* allocate_slow for whoever is not malloc: in a hardened process a block is freed as it was made. */
void *allocate_slow_as(size_t size, enum made made);

/* A block aligned to `alignment`, a power of two. NULL and ENOMEM when that cannot be had. */
void *allocate_aligned(size_t alignment, size_t size, enum made made);

/* A large block, above the classes or aligned to more than they are; NULL when memory is out. `dense`: all of it will be written;
 * `growing`: it has grown, and may well grow again. *zero tells whether it reads as zero. */
void *allocate_large(size_t size, size_t alignment, bool dense, bool growing, bool *zero);

/* Makes a large block hold `size` bytes without copying: where it is then, or NULL when it has to be copied. `at_last`: it cannot be
 * copied either, so that it may also move where it leaves its addresses behind. */
void *resize_large(void *block, size_t size, bool at_last);

/* Frees what release() could not: NULL, large and foreign blocks, full magazines. Keeps errno. `made`: how the caller thinks that it was made. */
void release_slow(void *block, enum made made);

/* The same after it has stopped the program if `block` does not hold `size` bytes. */
void release_sized_slow(void *block, size_t size, enum made made);

/* Of a process that guards some of its blocks: such a block, which reads as zero, or NULL where this one is like the others. */
void *allocate_by_chance(size_t size);
bool is_guarded(const void *block);

/* Whether the hardened heap serves this process; and, of a block of its own, realloc: NULL and ENOMEM when memory is out. */
bool allocate_is_hardened(void);
bool is_hardened_block(const void *block);
void *resize_hardened(void *block, size_t size);

/* Bytes the owner of `block` may write; 0 for NULL and for what is no block. */
size_t usable_bytes(const void *block);

/* The block on top of the loaded magazine, NULL when that is empty or no block lies there. */
static inline void *pop(struct cache_class *magazines) {
    void **top = __atomic_load_n(&magazines->top, __ATOMIC_RELAXED); /* see summon in borrow.c */
    void *block = *top;
#if defined(__x86_64__)
    __asm__("" : "+a"(block)); /* where a function returns it: GCC 12 puts `top` there, and moves the block behind it */
#endif
    if (unlikely(!magazine_is_block(block))) {
        return NULL;
    }
    if (block == NULL) {
        __builtin_unreachable(); /* free leaves NULL to others */
    }
    __atomic_store_n(&magazines->top, top - 1, __ATOMIC_RELAXED);
    return block;
}

/* malloc's fast path: pops a block from the thread's loaded magazine, NULL when that must be left to allocate_slow.
 * A size of 0 wraps round and leaves by the first branch, an empty magazine by the second; a thread without a cache
 * has nothing but empty magazines. */
static inline void *allocate_fast(size_t size) {
    size_t last = size - 1;
    if (unlikely(last >= STEP_LARGEST)) {
        return NULL;
    }
    return pop(thread_view.by_step[last >> CLASS_STEP_BITS]);
}

/* Pushes a block on a loaded magazine; false when that is full, or seems to hold the block as one of its last two: freed twice, then, or
 * what is left over below the bottom. (Whoever has borrowed the cache may raise the bottom meanwhile, and writes MAGAZINE_NONE there.) */
static inline bool push(struct cache_class *magazines, void *block) {
    void **top = __atomic_load_n(&magazines->top, __ATOMIC_RELAXED);
    void **slot = top + 1;
    if (unlikely(magazine_is_past_end(slot)) || unlikely(GLANCE(top[0]) == block) ||
        unlikely(GLANCE(top[-1]) == block)) {
        return false;
    }
    /* A fork may freeze this thread between the two, and whoever has borrowed the cache may look on (borrow.c): neither must find the
     * top moved and the slot not yet written. Release: costs no instruction. */
    __atomic_store_n(slot, block, __ATOMIC_RELAXED);
    __atomic_store_n(&magazines->top, slot, __ATOMIC_RELEASE);
    return true;
}

/* The slot of a block; 0 for what is no slab's block. */
static inline unsigned slot_of_block(const void *block) {
    size_t place;
    return likely(tag_place_of(block, &place)) ? (unsigned)(place >> TAG_SLOT_SHIFT) : 0;
}

/* The magazines at a place in the thread's cache that a tag tells. */
static inline struct cache_class *magazines_at(size_t place) {
    _Static_assert(sizeof(struct cache_class) == 1 << TAG_SLOT_SHIFT, "a tag tells the place in bytes");
    return (struct cache_class *)(void *)((char *)thread_view.cache + place);
}

/* free's fast path, for the blocks of every heap; what it leaves to others goes to release_slow. NULL, mappings and foreign
 * pointers leave by the first branch, large blocks by the one that finds a magazine full: that of slot 0 always is. */
static inline bool release_fast(void *block) {
    size_t place;
    return likely(tag_place_of(block, &place)) && push(magazines_at(place), block);
}

/* The same where the caller says how large the block is; what it leaves to others goes to release_sized_slow. */
static inline bool release_sized_fast(void *block, size_t size) {
    size_t place;
    return likely(tag_place_of(block, &place)) && likely(size <= magazines_at(place)->bytes) &&
           push(magazines_at(place), block);
}

/* The whole of malloc and free: every entry point is one of these, and the library itself calls them by these names,
 * since a call by a public one could reach another library. */
static inline void *allocate(size_t size) {
    void *block = allocate_fast(size);
    return likely(block != NULL) ? block : allocate_slow(size);
}

static inline void release(void *block, enum made made) {
    if (unlikely(!release_fast(block))) {
        release_slow(block, made);
    }
}

static inline void release_sized(void *block, size_t size, enum made made) {
    if (unlikely(!release_sized_fast(block, size))) {
        release_sized_slow(block, size, made);
    }
}

#endif
