#include "large.h"

#include <stdatomic.h>
#include <string.h>

#include "gate.h"
#include "limit.h"
#include "lock.h"
#include "mappings.h"
#include "message.h"
#include "options.h"
#include "os.h"
#include "street.h"

enum {
    HUGE_PAGE = 2 * 1024 * 1024,
    USE_LEAST = 4 * 1024 * 1024, /* smaller blocks are often buffers with room to spare */
    MOVE_LEAST = 32 * 1024 *
        1024, /* smaller blocks are copied: to memory that stays with the arena when they are freed */
    GROW_SHARE = 4, /* a block that grows gets this share more room, so that it moves a logarithmic number of times */
    LINE = 64,
    LINES_IN_PAGE = 64,
    LINES_APART = 5, /* odd: every line of a page has its turn */
    OFFSET_MOST = (LINES_IN_PAGE - 1) * LINE,
};

/* The mappings, in rows of memory of their own that doubles. `lock` protects all of it. */
static struct {
    struct lock lock;
    struct mappings mappings;
    size_t reserved, room; /* rows for those to come; rows there are */
    size_t used;
} table;

/* Where in its first page a block starts. Blocks that all started alike would share a few sets of the caches: a loop over
 * sixteen of them takes three times as long. */
static uint32_t next_offset(size_t alignment) {
    static _Atomic uint32_t turn; /* relaxed: any value will do, if only they differ */
    if (alignment > LINE) {
        return 0;
    }
    return atomic_fetch_add_explicit(&turn, LINES_APART, memory_order_relaxed) % LINES_IN_PAGE * LINE;
}

/* -- the table ----------------------------------------------------------------------------------------------- */

static struct mapping *row_of(const void *block) {
    struct mapping *row = mappings_up_to(&table.mappings, (uintptr_t)block);
    return row != NULL && row->start + row->offset == (uintptr_t)block ? row : NULL;
}

static bool has_room(void) { return mappings_rows(&table.mappings) + table.reserved < table.room; }

/* Rows for twice as many; without the lock while the kernel works. False when memory is out. */
static bool make_room(size_t room) {
    size_t old_bytes = bits_round_up(room * sizeof(struct mapping_row), os_page_bytes());
    size_t new_bytes = bits_max(2 * old_bytes, bits_round_up(4096, os_page_bytes()));
    struct mapping_row *grown = os_map(new_bytes, os_page_bytes());
    if (grown == NULL) {
        return false;
    }
    lock_take(&table.lock);
    bool needed = table.room == room; /* or another thread has made some meanwhile */
    struct mapping_row *old = needed ? table.mappings.row : grown;
    if (needed) {
        if (old != NULL) {
            memcpy(grown, old, table.mappings.begun * sizeof(struct mapping_row));
        }
        table.mappings.row = grown;
        atomic_signal_fence(memory_order_seq_cst); /* see usable_unlocked */
        table.room = new_bytes / sizeof(struct mapping_row);
    }
    lock_free(&table.lock);
    if (old != NULL) {
        os_unmap(old, needed ? old_bytes : new_bytes);
    }
    return true;
}

static void insert(const struct mapping *mapping) {
    mappings_add(&table.mappings, *mapping);
    table.used += mapping->used;
}

static void erase(const struct mapping *mapping) {
    mappings_remove(&table.mappings, mapping->start);
    table.used -= mapping->used;
}

/* A place in the table for a mapping to come. False when memory is out. */
static bool reserve_row(void) {
    for (;;) {
        lock_take(&table.lock);
        bool reserved = has_room();
        table.reserved += reserved;
        size_t room = table.room;
        lock_free(&table.lock);
        if (reserved || !make_room(room)) {
            return reserved;
        }
    }
}

/* The mapping comes, or, without a start, does not. */
static void fill_row(const struct mapping *mapping) {
    lock_take(&table.lock);
    table.reserved--;
    if (mapping->start != 0) {
        insert(mapping);
    }
    lock_free(&table.lock);
}

/* -- taking -------------------------------------------------------------------------------------------------- */

/* Without the table's lock, under which the arena's is not taken; the block is the caller's. */
static void prefer_huge(struct mapping *mapping, bool fresh) {
    if (arena_prefer_huge((void *)mapping->start, mapping->used, fresh) && mapping->watched != WATCH_NOTHING) {
        mapping->watched = WATCH_CHUNKS;
    }
}

