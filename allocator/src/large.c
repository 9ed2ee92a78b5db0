#include "large.h"

#include <string.h>

#include "lock.h"
#include "message.h"
#include "options.h"
#include "os.h"

enum {
    HUGE_PAGE = 2 * 1024 * 1024,
    DENSE_LEAST = 4 * 1024 * 1024, /* smaller blocks are often buffers with room to spare */
};

struct mapping {
    uintptr_t start;
    size_t bytes;
};

/* Mappings sorted by start, in memory of its own that doubles. `lock` protects all of it. */
static struct {
    struct lock lock;
    struct mapping *row;
    size_t count, room;
    size_t bytes;
} table;

/* -- the table ----------------------------------------------------------------------------------------------- */

/* Rows that start at or below `at`. */
static size_t rows_up_to(uintptr_t at) {
    size_t low = 0, high = table.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table.row[middle].start <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct mapping *row_of(const void *block) {
    size_t rows = rows_up_to((uintptr_t)block);
    return rows > 0 && table.row[rows - 1].start == (uintptr_t)block ? &table.row[rows - 1] : NULL;
}

static bool make_room(void) {
    if (table.count < table.room) {
        return true;
    }
    size_t old_bytes = table.room * sizeof(struct mapping);
    size_t new_bytes = bits_max(2 * old_bytes, bits_round_up(4096, os_page_bytes()));
    void *grown = old_bytes == 0 ? os_map(new_bytes, os_page_bytes()) : os_remap(table.row, old_bytes, new_bytes);
    if (grown == NULL) {
        return false;
    }
    table.row = grown;
    table.room = new_bytes / sizeof(struct mapping);
    return true;
}

static void insert(uintptr_t start, size_t bytes) {
    size_t at = rows_up_to(start);
    memmove(&table.row[at + 1], &table.row[at], (table.count - at) * sizeof(struct mapping));
    table.row[at] = (struct mapping){start, bytes};
    table.count++;
    table.bytes += bytes;
}

static void erase(struct mapping *row) {
    table.bytes -= row->bytes;
    table.count--;
    memmove(row, row + 1, (size_t)(&table.row[table.count] - row) * sizeof(struct mapping));
}

/* -- taking -------------------------------------------------------------------------------------------------- */

static void *take_mapping(size_t bytes, size_t alignment, bool dense, bool *zero) {
    size_t page = os_page_bytes();
    size_t whole = bits_round_up(bytes, page);
    bool huge = dense && option_value(OPTION_HUGE_FROM_MIB) != HUGE_NEVER;
    void *block = os_map(whole, bits_max(alignment, huge ? HUGE_PAGE : page));
    if (block == NULL) {
        return NULL;
    }
    if (huge) {
        os_prefer_huge(block, whole);
    }
    lock_take(&table.lock);
    bool noted = make_room();
    if (noted) {
        insert((uintptr_t)block, whole);
    }
    lock_free(&table.lock);
    if (!noted) {
        os_unmap(block, whole);
        return NULL;
    }
    *zero = true;
    return block;
}

/* `room` is the length of the span, at least `bytes`. */
static void *take_span(size_t bytes, size_t room, size_t alignment, bool dense, bool *zero) {
    uint32_t slices = (uint32_t)((room + SLICE_BYTES - 1) >> SLICE_BITS);
    dense = dense && bytes >= DENSE_LEAST;
    uint32_t slice = arena_take(slices, (uint32_t)(bits_max(alignment, SLICE_BYTES) >> SLICE_BITS), dense, zero);
    if (slice == 0) {
        return NULL;
    }
    arena_span(slice)->used_bytes = bits_round_up(bytes, os_page_bytes());
    arena_tag(slice, 1, TAG_LARGE);
    arena_tag(slice + 1, slices - 1, TAG_INSIDE);
    return arena_address(slice);
}

void *large_take(size_t bytes, size_t alignment, bool dense, bool *zero) {
    if (bytes <= LARGE_SPAN_MOST && alignment <= LARGE_SPAN_MOST) {
        void *block = take_span(bytes, bytes, alignment, dense, zero);
        if (block != NULL) {
            return block;
        }
    }
    return take_mapping(bytes, alignment, dense, zero);
}

void *large_take_growing(size_t bytes, bool *zero) {
    enum { SHARE = 4 }; /* a quarter more, so that repeated growth moves the block a logarithmic number of times */
    if (bytes <= LARGE_SPAN_MOST) {
        void *block = take_span(bytes, bytes + bytes / SHARE, SLICE_BYTES, true, zero);
        if (block != NULL) {
            return block;
        }
    }
    return large_take(bytes, SLICE_BYTES, true, zero);
}

/* -- giving -------------------------------------------------------------------------------------------------- */

void large_give_span(void *block) {
    uint32_t slice = arena_slice(block);
    if (unlikely(block != arena_address(slice))) {
        message_interior_pointer(block, "span", (size_t)arena_span(slice)->slices << SLICE_BITS);
    }
    size_t bytes = (size_t)arena_span(slice)->slices << SLICE_BITS;
    if (unlikely(!arena_give(slice))) { /* two threads freed it at once; both had seen its tag */
        message_double_free(block, "span", bytes);
    }
    arena_age();
}

bool large_give_mapping(void *block) {
    lock_take(&table.lock);
    struct mapping *row = row_of(block);
    size_t bytes = 0;
    if (row != NULL) {
        bytes = row->bytes;
        erase(row);
    }
    lock_free(&table.lock);
    if (row == NULL) {
        return false;
    }
    os_unmap(block, bytes); /* after it left the table: its address may be mapped anew at once */
    return true;
}

/* -- asking and resizing ------------------------------------------------------------------------------------- */

size_t large_usable(const void *block, uint32_t tag) {
    if (tag == TAG_LARGE) {
        uint32_t slice = arena_slice(block);
        return block == arena_address(slice) ? arena_span(slice)->used_bytes : 0;
    }
    lock_take(&table.lock);
    const struct mapping *row = row_of(block);
    size_t bytes = row == NULL ? 0 : row->bytes;
    lock_free(&table.lock);
    return bytes;
}

static void *resize_span(void *block, size_t bytes) {
    uint32_t slice = arena_slice(block);
    struct span *span = arena_span(slice);
    if (bytes > LARGE_SPAN_MOST) {
        return NULL;
    }
    uint32_t slices = (uint32_t)((bytes + SLICE_BYTES - 1) >> SLICE_BITS);
    uint32_t had = span->slices;
    if (slices > had) {
        if (!arena_extend(slice, slices)) {
            return NULL;
        }
        arena_tag(slice + had, slices - had, TAG_INSIDE);
    } else if (bytes < span->used_bytes && slices < had) {
        arena_shorten(slice, slices);
        arena_age();
    }
    span->used_bytes = bits_round_up(bytes, os_page_bytes());
    return block;
}

/* The row stays in the table while the kernel moves the mapping, under the lock: another thread may be given the old
 * address the moment it is free. */
static void *resize_mapping(void *block, size_t bytes) {
    size_t whole = bits_round_up(bytes, os_page_bytes());
    void *moved = NULL;
    lock_take(&table.lock);
    struct mapping *row = row_of(block);
    if (row != NULL) {
        size_t had = row->bytes;
        moved = had == whole ? block : os_remap(block, had, whole);
        if (moved != NULL) {
            erase(row);
            insert((uintptr_t)moved, whole);
        }
    }
    lock_free(&table.lock);
    return moved;
}

void *large_resize(void *block, uint32_t tag, size_t bytes) {
    return tag == TAG_LARGE ? resize_span(block, bytes) : resize_mapping(block, bytes);
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
            message_double_free(pointer, "span", bytes);
        }
        message_foreign_pointer(pointer);
    }
    lock_take(&table.lock);
    size_t rows = rows_up_to((uintptr_t)pointer);
    bool inside = rows > 0 && (uintptr_t)pointer - table.row[rows - 1].start < table.row[rows - 1].bytes;
    bytes = inside ? table.row[rows - 1].bytes : 0;
    lock_free(&table.lock);
    if (inside) {
        message_interior_pointer(pointer, "span", bytes);
    }
    message_foreign_pointer(pointer);
}

OUT_OF_LINE _Noreturn void large_wrong_size(const void *block, uint32_t tag, size_t given) {
    size_t bytes = large_usable(block, tag);
    if (tag == TAG_LARGE) {
        bytes = (size_t)arena_span(arena_slice(block))->slices << SLICE_BITS;
    }
    message_wrong_size(block, given, "span", bytes);
}

/* -- figures and fork ---------------------------------------------------------------------------------------- */

void large_figures(size_t *mappings, size_t *bytes) {
    lock_take(&table.lock);
    *mappings = table.count;
    *bytes = table.bytes;
    lock_free(&table.lock);
}

void large_before_fork(void) { lock_take(&table.lock); }

void large_after_fork(bool child) {
    if (child) {
        lock_reset(&table.lock);
    } else {
        lock_free(&table.lock);
    }
}
