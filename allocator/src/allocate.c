#include "allocate.h"

#include <errno.h>
#include <string.h>

#include "large.h"
#include "message.h"

static void *out_of_memory(void) {
    errno = ENOMEM;
    return NULL;
}

/* -- allocating ---------------------------------------------------------------------------------------------- */

static void *take_class(unsigned class) {
    void *block = pop(thread_magazines(class));
    return likely(block != NULL) ? block : thread_cache_take(class);
}

/* For sizes above the classes and at most PTRDIFF_MAX. */
static void *take_large(size_t size, size_t alignment, bool *zero) {
    return thread_cache_start() ? large_take(size, alignment, true, zero) : NULL;
}

__attribute__((noinline)) void *allocate_slow(size_t size) {
    void *block = NULL;
    if (likely(size <= CLASS_LARGEST)) {
        block = take_class(class_of(size == 0 ? 1 : size));
    } else if (size <= PTRDIFF_MAX) {
        bool zero;
        block = take_large(size, 1, &zero);
    }
    return likely(block != NULL) ? block : out_of_memory();
}

void *allocate_aligned(size_t alignment, size_t size) {
    void *block = NULL;
    if (size <= CLASS_LARGEST && alignment <= CLASS_LARGEST) {
        /* Slabs start at a slice, so a class whose size is a multiple of the alignment has every block aligned, up to
         * the slice. Four classes per doubling include the powers of two: the search ends within a few steps. */
        unsigned class = class_of(bits_max(bits_max(size, alignment), 1));
        if (alignment <= SLICE_BYTES) {
            while (class_bytes[class] % alignment != 0) {
                class++;
            }
            block = take_class(class);
            return likely(block != NULL) ? block : out_of_memory();
        }
    }
    if (size <= PTRDIFF_MAX && alignment <= PTRDIFF_MAX) {
        bool zero;
        block = take_large(bits_max(size, 1), alignment, &zero);
    }
    return likely(block != NULL) ? block : out_of_memory();
}

/* -- freeing ------------------------------------------------------------------------------------------------- */

static void release_elsewhere(void *block) {
    if (block == NULL || large_give_mapping(block)) {
        return;
    }
    large_misuse(block);
}

__attribute__((noinline)) void release_slow(void *block) {
    uint32_t tag;
    if (!tag_of(block, &tag)) {
        release_elsewhere(block);
    } else if (likely(tag_is_slab(tag))) {
        thread_cache_give(block, tag_slot(tag));
    } else if (tag == TAG_LARGE) {
        large_give_span(block);
        thread_cache_serve_wishes();
    } else {
        large_misuse(block);
    }
}

size_t usable_bytes(const void *block) {
    uint32_t tag = TAG_NONE;
    if (block == NULL) {
        return 0;
    }
    if (tag_of(block, &tag)) {
        if (tag_is_slab(tag)) {
            return slot_bytes[tag_slot(tag)];
        }
        if (tag != TAG_LARGE) {
            return 0;
        }
    }
    return large_usable(block, tag);
}

__attribute__((noinline)) void release_sized_slow(void *block, size_t size) {
    size_t usable = usable_bytes(block);
    if (unlikely(size > usable && usable > 0)) {
        uint32_t tag = TAG_NONE;
        (void)tag_of(block, &tag);
        if (tag_is_slab(tag)) {
            message_wrong_size(block, size, "size class", usable);
        }
        large_wrong_size(block, tag, size);
    }
    release_slow(block); /* also says what is wrong with the pointer itself */
}