static void *map_block(size_t whole, size_t alignment, bool huge) {
    size_t page = os_page_bytes();
    void *start = os_map(whole, bits_max(alignment, huge ? HUGE_PAGE : page));
    if (start == NULL && huge) { /* to be aligned takes more room for a moment than there is, perhaps */
        start = os_map(whole, bits_max(alignment, page));
    }
    if (start != NULL && !reserve_row()) {
        os_unmap(start, whole);
        return NULL;
    }
    return start;
}

static void *take_mapping(size_t bytes, size_t alignment, bool dense, bool *zero) {
    size_t offset = next_offset(alignment);
    size_t whole = bits_round_up(offset + bytes, os_page_bytes());
    bool huge = dense && option_value(OPTION_HUGE_FROM_MIB) != HUGE_NEVER;
    if (!arena_charge(whole)) {
        return NULL;
    }
    void *start = map_block(whole, alignment, huge);
    if (start == NULL) {
        limit_release(whole);
        return NULL;
    }
    arena_give_way(whole);
    struct mapping mapping = {(uintptr_t)start, whole, whole, offset, dense ? WATCH_PAGES : WATCH_NOTHING};
    if (huge) {
        prefer_huge(&mapping, true);
    }
    fill_row(&mapping);
    *zero = true;
    return (char *)start + offset;
}

/* Bytes from a block to the end of the page with its last one. */
static size_t usable_of(size_t offset, size_t bytes) { return bits_round_up(offset + bytes, os_page_bytes()) - offset; }

static uint32_t slices_from(size_t offset, size_t bytes) {
    return (uint32_t)((offset + bytes + SLICE_BYTES - 1) >> SLICE_BITS);
}

/* Whatever the offset is, so that a block finds room where one of its size was before. If it is aligned to more than a slice, one slice for an offset
 * that it does not have would cost the next block as many as its alignment has. */
static uint32_t slices_of(size_t bytes, size_t alignment) {
    return slices_from(alignment > SLICE_BYTES ? 0 : OFFSET_MOST, bytes);
}

/* More for a block that grows: address space alone, unless pages are locked as they are mapped. */
static size_t room_to_grow(size_t bytes) { return street_is_locked() ? 0 : bytes / GROW_SHARE; }

static void *block_of(uint32_t slice) { return (char *)arena_address(slice) + arena_span(slice)->offset; }

static void tag_block(uint32_t slice) {
    arena_tag(slice, 1, TAG_LARGE);
    arena_tag(slice + 1, arena_span(slice)->slices - 1, TAG_INSIDE);
}

/* `room` is what the span is to hold, at least `bytes`. */
static void *take_span(size_t bytes, size_t room, size_t alignment, bool dense, bool *zero) {
    uint32_t offset = next_offset(alignment);
    uint32_t slices = slices_of(room, alignment);
    uint32_t use = dense && bytes >= USE_LEAST ? arena_use_of_block(bytes) : ARENA_NO_USE;
    uint32_t slice = arena_take(slices, (uint32_t)(bits_max(alignment, SLICE_BYTES) >> SLICE_BITS), use, zero);
    if (slice == 0) {
        return NULL;
    }
    arena_span(slice)->offset = offset;
    arena_span(slice)->used_bytes = usable_of(offset, bytes);
    tag_block(slice);
    return block_of(slice);
}

void *large_take(size_t bytes, size_t alignment, bool dense, bool *zero) {
    if (bytes <= LARGE_SPAN_MOST && alignment <= LARGE_SPAN_MOST) {
        void *block = take_span(bytes, bytes, alignment, dense, zero);
        if (block != NULL) {
            return block;
        }
    }
    void *block = take_mapping(bytes, alignment, dense, zero);
    if (block == NULL && bytes > LARGE_SPAN_MOST && alignment <= LARGE_SPAN_MOST && arena_may_hold(bytes)) {
        block = take_span(bytes, bytes, alignment, dense, zero);
    }
    return block;
}

void *large_take_growing(size_t bytes, bool *zero) {
    if (bytes <= LARGE_SPAN_MOST) {
        void *block = take_span(bytes, bytes + room_to_grow(bytes), 1, true, zero);
        if (block != NULL) {
            return block;
        }
    }
    return large_take(bytes, 1, true, zero);
}

/* -- giving -------------------------------------------------------------------------------------------------- */

