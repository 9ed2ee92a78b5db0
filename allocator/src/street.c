#include "street.h"

#include <stdatomic.h>

#include "keeper.h"
#include "lock.h"
#include "options.h"
#include "os.h"

enum {
    GROW_LEAST = 32,        /* slices made usable at a time: 2 MiB */
    GROW_MOST = 1024,       /* ... to 64 MiB; half of what is usable in between */
    ROWS_LEAST = 1024,      /* slices whose rows of bookkeeping are made usable at first: 64 MiB */
    BOOKKEEPING_SHARE = 64, /* the part of the street that bookkeeping beyond the rows may take, */
    BOOKKEEPING_LEAST = SLICE_BYTES,
    HUGE_PAGE = 2 * 1024 * 1024,
    MAGAZINE_ALIGNMENT = 1024, /* a magazine's end is told from its address */
    BOOKKEEPING_STEP_MOST = 4 * 1024 * 1024, /* made usable at a time, at most; as much again as there is until then */
    BOOKKEEPING_LOW = 16 * 1024, /* usable and not handed out */
    SKIP_LEAST = 16, /* slices left out where somebody else's mapping is in the way, then twice as many, */
    SKIP_MOST = 16384, /* to a gibibyte */
};

static const size_t TEBIBYTE = (size_t)1 << 40;

/* A part of the street that grows at its place. */
struct part {
    char *at;
    size_t usable, room; /* bytes, multiples of a page */
    size_t skipped; /* of what is usable: at the start, and never mapped */
};

struct window window;
struct span *arena_spans;
char *arena_bitmaps;

/* Written by street_open, and but for `reserved` and the numbers after that by whoever may call street_grow. */
static struct {
    struct part tags, spans, bitmaps;
    bool reserved; /* address space was reserved after all: usable by a change of protection */
    bool limited; /* from the start: not even the addresses of a small street were to be had */
    uint32_t first, limit;
    uint32_t skip;
    bool tight; /* the last growth was refused */
    _Atomic bool locked; /* pages come locked, as far as is known; read by others: see street_is_locked */
    _Atomic uint32_t described; /* read by others: see street_described */
} street;

/* Whole pages are handed out, and pieces of the last ones that pieces needed. Protects all of it. In cache lines of its own: it changes, and what lies
 * beside it, such as the window's bounds, is read by every free. */
static _Alignas(64) struct {
    struct lock lock;
    char *piece, *piece_end; /* left for pieces */
    struct lock growing; /* taken before `lock`, by who asks the kernel */
    struct part part; /* `usable` changes under both */
    _Atomic size_t used; /* read without the lock: see street_bookkeeping_is_low */
    _Atomic size_t usable; /* the part's, for the same reader */
} bookkeeping;

uint32_t street_first(void) { return street.first; }

uint32_t street_limit(void) { return street.limit; }

uint32_t street_described(void) { return atomic_load_explicit(&street.described, memory_order_relaxed); }

/* -- parts --------------------------------------------------------------------------------------------------- */

static enum os_answer map_there(char *at, size_t bytes) {
    if (!street.reserved) {
        return os_map_at(at, bytes);
    }
    return os_commit(at, bytes) ? OS_DONE : OS_REFUSED;
}

/* Makes the part usable up to `bytes`. */
static enum os_answer grow_part(struct part *part, size_t bytes) {
    bytes = bits_round_up(bytes, os_page_bytes());
    if (bytes <= part->usable) {
        return OS_DONE;
    }
    if (bytes > part->room) {
        return OS_REFUSED;
    }
    enum os_answer answer = map_there(part->at + part->usable, bytes - part->usable);
    part->usable = answer == OS_DONE ? bytes : part->usable;
    return answer;
}

/* Rows of bookkeeping for the slices below `to`. */
static enum os_answer grow_rows(uint32_t to) {
    if (to <= street_described()) {
        return OS_DONE;
    }
    enum os_answer answer = grow_part(&street.tags, to * sizeof(uint32_t));
    answer = answer == OS_DONE ? grow_part(&street.spans, to * sizeof(struct span)) : answer;
    answer = answer == OS_DONE ? grow_part(&street.bitmaps, (size_t)to * BITMAP_BYTES) : answer;
    if (answer == OS_DONE) {
        atomic_store_explicit(&street.described, to, memory_order_relaxed);
    }
    return answer;
}

/* Makes so many bytes more usable for street_bookkeeping. */
static enum os_answer grow_bookkeeping(size_t more) {
    enum os_answer answer = grow_part(&bookkeeping.part, bookkeeping.part.usable + more);
    /* relaxed: a mapping is there for every thread from the moment it is made */
    atomic_store_explicit(&bookkeeping.usable, bookkeeping.part.usable, memory_order_relaxed);
    return answer;
}

