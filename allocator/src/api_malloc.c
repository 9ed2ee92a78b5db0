/* The C entry points, by the rules glibc documents. */
#include <errno.h>
#include <string.h>

#include "allocate.h"
#include "message.h"
#include "options.h"
#include "os.h"
#include "slab.h"

#define PUBLIC __attribute__((visibility("default")))

/* These two run for every block: each begins on a cache line of its own, wherever the rest of the library leaves it. */
#define PUBLIC_HOT __attribute__((visibility("default"), aligned(64)))

PUBLIC_HOT void *malloc(size_t size) { return allocate(size); }

PUBLIC_HOT void free(void *block) { release(block, MADE_BY_MALLOC); }

/* Fresh memory, zero as the kernel gives it: its first pages are brought in where the program has asked for that. A page that is read
 * before it is written would fault twice else. */
static void *fresh(void *block, size_t size) {
    size_t most = (size_t)option_value(OPTION_POPULATE_KIB) * 1024;
    if (unlikely(most > 0)) {
        uintptr_t from = bits_round_down((uintptr_t)block, os_page_bytes());
        uintptr_t to = bits_round_up((uintptr_t)block + bits_min(size, most), os_page_bytes());
        os_populate((void *)from, to - from); /* NOLINT(performance-no-int-to-ptr): pages of the block */
    }
    return block;
}

enum { CLEAR_MOST = 32 * 1024 * 1024 }; /* from here on glibc gives such memory back when it is freed */

/* Memory that was in use before, up to the end of a page. A very large block may be a table that stays sparse, and how much of it is in memory
 * nobody knows: its pages go back to the kernel, which gives zeros. */
static void *cleared(void *block, size_t bytes) {
    if (bytes < CLEAR_MOST) {
        return memset(block, 0, bytes);
    }
    size_t head = bits_round_up((uintptr_t)block, os_page_bytes()) - (uintptr_t)block;
    if (!os_purge((char *)block + head, bytes - head)) { /* locked in memory */
        return memset(block, 0, bytes);
    }
    memset(block, 0, head);
    return block;
}

/* A block of which some reads as zero: only the rest is written. */
static void *clear_around(char *block, size_t bytes, struct zeros zeros) {
    memset(block, 0, zeros.from);
    memset(block + zeros.to, 0, bytes - zeros.to);
    return block;
}

/* A block of calloc reads as zero up to malloc_usable_size: a program that lets the block grow may
 * clear only the bytes behind that. */
static void *take_zeroed_large(size_t size) {
    bool zero;
    void *block = allocate_large(size, 1, false, false, &zero);
    if (block == NULL) {
        return allocate_refuse();
    }
    return zero ? fresh(block, size) : cleared(block, usable_bytes(block));
}

/* Where no magazine has a block. It may be of a larger class than was asked for. */
static OUT_OF_LINE void *take_zeroed_slow(size_t size) {
    struct zeros zeros = {0, 0};
    void *block;
    if (size < CLASS_FRESH) {
        block = allocate_slow(size);
    } else if (unlikely(allocate_is_hardened())) {
        return take_zeroed_large(size);
    } else if ((block = allocate_by_chance(size)) != NULL) {
        return block;
    } else if ((block = thread_cache_take_zero(class_of(size), &zeros)) == NULL) {
        return allocate_refuse();
    }
    return likely(block != NULL) ? clear_around(block, usable_bytes(block), zeros) : NULL;
}

static inline void *take_zeroed(size_t size) {
    if (unlikely(size > CLASS_LARGEST)) {
        return take_zeroed_large(size);
    }
    size_t last = size - 1;
    struct cache_class *magazines = last < STEP_LARGEST ? thread_view.by_step[last >> CLASS_STEP_BITS]
                                                        : thread_magazines(class_of(bits_max(size, 1)));
    void *block = pop(magazines);
    return likely(block != NULL) ? memset(block, 0, magazines->bytes) : take_zeroed_slow(size);
}

PUBLIC void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) {
        errno = ENOMEM;
        return NULL;
    }
    return take_zeroed(bytes);
}

/* -- realloc ------------------------------------------------------------------------------------------------- */

/* NULL where there is no memory to move to. */
static void *move(void *block, size_t had, size_t size) {
    bool zero;
    void *moved;
    if (size > CLASS_LARGEST && size > had) { /* it grows, and may well grow again */
        moved = allocate_large(size, 1, true, true, &zero);
    } else {
        moved = allocate_or_null(size);
    }
    if (unlikely(moved == NULL)) { /* it need not move to shrink, and who shrinks does not expect to fail */
        return size <= had ? block : NULL;
    }
    /* memmove here and everywhere: memcpy would be one more name to look up in every program that starts. */
    memmove(moved, block, bits_min(had, size));
    release(block, MADE_BY_MALLOC);
    return moved;
}

/* Small blocks are copied here: a call would cost more. Both are multiples of 16 bytes, whatever the sizes are. */
static inline void copy(void *to, const void *from, size_t bytes) {
    enum { UNIT = 16, MOST = 256 };
    if (bytes > MOST) {
        memmove(to, from, bytes);
        return;
    }
    for (size_t at = 0; at < bytes; at += UNIT) {
        memcpy((char *)to + at, (const char *)from + at, UNIT);
    }
}

/* Who shrinks a block means to save what is left over: a quarter is worth a copy. */
static inline bool stays(size_t had, size_t size) { return size <= had && (size > had - had / 4 || had <= 64); }

/* The way of nearly every block: from one class to another. Who goes on with a pointer into a block that stays would write behind its end, and no
 * later call need see it. Of what lends and of large blocks usable_bytes asks the same. */