void large_give_span(void *block) {
    uint32_t slice = arena_slice(block);
    if (unlikely(block != block_of(slice))) {
        message_interior_pointer(block, "span", (size_t)arena_span(slice)->slices << SLICE_BITS);
    }
    size_t bytes = (size_t)arena_span(slice)->slices << SLICE_BITS;
    const struct span *span = arena_span(slice);
    if (unlikely(span->watched != WATCH_NOTHING)) {
        arena_look(arena_address(slice), span->offset + span->used_bytes, span->watched);
    }
    if (unlikely(!arena_give(slice))) { /* two threads freed it at once; both had seen its tag */
        message_double_free(block, "span", bytes);
    }
    arena_age();
}

bool large_give_mapping(void *block) {
    lock_take(&table.lock);
    struct mapping *row = row_of(block);
    struct mapping mapping = {0};
    if (row != NULL) {
        mapping = *row;
        erase(&mapping);
    }
    lock_free(&table.lock);
    if (row == NULL) {
        return false;
    }
    arena_look((void *)mapping.start, mapping.used, mapping.watched);
    os_unmap((void *)mapping.start,
             mapping.bytes); /* after it left the table: its address may be mapped anew at once */
    limit_release(mapping.used);
    return true;
}

void large_give(void *block, uint32_t tag) {
    if (tag == TAG_LARGE) {
        large_give_span(block);
    } else if (!large_give_mapping(block)) {
        large_misuse(block);
    }
}

/* -- asking and resizing ------------------------------------------------------------------------------------- */

/* Take the table's lock to read during a fork, or give up after about a second. Threads that change
 * the table leave it soon, and then none does until the fork ends. In a torn child the lock may
 * stay taken for ever. */
static bool lock_patiently(void) {
    enum { TRIES = 1000 };
    for (int i = 0; i < TRIES && gate_is_right(); i++) {
        if (lock_try(&table.lock)) {
            return true;
        }
        os_nap(1);
    }
    return false;
}

static size_t usable_of_row(const struct mapping *row) { return row == NULL ? 0 : row->used - row->offset; }

/* The table may be in the middle of a change, by a thread that is not here or a frame that a signal interrupted, and the tree torn: all rows are
 * looked at. The block's own stays as it is. One that comes may have a start already and another's offset: that is no block's address. */
static size_t usable_unlocked(const void *block) {
    for (size_t i = 1; i < table.mappings.begun && i < table.room; i++) {
        const struct mapping *row = &table.mappings.row[i].mapping;
        if (row->start != 0 && row->start + row->offset == (uintptr_t)block) {
            return usable_of_row(row);
        }
    }
    return 0;
}

static size_t usable_mapping(const void *block, bool inside) {
    if (inside) {
        lock_take(&table.lock);
    } else if (!lock_patiently()) {
        return usable_unlocked(block);
    }
    size_t bytes = usable_of_row(row_of(block));
    lock_free(&table.lock);
    return bytes;
}

size_t large_usable(const void *block, uint32_t tag, bool inside) {
    if (tag == TAG_LARGE) {
        uint32_t slice = arena_slice(block);
        return block == block_of(slice) ? arena_span(slice)->used_bytes : 0;
    }
    return usable_mapping(block, inside);
}

/* Makes a mapping whose first `had` bytes are in use one of `used` bytes, with room to grow where it can be had. False, and
 * nothing has changed, when memory is out. */
static bool grow(struct mapping *mapping, size_t had, size_t used) {
    size_t room = bits_round_up(used + room_to_grow(used), os_page_bytes());
    void *grown = os_remap((void *)mapping->start, had, room);
    if (grown == NULL) {
        room = used;
        grown = os_remap((void *)mapping->start, had, room);
    }
    if (grown == NULL) {
        return false;
    }
    arena_give_way(used - had);
    *mapping = (struct mapping){(uintptr_t)grown, room, used, mapping->offset, mapping->watched};
    return true;
}

/* Moves the pages of a block that cannot grow where it is into a mapping of its own, which the kernel grows without a copy
 * from then on. The block's first and last address within its page stay as they are. Returns the mapping's start as 0, and
 * the block is unchanged, when that cannot be done. */
static struct mapping move_pages(uint32_t slice, size_t bytes) {
    const struct span *span = arena_span(slice);
    struct mapping mapping = {.offset = span->offset, .watched = span->watched};
    size_t had = span->offset + span->used_bytes;
    void *start = os_move(arena_address(slice), had);
    if (start == NULL) {
        return mapping;
    }
    mapping.start = (uintptr_t)start;
    if (!grow(&mapping, had, bits_round_up(span->offset + bytes, os_page_bytes()))) {
        memmove(arena_address(slice), start, had);
        os_unmap(start, had);
        mapping.start = 0;
    }
    return mapping;
}

