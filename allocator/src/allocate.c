#include "allocate.h"

#include <errno.h>
#include <string.h>

#include "arena.h"
#include "gate.h"
#include "fault_handler.h"
#include "guarded.h"
#include "hardened.h"
#include "keeping.h"
#include "large.h"
#include "last_resort.h"
#include "limit.h"
#include "memory_hooks.h"
#include "message.h"
#include "options.h"
#include "os.h"
#include "sampling.h"
#include "shelter.h"
#include "slab.h"
#include "thread_life.h"

OUT_OF_LINE void *allocate_refuse(void) {
    limit_note_refused();
    errno = ENOMEM;
    return NULL;
}

/* -- allocating ---------------------------------------------------------------------------------------------- */

static void *take_class(unsigned class) {
    void *block = pop(thread_magazines(class));
    return likely(block != NULL) ? block : thread_cache_take(class, 1);
}

static void *take_class_aligned(unsigned class, size_t alignment) {
    void *block = pop(thread_magazines(class));
    if (unlikely(((uintptr_t)block & (alignment - 1)) != 0)) { /* a lent one: lend.c */
        release(block, MADE_BY_MALLOC);
        block = NULL;
    }
    return likely(block != NULL) ? block : thread_cache_take(class, alignment);
}

/* `growing`: with room to grow in place. */
static void *take_inside(size_t size, size_t alignment, bool dense, bool growing, bool *zero) {
    return growing ? large_take_growing(size, zero) : large_take(size, alignment, dense, zero);
}

/* A thread of large blocks alone never comes to its heap, by which the others free what threads have left and what waited for a fork. */
static void look_for_others(enum pass pass) {
    if (pass == PASS_CACHE) {
        thread_cache_look();
    }
}

/* Where the heap has nothing but what somebody else may give back. */
static bool is_hopeless(size_t size);

/* What a span for it is charged, with what lies before the block. */
static size_t charged_for(size_t size) { return bits_round_up(size, SLICE_BYTES) + SLICE_BYTES; }

/* -- hardened: hardened.h ------------------------------------------------------------------------------------ */

/* Before the first block the environment has to be read. A handler that has interrupted just that finds the modes unread, and all as by
 * default. */
bool allocate_is_hardened(void) {
    if (unlikely(modes() == MODES_UNREAD)) {
        options_read_environment();
    }
    return (modes() & MODE_HARDENED) != 0;
}

static unsigned own_shard(const struct thread_cache *cache) { return cache != NULL ? heap_number(cache->heap) : 0; }

/* Of who is inside; NULL for an outsider. */
static struct thread_cache *cache_of(enum pass pass) { return pass == PASS_CACHE ? thread_view.cache : NULL; }

static struct hard_cache *hard_cache_of(const struct thread_cache *cache) {
    struct hard_cache *hard = cache != NULL ? cache->hard : NULL;
    if (hard != NULL) {
        hardened_inherit(hard);
    }
    return hard;
}

struct hardened_request {
    struct request request; /* first */
    enum made made;
};

static void *take_hardened_again(const struct request *request, enum pass pass) {
    struct thread_cache *cache = cache_of(pass);
    enum made made = ((const struct hardened_request *)(const void *)request)->made;
    return hardened_take(hard_cache_of(cache), own_shard(cache), request->size, request->alignment, made);
}

static void *take_hardened_elsewhere(const struct request *request, enum pass pass) {
    (void)pass;
    enum made made = ((const struct hardened_request *)(const void *)request)->made;
    return hardened_take_anywhere(request->size, request->alignment, made);
}

static void reclaim_hardened(enum pass pass) {
    struct thread_cache *cache = cache_of(pass);
    struct hard_cache *hard = hard_cache_of(cache);
    thread_adopt_all();
    if (hard != NULL) {
        hardened_flush(hard, own_shard(cache));
    }
    arena_make_room(); /* at a limit on data pages can be made accessible only once others are gone */
    hardened_reclaim();
    arena_make_room();
}

static OUT_OF_LINE void *take_hardened_inside(size_t size, size_t alignment, enum made made) {
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX) {
        return NULL;
    }
    void *block;
    enum pass pass = thread_enter();
    if (unlikely(pass == PASS_REFUSED) &&
        (pass = thread_take_shelter(bits_max(size, 1), alignment, &block)) == PASS_REFUSED) {
        return block;
    }
    struct hardened_request again = {
        {size, alignment, charged_for(size), take_hardened_again, take_hardened_elsewhere, reclaim_hardened}, made};
    block = take_hardened_again(&again.request, pass);
    if (unlikely(block == NULL) && !is_hopeless(size)) {
        block = last_resort(&again.request, &pass);
    }
    look_for_others(pass);
    thread_leave(pass);
    return block;
}