static inline void *resize_small(void *block, unsigned slot, size_t size) {
    size_t had = slot_bytes[slot];
    if (stays(had, size)) {
        if (unlikely(!slab_starts(slot_class(slot), block))) {
            message_interior_pointer(block, "size class", had);
        }
        return block;
    }
    void *moved = allocate_fast(size);
    if (unlikely(moved == NULL)) {
        moved = move(block, had, size);
        return likely(moved != NULL) ? moved : allocate_refuse();
    }
    copy(moved, block, bits_min(had, size));
    if (unlikely(!push(&thread_view.cache->slots[slot], block))) {
        release_slow(block, MADE_BY_MALLOC);
    }
    return moved;
}

static void *resize(void *block, size_t size) {
    if (unlikely(is_hardened_block(block))) {
        return resize_hardened(block, size);
    }
    size_t had = usable_bytes(block);
    if (unlikely(had == 0)) {
        release(block,
                MADE_BY_MALLOC); /* no block: says so and stops, but in a torn child, where it may be one after all */
        errno = ENOMEM;
        return NULL;
    }
    if (unlikely(is_guarded(block))) { /* what it is shrunk to ends elsewhere */
        void *moved = move(block, had, size);
        return likely(moved != NULL) ? moved : allocate_refuse();
    }
    if (stays(had, size)) {
        if (had <= CLASS_LARGEST || had - size < os_page_bytes()) {
            return block;
        }
    }
    bool in_place = had > CLASS_LARGEST && size > CLASS_LARGEST && size <= PTRDIFF_MAX;
    void *resized = in_place ? resize_large(block, size, false) : NULL;
    if (resized == NULL) {
        resized = move(block, had, size);
    }
    if (unlikely(resized == NULL) &&
        in_place) { /* what was given back, so that there be room for a copy, may do to grow */
        resized = resize_large(block, size, true);
    }
    return likely(resized != NULL) ? resized : allocate_refuse();
}

static void *resize_or_take(void *block, size_t size) {
    if (block == NULL) {
        return allocate(size);
    }
    if (size == 0) {
        release(block, MADE_BY_MALLOC);
        return NULL;
    }
    unsigned slot = slot_of_block(block);
    return likely(slot != 0) ? resize_small(block, slot, size) : resize(block, size);
}

PUBLIC void *realloc(void *block, size_t size) { return resize_or_take(block, size); }

PUBLIC void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) {
        errno = ENOMEM;
        return NULL;
    }
    return resize_or_take(block, bytes);
}

/* -- sized free (C23) ---------------------------------------------------------------------------------------- */

PUBLIC void free_sized(void *block, size_t size) { release_sized(block, size, MADE_BY_MALLOC); }

PUBLIC void free_aligned_sized(void *block, size_t alignment, size_t size) {
    (void)alignment;
    release_sized(block, size, MADE_BY_MALLOC);
}

/* -- aligned ------------------------------------------------------------------------------------------------- */

static void *invalid(void) {
    errno = EINVAL;
    return NULL;
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size) {
    return bits_is_power_of_two(alignment) ? allocate_aligned(alignment, size, MADE_BY_MALLOC) : invalid();
}

/* glibc rounds an alignment that is no power of two up to the next one. */
PUBLIC void *memalign(size_t alignment, size_t size) {
    if (alignment > SIZE_MAX / 2 + 1) {
        return invalid();
    }
    if (!bits_is_power_of_two(alignment)) {
        alignment = alignment == 0 ? 1 : (size_t)1 << (bits_highest(alignment) + 1);
    }
    return allocate_aligned(alignment, size, MADE_BY_MALLOC);
}

static int take_into(void **block, size_t alignment, size_t size) {
    if (!bits_is_power_of_two(alignment) || alignment % sizeof(void *) != 0) {
        return EINVAL;
    }
    void *taken = allocate_aligned(alignment, size, MADE_BY_MALLOC);
    if (taken == NULL) {
        return ENOMEM; /* errno tells it too, as glibc's does */
    }
    *block = taken;
    return 0;
}

PUBLIC int posix_memalign(void **block, size_t alignment, size_t size) { return take_into(block, alignment, size); }

PUBLIC int __posix_memalign(void **block, size_t alignment, size_t size) { return take_into(block, alignment, size); }

PUBLIC void *valloc(size_t size) { return allocate_aligned(os_page_bytes(), size, MADE_BY_MALLOC); }

PUBLIC void *pvalloc(size_t size) {
    size_t page = os_page_bytes();
    if (size > PTRDIFF_MAX) {
        errno = ENOMEM;
        return NULL;
    }
    return allocate_aligned(page, bits_round_up(bits_max(size, 1), page), MADE_BY_MALLOC);
}

PUBLIC size_t malloc_usable_size(void *block) { return usable_bytes(block); }

/* -- other names --------------------------------------------------------------------------------------------- */

/* By the name's value, where it is a macro: fuzzers have another malloc beside this one. */
#define ALIAS_OF(name) __attribute__((alias(#name)))
#define ALIAS(name) ALIAS_OF(name)

/* Old programs, and libc's own parts in a static link, use these. */
PUBLIC void *__libc_malloc(size_t) ALIAS(malloc);
PUBLIC void __libc_free(void *) ALIAS(free);
PUBLIC void *__libc_calloc(size_t, size_t) ALIAS(calloc);
PUBLIC void *__libc_realloc(void *, size_t) ALIAS(realloc);
PUBLIC void *__libc_memalign(size_t, size_t) ALIAS(memalign);
PUBLIC void *__libc_valloc(size_t) ALIAS(valloc);
PUBLIC void *__libc_pvalloc(size_t) ALIAS(pvalloc);
