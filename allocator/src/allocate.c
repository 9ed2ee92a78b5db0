#include "allocate.h"

#include <errno.h>
#include <string.h>

#include "arena.h"
#include "gate.h"
#include "keeping.h"
#include "large.h"
#include "message.h"
#include "os.h"
#include "shelter.h"
#include "thread_life.h"

static OUT_OF_LINE void *out_of_memory(void) {
    errno = ENOMEM;
    return NULL;
}

/* -- allocating ---------------------------------------------------------------------------------------------- */

static void *take_class(unsigned class, size_t alignment) {
    void *block = pop(thread_magazines(class));
    return likely(block != NULL) ? block : thread_cache_take(class, alignment);
}

/* `growing`: with room to grow in place. */
static void *take_inside(size_t size, size_t alignment, bool dense, bool growing, bool *zero) {
    return growing ? large_take_growing(size, zero) : large_take(size, alignment, dense, zero);
}

/* A request for more than all that the library could give back beside what the kernel has, as programs make by mistake and live with. The others
 * are worth the search. */
static bool is_hopeless(size_t size) {
    struct arena_figures arena;
    arena_figures(&arena);
    size_t mappings, mapped; /* also those: a block of that size may be about to grow where it is */
    large_figures(&mappings, &mapped);
    size_t held = arena.extent + arena.bookkeeping + mapped;
    return size > held && !os_has_room(size - held);
}

void *allocate_large(size_t size, size_t alignment, bool dense, bool growing, bool *zero) {
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX) {
        return NULL;
    }
    enum pass pass = thread_enter();
    if (unlikely(pass == PASS_REFUSED)) {
        *zero = true;
        return thread_take_shelter(size, alignment);
    }
    void *block = take_inside(size, alignment, dense, growing, zero);
    if (unlikely(block == NULL) && !is_hopeless(size)) {
        thread_cache_reclaim();
        arena_make_room();
        block = take_inside(size, alignment, dense, growing, zero);
    }
    thread_leave(pass);
    return block;
}

static __attribute__((noinline)) void *allocate_slow_large(size_t size) {
    bool zero;
    void *block = allocate_large(size, 1, true, false, &zero);
    return likely(block != NULL) ? block : out_of_memory();
}

__attribute__((noinline)) void *allocate_slow(size_t size) {
    if (unlikely(size > CLASS_LARGEST)) {
        return allocate_slow_large(size);
    }
    void *block = take_class(class_of(size == 0 ? 1 : size), 1);
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
            block = take_class(class, alignment);
            return likely(block != NULL) ? block : out_of_memory();
        }
    }
    bool zero;
    block = allocate_large(bits_max(size, 1), alignment, true, false, &zero);
    return likely(block != NULL) ? block : out_of_memory();
}

/* -- freeing ------------------------------------------------------------------------------------------------- */

/* A fork is under way: nobody knows whose a pointer is but by looking, and what is a block waits. In a torn child looking tells nothing. */
static void release_later(void *block, uint32_t tag) {
    if (tag != TAG_LARGE && gate_is_right() && large_usable(block, tag, false) == 0) {
        large_misuse(block);
    }
    shelter_park(block);
    keeper_wish();
}

/* No slab's. */
static void release_large(void *block, uint32_t tag) {
    if (tag != TAG_LARGE && shelter_give(block)) {
        return;
    }
    enum pass pass = thread_enter();
    if (unlikely(pass == PASS_REFUSED)) {
        release_later(block, tag);
        return;
    }
    large_give(block, tag);
    thread_leave(pass);
    thread_serve_wishes();
}

__attribute__((noinline)) void release_slow(void *block) {
    uint32_t tag = TAG_NONE;
    if (likely(tag_of(block, &tag)) && likely(tag_is_slab(tag))) {
        thread_cache_give(block, tag_slot(tag));
    } else if (block != NULL) {
        release_large(block, tag);
    }
}

static size_t usable_large(const void *block, uint32_t tag) {
    size_t bytes = tag == TAG_LARGE ? 0 : shelter_usable(block);
    if (bytes == 0) {
        enum pass pass = thread_enter();
        bytes = large_usable(block, tag, pass != PASS_REFUSED);
        thread_leave(pass);
    }
    return bytes;
}

size_t usable_bytes(const void *block) {
    uint32_t tag = TAG_NONE;
    if (block == NULL) {
        return 0;
    }
    if (tag_of(block, &tag) && tag_is_slab(tag)) {
        return slot_bytes[tag_slot(tag)];
    }
    return usable_large(block, tag);
}

void *resize_large(void *block, size_t size, bool at_last) {
    uint32_t tag = TAG_NONE;
    (void)tag_of(block, &tag);
    enum pass pass = thread_enter();
    if (pass == PASS_REFUSED) {
        return NULL;
    }
    void *resized = large_resize(block, tag, size);
    if (resized == NULL && at_last) {
        resized = large_resize_away(block, tag, size);
    }
    thread_leave(pass);
    thread_serve_wishes();
    return resized;
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