static void *take_hardened(size_t size, size_t alignment, enum made made) {
    void *block = hardened_take_ahead(thread_view.cache->hard, size, alignment, made);
    return likely(block != NULL) ? block : take_hardened_inside(size, alignment, made);
}

static OUT_OF_LINE void release_hardened_inside(void *block, uint32_t tag, enum made made, size_t size) {
    enum pass pass = thread_enter();
    if (unlikely(pass == PASS_REFUSED)) {
        if (hardened_make_room(block, tag)) {
            shelter_park(block);
        }
        keeper_wish();
        return;
    }
    struct thread_cache *cache = cache_of(pass);
    if (tag == TAG_HARD_LARGE) {
        hardened_give_large(block, made, size);
    } else if (hardened_give_ahead(hard_cache_of(cache), block, made, size, true) == HARD_CLEARED) {
        hardened_give_cleared(hard_cache_of(cache), own_shard(cache), block);
    }
    look_for_others(pass);
    thread_leave(pass);
    thread_serve_wishes();
}

static void release_hardened(void *block, uint32_t tag, enum made made, size_t size) {
    if (unlikely(tag == TAG_HARD_LARGE) ||
        unlikely(hardened_give_ahead(thread_view.cache->hard, block, made, size, false) != HARD_GIVEN)) {
        release_hardened_inside(block, tag, made, size);
    }
}

/* Bytes of a block in use. Where none starts there a free would stop the program, and so does this. */
static OUT_OF_LINE size_t usable_hardened(void *block, uint32_t tag) {
    size_t size;
    if (!hardened_size(block, &size)) {
        release_hardened(block, tag, MADE_ANYHOW, SIZE_UNTOLD);
    }
    return size;
}

/* -- sampled: guarded.h --------------------------------------------------------------------------------------- */

/* After libc's own constructors, and before the program's. Here: every process touches this page already. */
__attribute__((constructor)) static void open_traces(void) {
    options_read_environment();
    if (unlikely((modes() & (MODE_GUARDED | MODE_HARDENED)) != 0)) {
        trace_open();
    }
    if (unlikely((modes() & MODE_HARDENED) != 0)) {
        fault_handler_set(); /* any page may be closed */
        hardened_note_start();
    }
}

/* A guarded block; NULL where none can be had. */
static OUT_OF_LINE void *take_guarded(size_t size, size_t alignment, unsigned class) {
    if (!trace_is_open() || keeper_is_confined() || !memory_hooks_may_call() || !guarded_may_take()) {
        return NULL;
    }
    struct trace taken;
    trace_take(&taken, true);
    enum pass pass = thread_enter();
    void *block = pass != PASS_REFUSED ? guarded_take(size, alignment, &taken) : NULL;
    thread_leave(pass);
    if (block != NULL && class < CLASS_COUNT && alignment == 1) {
        guarded_stand_in(block, take_class(class));
    }
    thread_serve_wishes();
    return block;
}

/* NULL where this one is not sampled: nearly always. */
static OUT_OF_LINE void *take_sampled(size_t size, size_t alignment) {
    unsigned class = size <= CLASS_LARGEST && size > 0 ? class_of(size) : CLASS_COUNT;
    if (size == 0 || size > GUARDED_MOST || likely(!sampling_is_due(class))) {
        return NULL;
    }
    return take_guarded(size, alignment, class);
}

static inline void *take_by_chance(size_t size, size_t alignment) {
    return unlikely((modes() & MODE_GUARDED) != 0) ? take_sampled(size, alignment) : NULL;
}

void *allocate_by_chance(size_t size) { return take_by_chance(size, 1); }

bool is_guarded(const void *block) { return (modes() & MODE_GUARDED) != 0 && guarded_owns(block); }

static OUT_OF_LINE void release_guarded(void *block, size_t size) {
    struct trace given;
    trace_take(&given, !keeper_is_confined());
    enum pass pass = thread_enter();
    if (pass == PASS_REFUSED) {
        if (guarded_park(block, &given)) {
            shelter_park(block);
        }
        keeper_wish();
        return;
    }
    void *instead = guarded_give(block, size, &given, false);
    thread_leave(pass);
    if (instead != NULL && !release_fast(instead)) {
        release_slow(instead, MADE_BY_MALLOC);
    }
}