/* -- choosing it --------------------------------------------------------------------------------------------- */

/* One part behind the other, from `at` on; returns the end. What runs over a part's end finds a page that is never mapped. */
static char *lay_part(struct part *part, char *at, size_t bytes) {
    size_t page = os_page_bytes();
    *part = (struct part){.at = at, .room = bits_round_up(bytes, page)};
    return at + part->room + page;
}

/* The rows of the bookkeeping's own slices are never mapped. */
static void skip_rows(struct part *part, size_t unit) {
    part->skipped = part->usable = street.first * unit & ~(os_page_bytes() - 1);
}

/* False when the street is too short for its bookkeeping. */
static bool lay_out(char *at, size_t bytes) {
    size_t slices = bytes >> SLICE_BITS;
    char *end = lay_part(&street.tags, at, slices * sizeof(uint32_t));
    arena_spans = (struct span *)(void *)end;
    end = lay_part(&street.spans, end, slices * sizeof(struct span));
    arena_bitmaps = end;
    end = lay_part(&street.bitmaps, end, slices * BITMAP_BYTES);
    end = (char *)bits_round_up((uintptr_t)end, os_page_bytes());
    end = lay_part(&bookkeeping.part, end, bits_max(bytes / BOOKKEEPING_SHARE, BOOKKEEPING_LEAST));
    window.base = (uintptr_t)at;
    street.first = (uint32_t)(bits_round_up((size_t)(end - at), SLICE_BYTES) >> SLICE_BITS);
    street.limit = (uint32_t)slices;
    atomic_store_explicit(&street.described, 0, memory_order_relaxed);
    skip_rows(&street.spans, sizeof(struct span));
    skip_rows(&street.bitmaps, BITMAP_BYTES);
    return street.first < street.limit;
}

/* Maps the first rows of each part, which shows whether the place is free. Under a limit the tags of the bookkeeping's own slices suffice:
 * a tag is read for any address below extent. */
static bool map_first_rows(void) {
    enum os_answer rows = grow_rows((uint32_t)bits_min(street.limit, (size_t)street.first + ROWS_LEAST));
    enum os_answer stock = rows == OS_DONE ? grow_bookkeeping(BOOKKEEPING_LEAST) : rows;
    return stock == OS_DONE ||
           (stock == OS_REFUSED && grow_part(&street.tags, street.first * sizeof(uint32_t)) == OS_DONE);
}

static void forget_part(struct part *part) {
    if (part->usable > part->skipped) {
        (void)os_unmap_unseen(part->at + part->skipped, part->usable - part->skipped);
    }
}

static void forget(char *at, size_t bytes) {
    if (street.reserved) {
        (void)os_unmap_unseen(at, bytes);
        return;
    }
    forget_part(&street.tags);
    forget_part(&street.spans);
    forget_part(&street.bitmaps);
    forget_part(&bookkeeping.part);
}

static bool open_at(uintptr_t at, size_t bytes) {
    if (lay_out((char *)at, bytes) && map_first_rows()) {
        return true;
    }
    forget((char *)at, bytes);
    return false;
}

/* Reserved as a whole, as large as the kernel grants: where nothing else does, or the program asks for it. */
static bool open_reserved(size_t most) {
    street.reserved = true;
    for (size_t bytes = most; bytes >= (size_t)1 << 20; bytes >>= 1) {
        char *at = os_reserve(bytes, SLICE_BYTES);
        if (at != NULL && open_at((uintptr_t)at, bytes)) {
            return true;
        }
    }
    street.reserved = false;
    return false;
}

/* Far from `near`, where the kernel puts what the program maps, one after the other: programs map more than a tebibyte where they only
 * reserve addresses. */
static bool open_far(uintptr_t near, size_t bytes) {
#if defined __SANITIZE_THREAD__ /* whose shadow has no more than the kernel's own choice */
    enum { APART = 0 };
#else
    enum { APART = 16 };
#endif
    size_t apart = APART * TEBIBYTE;
    if (near / 4 > apart + bytes) {
        return open_at(near - apart - bytes, bytes);
    }
    return open_at(near + apart, bytes); /* an emulator, or the kernel's choice goes up from below the middle */
}

/* In an address space of less than some ten tebibytes: between what the kernel puts below its first choice or above it, and the program, which
 * lies either low or at two thirds of all addresses. */
