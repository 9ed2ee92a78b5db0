/* The share of small blocks that have pages of their own, between pages that nobody may touch. There an access outside the block, or after its
 * free, faults. Such a block costs some ten microseconds, a page of memory and mappings, so there are few: some in a row, then one in so many
 * milliseconds, as long as their pages are few. */
#include "hard_inside.h"
#include "keeper.h"
#include "options.h"
#include "os.h"

enum {
    AT_ONCE = 16,
    MS_FOR_ONE = 2, /* then the price is about one percent of the time, at most */
    FORK_RESTS_MS =
        100, /* after a fork: the child often ends before, and would copy pages for them; and so would who forks again */
    PAGES_MOST = 1 << 20, /* bytes of pages in use */
};

/* Relaxed, all three: one block more or less is no matter. */
static _Atomic uint32_t allowed, pages;
static _Atomic uint64_t counted; /* when `allowed` grew last: os_milliseconds / MS_FOR_ONE */

void hard_share_open(void) {
    bool is_on = option_value(OPTION_GUARD_PAGES) != 0 && option_value(OPTION_GUARD_SMALL) != 0;
    atomic_store_explicit(&allowed, is_on ? AT_ONCE : 0, memory_order_relaxed);
    atomic_store_explicit(&counted, is_on ? os_milliseconds() / MS_FOR_ONE : UINT64_MAX, memory_order_relaxed);
}

void hard_share_after_fork(void) {
    if (atomic_load_explicit(&counted, memory_order_relaxed) != UINT64_MAX) {
        atomic_store_explicit(&allowed, 0, memory_order_relaxed);
        atomic_store_explicit(&counted, (os_milliseconds() + FORK_RESTS_MS) / MS_FOR_ONE, memory_order_relaxed);
    }
}

static size_t pages_for(size_t size) { return bits_round_up(size, os_page_bytes()); }

static OUT_OF_LINE bool take_one(size_t size, uint32_t now_allowed) {
    size_t bytes = pages_for(size);
    if (atomic_load_explicit(&pages, memory_order_relaxed) + bytes > PAGES_MOST || keeper_is_confined()) {
        return false;
    }
    atomic_store_explicit(&allowed, now_allowed - 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pages, (uint32_t)bytes, memory_order_relaxed);
    return true;
}

bool hard_share_take(size_t size) {
    uint64_t now = os_milliseconds() / MS_FOR_ONE, before = atomic_load_explicit(&counted, memory_order_relaxed);
    uint32_t has = atomic_load_explicit(&allowed, memory_order_relaxed);
    if (unlikely(now > before)) {
        has = (uint32_t)bits_min(has + bits_min(now - before, AT_ONCE), AT_ONCE);
        atomic_store_explicit(&counted, now, memory_order_relaxed);
        atomic_store_explicit(&allowed, has, memory_order_relaxed);
    }
    return unlikely(has > 0) && take_one(size, has);
}

void hard_share_give(size_t bytes) { atomic_fetch_sub_explicit(&pages, (uint32_t)bytes, memory_order_relaxed); }