bool is_hardened_block(const void *block) {
    uint32_t tag;
    return tag_of(block, &tag) && hardened_owns(tag);
}

/* Where there is no memory to move to. While a fork is under way the block keeps its length. */
static OUT_OF_LINE void shrink_hardened(void *block, size_t size) {
    enum pass pass = thread_enter();
    if (pass != PASS_REFUSED) {
        hardened_shrink(block, size);
    }
    thread_leave(pass);
}

OUT_OF_LINE void *resize_hardened(void *block, size_t size) {
    size_t had;
    uint32_t tag = TAG_NONE;
    (void)tag_of(block, &tag);
    if (!hardened_size(block, &had)) {
        release_hardened(block, tag, MADE_BY_MALLOC, SIZE_UNTOLD); /* says what is wrong, and stops */
    }
    if (hardened_resize(block, size)) {
        return block;
    }
    void *moved = take_hardened(size, 1, MADE_BY_MALLOC);
    if (moved == NULL && size < had) {
        shrink_hardened(block, size);
        return block;
    }
    if (moved == NULL) {
        return allocate_refuse();
    }
    memmove(moved, block, bits_min(had, size));
    release_hardened(block, tag, MADE_BY_MALLOC, SIZE_UNTOLD);
    return moved;
}

/* A request for more than all that the library could give back beside what the kernel has, as programs make by mistake and live with. The others
 * are worth the search. */
static bool is_beyond_all(size_t size) {
    struct arena_figures arena;
    arena_figures(&arena);
    size_t mappings, mapped; /* also those: a block of that size may be about to grow where it is */
    large_figures(&mappings, &mapped);
    size_t held = arena.usable - arena.unmapped + arena.bookkeeping + mapped;
    return size > held && !os_has_room(size - held);
}

/* What another thread is giving back just now is counted no longer and may not be had yet: asked once more when it is done. */
static bool is_hopeless(size_t size) {
    if (size > limit_own()) {
        return true;
    }
    if (!is_beyond_all(size)) {
        return false;
    }
    arena_await_growth();
    return is_beyond_all(size);
}

struct large_request {
    struct request request; /* first */
    bool dense, growing;
    bool *zero;
};

static void *take_large_again(const struct request *request, enum pass pass) {
    (void)pass;
    const struct large_request *large = (const struct large_request *)(const void *)request;
    return take_inside(request->size, request->alignment, large->dense, large->growing, large->zero);
}

static void reclaim_large(enum pass pass) {
    (void)pass;
    thread_cache_reclaim();
}

void *allocate_large(size_t size, size_t alignment, bool dense, bool growing, bool *zero) {
    if (unlikely(allocate_is_hardened())) {
        *zero = true;
        return take_hardened(size, alignment, MADE_BY_MALLOC);
    }
    void *sampled = take_by_chance(size, alignment);
    if (unlikely(sampled != NULL)) {
        *zero = true;
        return sampled;
    }
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX) {
        return NULL;
    }
    void *block;
    enum pass pass = thread_enter();
    if (unlikely(pass == PASS_REFUSED) && (pass = thread_take_shelter(size, alignment, &block)) == PASS_REFUSED) {
        *zero = true;
        return block;
    }
    block = take_inside(size, alignment, dense, growing, zero);
    if (unlikely(block == NULL) && !is_hopeless(size)) {
        struct large_request again = {
            {size, alignment, charged_for(size), take_large_again, NULL, reclaim_large}, dense, growing, zero};
        block = last_resort(&again.request, &pass);
        *zero |= pass == PASS_REFUSED;
    }
    look_for_others(pass);
    thread_leave(pass);
    thread_serve_wishes();
    return block;
}

static __attribute__((noinline)) void *take_slow_large(size_t size) {
    bool zero;
    return allocate_large(size, 1, true, false, &zero);
}

static inline void *take_slow(size_t size) {
    if (unlikely(allocate_is_hardened())) {
        return take_hardened(size, 1, MADE_BY_MALLOC);
    }
    if (unlikely(size > CLASS_LARGEST)) {
        return take_slow_large(size);
    }
    void *block = take_by_chance(size, 1);
    return likely(block == NULL) ? take_class(class_of(size == 0 ? 1 : size)) : block;
}