static bool open_near(uintptr_t near, size_t most, bool upwards) {
    size_t bytes = bits_min(most, upwards ? near / 2 : near / 8 * 3) & ~(size_t)(SLICE_BYTES - 1);
    uintptr_t at = (upwards ? near + near / 8 : near / 4) & ~(uintptr_t)(SLICE_BYTES - 1);
    return open_at(at, bytes);
}

/* The kernel is asked for little to find a place: addresses cost some emulators a record a page. */
bool street_open(void) {
    enum { MUCH_MIB = 1024 }; /* whoever limits address space to less will need all of it */
    enum { ROOMY = 64 << 20 }; /* bytes: there is room for the rows of a tebibyte, and for much else */
    uint32_t asked = option_value(OPTION_RESERVE_GIB);
    if (asked != 0 && open_reserved((size_t)1 << (30 + bits_highest(asked)))) {
        return true;
    }
    uintptr_t near = (uintptr_t)os_find((size_t)MUCH_MIB << 20, os_page_bytes());
    street.limited = near == 0;
    /* Rows for a tebibyte would be a part of what little there is. */
    size_t bytes = street.limited && !os_has_room(ROOMY) ? TEBIBYTE / 16 : TEBIBYTE;
    near = near == 0 ? (uintptr_t)os_find(os_page_bytes(), os_page_bytes()) : near;
    near &= ~(uintptr_t)(SLICE_BYTES - 1);
    /* From above the kernel begins below the stack; from below at a third of all addresses, or a quarter. */
    bool upwards = near < (uintptr_t)__builtin_frame_address(0) / 2;
    bool opened =
        near != 0 && (open_far(near, bytes) || open_near(near, bytes, upwards) || open_near(near, bytes, !upwards));
    if (!opened && !open_reserved(TEBIBYTE)) {
        window.base = 0;
        return false;
    }
    return true;
}

/* -- growing ------------------------------------------------------------------------------------------------- */

/* So many slices, if the street has them and memory for their rows. */
static enum os_answer map_slices(uint32_t from, uint32_t slices) {
    if (slices > street.limit - from || grow_rows(from + slices) != OS_DONE) {
        return OS_REFUSED;
    }
    return map_there(arena_address(from), (size_t)slices << SLICE_BITS);
}

/* Leaves out what is in the way. False at the street's end. */
static bool skip(uint32_t *from) {
    street.skip = (uint32_t)bits_min(bits_max(2 * (size_t)street.skip, SKIP_LEAST), SKIP_MOST);
    if (street.limit - *from <= street.skip) {
        return false;
    }
    *from += street.skip;
    return true;
}

/* So many slices and, where they are many, a few more, so that what is usable ends with a chunk that may have a huge page. */
static uint32_t to_chunk(uint32_t from, size_t slices) {
    if (slices < (size_t)4 * GROW_LEAST) {
        return (uint32_t)slices;
    }
    uintptr_t end = (uintptr_t)arena_address(from) + (slices << SLICE_BITS);
    return (uint32_t)(slices + ((bits_round_up(end, HUGE_PAGE) - end) >> SLICE_BITS));
}

/* With rows for more than that, so that there are few steps. */
static bool grow_generously(uint32_t from, uint32_t slices) {
    size_t half = (from - street.first) / 2;
    (void)grow_rows((uint32_t)bits_min(street.limit, from + bits_max(2 * half, ROWS_LEAST)));
    return map_slices(from, slices) == OS_DONE;
}

bool street_is_locked(void) { return atomic_load_explicit(&street.locked, memory_order_relaxed); }

bool street_comes_locked(void) {
    bool locked = !keeper_is_confined() && os_locks_what_comes();
    atomic_store_explicit(&street.locked, locked, memory_order_relaxed);
    return locked;
}

/* Half of what is usable, between bounds. Pages that come locked are all brought in at once, and stay. */
static uint32_t step(uint32_t from, uint32_t least) {
    size_t half = (from - street.first) / 2;
    uint32_t slices = to_chunk(from, bits_max(bits_min(bits_max(half, GROW_LEAST), GROW_MOST), least));
    bool is_long = slices > GROW_LEAST && slices > least;
    return is_long && street_comes_locked() ? (uint32_t)bits_max(GROW_LEAST, least) : slices;
}

uint32_t street_grow(uint32_t *from, uint32_t least) {
    do {
        uint32_t slices = street.tight ? least : step(*from, least);
        if (!street.tight && grow_generously(*from, slices)) {
            return slices;
        }
        enum os_answer answer = map_slices(*from, least);
        if (answer == OS_DONE) {
            street.tight = false;
            return least;
        }
        street.tight = true; /* until there is memory again, the least is asked for and no more */
        if (answer == OS_REFUSED) {
            return 0;
        }
    } while (skip(from));
    return 0;
}