static void *move_out(uint32_t slice, size_t bytes) {
    if (bytes < MOVE_LEAST) {
        return NULL;
    }
    const struct span *span = arena_span(slice);
    size_t had = span->offset + span->used_bytes, held = (size_t)span->slices << SLICE_BITS;
    size_t used = bits_round_up(span->offset + bytes, os_page_bytes());
    size_t more = used - bits_min(used, held); /* than the span holds, which is counted for the mapping as it goes */
    if (!arena_charge(more)) {
        return NULL;
    }
    struct mapping mapping = {0};
    bool reserved = reserve_row();
    if (reserved) {
        if (os_has_room(bytes - span->used_bytes)) { /* or the pages would go out and come back, copied */
            mapping = move_pages(slice, bytes);
        }
        if (mapping.start != 0) {
            prefer_huge(&mapping, false);
        }
        fill_row(&mapping);
    }
    if (mapping.start == 0) {
        limit_release(more);
        return NULL;
    }
    size_t rest = held - had; /* room to grow, perhaps used by somebody before */
    if (rest == 0 || os_purge((char *)arena_address(slice) + had, rest)) {
        arena_give_clean(slice);
        limit_release(held + more - used);
    } else {
        limit_charge(used - more);
        (void)arena_give(slice);
    }
    return (void *)(mapping.start + mapping.offset);
}

static void *resize_span(void *block, size_t bytes) {
    uint32_t slice = arena_slice(block);
    struct span *span = arena_span(slice);
    uint32_t had = span->slices;
    bool is_long = bytes > LARGE_SPAN_MOST;
    void *moved = is_long && bytes > span->used_bytes ? move_out(slice, bytes) : NULL;
    if (moved != NULL || bytes >> SLICE_BITS > INT32_MAX) {
        return moved;
    }
    uint32_t slices = slices_of(bytes, 1);
    if (slices_from(span->offset, bytes) > had) {
        if (!arena_extend(slice, slices)) {
            return is_long ? NULL : move_out(slice, bytes);
        }
        arena_tag(slice + had, slices - had, TAG_INSIDE);
    } else if (bytes < span->used_bytes && slices < had) {
        arena_shorten(slice, slices);
        arena_age();
    }
    span->used_bytes = usable_of(span->offset, bytes);
    return block;
}

/* Makes the mapping end with the block's last page, wherever the kernel has room for it. False when it is refused. */
static bool fit(struct mapping *mapping, size_t used) {
    void *moved =
        mapping->bytes == used ? (void *)mapping->start : os_remap((void *)mapping->start, mapping->bytes, used);
    if (moved == NULL) {
        return false;
    }
    *mapping = (struct mapping){(uintptr_t)moved, used, used, mapping->offset, mapping->watched};
    return true;
}

/* The row is out of the table while the kernel moves the mapping: nobody else may ask for this block now, and another thread may be given
 * the old address the moment it is free. Its place is kept. Without a start where no mapping begins so. */
static struct mapping take_row(const void *block) {
    struct mapping mapping = {0};
    lock_take(&table.lock);
    const struct mapping *row = row_of(block);
    if (row != NULL) {
        mapping = *row;
        erase(&mapping);
        table.reserved++;
    }
    lock_free(&table.lock);
    return mapping;
}

/* Charges what a mapping of `had` bytes has more once `used` are. False when that is refused. */
static bool charge_growth(size_t had, size_t used) { return used <= had || arena_charge(used - had); }

static void *resize_mapping(const void *block, size_t bytes) {
    struct mapping mapping = take_row(block);
    if (mapping.start == 0) {
        return NULL;
    }
    size_t used = bits_round_up(mapping.offset + bytes, os_page_bytes()), had = mapping.used;
    bool grows = used > mapping.bytes;
    bool resized = charge_growth(had, used);
    size_t charged = resized ? bits_max(had, used) : had;
    if (resized && grows) {
        resized = grow(&mapping, mapping.bytes, used);
    } else if (resized && used < had) {
        resized = fit(&mapping, used);
    } else if (resized) {
        mapping.used = used;
    }
    limit_release(charged - mapping.used);
    if (grows && resized) {
        prefer_huge(&mapping, false);
    }
    fill_row(&mapping);
    return resized ? (void *)(mapping.start + mapping.offset) : NULL;
}

void *large_resize(void *block, uint32_t tag, size_t bytes) {
    return tag == TAG_LARGE ? resize_span(block, bytes) : resize_mapping(block, bytes);
}