__attribute__((noinline)) void *allocate_slow(size_t size) {
    void *block = take_slow(size);
    return likely(block != NULL) ? block : allocate_refuse();
}

OUT_OF_LINE void *allocate_or_null(size_t size) {
    void *block = allocate_fast(size);
    return likely(block != NULL) ? block : take_slow(size);
}

OUT_OF_LINE void *allocate_slow_as(size_t size, enum made made) {
    if (likely(!allocate_is_hardened())) {
        return allocate_slow(size);
    }
    void *block = take_hardened(size, 1, made);
    return likely(block != NULL) ? block : allocate_refuse();
}

void *allocate_aligned(size_t alignment, size_t size, enum made made) {
    void *block = NULL;
    if (unlikely(allocate_is_hardened())) {
        block = take_hardened(size, alignment, made);
        return likely(block != NULL) ? block : allocate_refuse();
    }
    if (size <= CLASS_LARGEST && alignment <= CLASS_LARGEST) {
        /* Slabs start at a slice, so a class whose size is a multiple of the alignment has every block aligned, up to
         * the slice. Four classes per doubling include the powers of two: the search ends within a few steps. */
        unsigned class = class_of(bits_max(bits_max(size, alignment), 1));
        if (alignment <= SLICE_BYTES) {
            while (class_bytes[class] % alignment != 0) {
                class++;
            }
            block = take_by_chance(size, alignment);
            block = likely(block == NULL) ? take_class_aligned(class, alignment) : block;
            return likely(block != NULL) ? block : allocate_refuse();
        }
    }
    bool zero;
    block = allocate_large(bits_max(size, 1), alignment, true, false, &zero);
    return likely(block != NULL) ? block : allocate_refuse();
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
static void release_large(void *block, uint32_t tag, size_t size) {
    if (tag != TAG_LARGE && is_guarded(block)) {
        release_guarded(block, size);
        return;
    }
    if (tag != TAG_LARGE && shelter_give(block)) {
        return;
    }
    enum pass pass = thread_enter();
    if (unlikely(pass == PASS_REFUSED)) {
        release_later(block, tag);
        return;
    }
    large_give(block, tag);
    look_for_others(pass);
    thread_leave(pass);
    thread_serve_wishes();
}

__attribute__((noinline)) void release_slow(void *block, enum made made) {
    uint32_t tag = TAG_NONE;
    if (likely(tag_of(block, &tag)) && likely(tag_is_slab(tag))) {
        thread_cache_give(block, likely(!tag_lends(tag)) ? tag_slot(tag) : slab_lent_slot(block));
    } else if (unlikely(hardened_owns(tag))) {
        release_hardened(block, tag, made, SIZE_UNTOLD);
    } else if (block != NULL) {
        release_large(block, tag, SIZE_UNTOLD);
    }
}

static size_t usable_large(const void *block, uint32_t tag) {
    size_t size;
    if (tag != TAG_LARGE && is_guarded(block)) {
        return guarded_size(block, &size) ? size : 0;
    }
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
        return likely(!tag_lends(tag)) ? slot_bytes[tag_slot(tag)] : slot_bytes[slab_lent_slot(block)];
    }
    if (unlikely(hardened_owns(tag))) {
        return usable_hardened((void *)(uintptr_t)block, tag);
    }
    size_t bytes = usable_large(block, tag);
    if (unlikely(bytes == 0) && (modes() & MODE_HARDENED) != 0 && gate_is_right()) {
        large_misuse(block); /* in a torn child looking tells nothing */
    }
    return bytes;
}

void *resize_large(void *block, size_t size, bool at_last) {
    uint32_t tag = TAG_NONE;
    (void)tag_of(block, &tag);
    enum pass pass = at_last ? thread_enter_at_last() : thread_enter();
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

__attribute__((noinline)) void release_sized_slow(void *block, size_t size, enum made made) {
    uint32_t tag = TAG_NONE;
    (void)tag_of(block, &tag);
    if (unlikely(hardened_owns(tag))) {
        release_hardened(block, tag, made, size);
        return;
    }
    if (unlikely(is_guarded(block))) {
        release_large(block, tag, size);
        return;
    }
    size_t usable = usable_bytes(block);
    if (unlikely(size > usable && usable > 0)) {
        if (tag_is_slab(tag)) {
            message_wrong_size(block, size, "size class", usable);
        }
        large_wrong_size(block, tag, size);
    }
    release_slow(block, made); /* also says what is wrong with the pointer itself */
}