enum os_answer street_map_again(uint32_t slice, uint32_t slices) {
    return map_there(arena_address(slice), (size_t)slices << SLICE_BITS);
}

bool street_is_reserved(void) { return street.reserved; }

bool street_is_limited(void) { return street.limited; }

/* Pages of rows of unusable slices alone: nobody writes there until the slices are usable again, and whoever reads a tag finds that there is
 * none. What lies behind `to` on its page is as unusable. */
static void purge_rows(const struct part *part, size_t unit, uint32_t from, uint32_t to) {
    size_t page = os_page_bytes();
    size_t begin = bits_round_up(from * unit, page);
    size_t end = bits_min(bits_round_up(to * unit, page), part->usable);
    if (begin < end) {
        (void)os_purge_unseen(part->at + begin, end - begin);
    }
}

/* Unseen by memory hooks, since the caller holds a lock. They have seen the slices purged, or that the kernel refused to, and nobody has had
 * them since. */
void street_shrink(uint32_t from, uint32_t to) {
    void *at = arena_address(from);
    purge_rows(&street.tags, sizeof(uint32_t), from, to);
    purge_rows(&street.spans, sizeof(struct span), from, to);
    purge_rows(&street.bitmaps, BITMAP_BYTES, from, to);
    size_t bytes = (size_t)(to - from) << SLICE_BITS;
    if (street.reserved) {
        os_decommit(at, bytes);
    } else {
        (void)os_unmap_unseen(at, bytes);
    }
}

/* -- bookkeeping --------------------------------------------------------------------------------------------- */

static size_t in_stock(void) {
    return atomic_load_explicit(&bookkeeping.usable, memory_order_relaxed) -
           atomic_load_explicit(&bookkeeping.used, memory_order_relaxed);
}

bool street_bookkeeping_is_low(void) { return in_stock() < bits_max(BOOKKEEPING_LOW, 2 * os_page_bytes()); }

bool street_bookkeeping_grow(void) {
    lock_take(&bookkeeping.growing);
    bool enough = !street_bookkeeping_is_low();
    size_t more = bits_max(bits_min(bookkeeping.part.usable, BOOKKEEPING_STEP_MOST), BOOKKEEPING_LEAST);
    enough = enough || grow_bookkeeping(more) == OS_DONE || grow_bookkeeping(BOOKKEEPING_LEAST) == OS_DONE;
    lock_free(&bookkeeping.growing);
    return enough;
}

/* The next `bytes`, whole pages; NULL if so many are not usable. Under the lock. */
static char *next_pages(size_t bytes) {
    size_t used = atomic_load_explicit(&bookkeeping.used, memory_order_relaxed);
    if (bytes > in_stock()) {
        return NULL;
    }
    atomic_store_explicit(&bookkeeping.used, used + bytes, memory_order_relaxed);
    return bookkeeping.part.at + used;
}

/* Room for a piece of so many bytes: more pages behind those before, or elsewhere. */
static bool has_piece(size_t bytes) {
    size_t left = (size_t)(bookkeeping.piece_end - bookkeeping.piece);
    if (left >= bytes) {
        return true;
    }
    size_t used = atomic_load_explicit(&bookkeeping.used, memory_order_relaxed);
    bool goes_on = bookkeeping.piece_end == bookkeeping.part.at + used;
    size_t more = bits_round_up(goes_on ? bytes - left : bytes, os_page_bytes());
    char *pages = next_pages(more);
    if (pages != NULL) {
        bookkeeping.piece = goes_on ? bookkeeping.piece : pages;
        bookkeeping.piece_end = pages + more;
    }
    return pages != NULL;
}

void *street_bookkeeping(size_t bytes) {
    bytes = bits_round_up(bytes, MAGAZINE_ALIGNMENT);
    void *memory = NULL;
    lock_take(&bookkeeping.lock);
    if (has_piece(bytes)) {
        memory = bookkeeping.piece;
        bookkeeping.piece += bytes;
    }
    lock_free(&bookkeeping.lock);
    return memory;
}

void *street_bookkeeping_page(void) {
    lock_take(&bookkeeping.lock);
    void *page = next_pages(os_page_bytes());
    lock_free(&bookkeeping.lock);
    return page;
}

size_t street_bookkeeping_bytes(void) { return atomic_load_explicit(&bookkeeping.used, memory_order_relaxed); }

void street_after_fork(void) {
    lock_reset(&bookkeeping.lock);
    lock_reset(&bookkeeping.growing);
}