static void *move_span_away(void *block, size_t bytes) {
    uint32_t slice = arena_slice(block);
    const struct span *span = arena_span(slice);
    size_t had = bits_round_up(span->offset + span->used_bytes, os_page_bytes());
    size_t used = bits_round_up(span->offset + bytes, os_page_bytes());
    if (bytes <= span->used_bytes || !charge_growth(had, used)) {
        return NULL;
    }
    size_t more = used - had;
    if (!reserve_row()) {
        limit_release(more);
        return NULL;
    }
    /* The addresses may be anybody's mapping as soon as the pages have left, and what he frees there is no span of ours. Nobody else may ask for
     * this block meanwhile. Relaxed, as tags are: who is given the addresses comes after us in the kernel. */
    arena_tag(slice, span->slices, TAG_NONE);
    void *start = used > had ? os_move_away(arena_address(slice), had, used) : NULL;
    struct mapping mapping = {(uintptr_t)start, used, used, span->offset, span->watched};
    if (start != NULL) {
        prefer_huge(&mapping, false);
    }
    fill_row(&mapping);
    if (start == NULL) {
        tag_block(slice);
        limit_release(more);
        return NULL;
    }
    size_t held = (size_t)span->slices << SLICE_BITS;
    arena_abandon(slice, had);
    limit_release(held - had);
    return (char *)start + mapping.offset;
}

static void *move_mapping_away(const void *block, size_t bytes) {
    struct mapping mapping = take_row(block);
    if (mapping.start == 0) {
        return NULL;
    }
    size_t used = bits_round_up(mapping.offset + bytes, os_page_bytes()), had = mapping.used;
    bool charged = used > mapping.bytes && charge_growth(had, used);
    void *start = charged ? os_move_away((void *)mapping.start, mapping.bytes, used) : NULL;
    if (start != NULL) {
        mapping = (struct mapping){(uintptr_t)start, used, used, mapping.offset, mapping.watched};
    } else if (charged) {
        limit_release(used - had);
    }
    fill_row(&mapping);
    return start != NULL ? (char *)start + mapping.offset : NULL;
}

void *large_resize_away(void *block, uint32_t tag, size_t bytes) {
    return tag == TAG_LARGE ? move_span_away(block, bytes) : move_mapping_away(block, bytes);
}

/* -- misuse -------------------------------------------------------------------------------------------------- */

OUT_OF_LINE _Noreturn void large_misuse(const void *pointer) {
    uint32_t tag;
    size_t bytes;
    if (tag_of(pointer, &tag)) {
        uint32_t slice = arena_slice(pointer);
        if (tag == TAG_INSIDE || tag == TAG_LARGE) {
            while (tag == TAG_INSIDE) {
                slice--;
                tag = ((const uint32_t *)window.base)[slice];
            }
            message_interior_pointer(pointer, "span", (size_t)arena_span(slice)->slices << SLICE_BITS);
        }
        if (tag == TAG_NONE && arena_was_freed(pointer, &bytes)) {
            message_double_free(pointer, "free span", bytes);
        }
        message_foreign_pointer(pointer);
    }
    if (arena_was_freed(pointer, &bytes)) { /* and unmapped since */
        message_double_free(pointer, "free span", bytes);
    }
    if (!lock_patiently()) {
        message_foreign_pointer(pointer);
    }
    const struct mapping *row = mappings_up_to(&table.mappings, (uintptr_t)pointer);
    bool inside = row != NULL && (uintptr_t)pointer - row->start < row->bytes;
    bytes = inside ? row->bytes : 0;
    lock_free(&table.lock);
    if (inside) {
        message_interior_pointer(pointer, "span", bytes);
    }
    message_foreign_pointer(pointer);
}

OUT_OF_LINE _Noreturn void large_wrong_size(const void *block, uint32_t tag, size_t given) {
    size_t bytes = large_usable(block, tag, false);
    if (tag == TAG_LARGE) {
        bytes = (size_t)arena_span(arena_slice(block))->slices << SLICE_BITS;
    }
    message_wrong_size(block, given, "span", bytes);
}

/* -- figures and fork ---------------------------------------------------------------------------------------- */

void large_figures(size_t *mappings, size_t *bytes) {
    lock_take(&table.lock);
    *mappings = table.mappings.count;
    *bytes = table.used;
    lock_free(&table.lock);
}

void large_after_fork(void) { lock_reset(&table.lock); }
