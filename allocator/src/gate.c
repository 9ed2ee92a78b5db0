#include "gate.h"

#include "memory_hooks.h"
#include "os.h"
#include "patience.h"
#include "turns.h"

struct gate gate;

/* Whole pages of the library's zeroed data, which are memory without a file as the kernel wants it here. */
union {
    struct gate_page page;
    char room[OS_PAGE_MOST];
} gate_wiped LAID_LAST __attribute__((aligned(OS_PAGE_MOST)));

void gate_open(void) {
    if (gate.page == NULL) {
        os_wipe_on_fork(&gate_wiped, sizeof gate_wiped);
        atomic_store_explicit(&gate_wiped.page.mark, GATE_RIGHT, memory_order_relaxed);
        gate.page = &gate_wiped.page;
    }
}

bool gate_is_own_process(bool settles) {
    /* A child that nobody has put right yet: of vfork it would see its parent's mark. */
    if (gate.page != NULL && atomic_load_explicit(&gate.page->mark, memory_order_relaxed) == GATE_CHILD) {
        return true;
    }
    uint32_t own = gate.page != NULL ? atomic_load_explicit(&gate.page->process, memory_order_relaxed) : 0;
    if (own == GATE_ANY && settles) { /* relaxed: threads of one process store the same */
        atomic_store_explicit(&gate.page->process, os_process(), memory_order_relaxed);
    }
    own = own != 0 ? own : os_process_at_start();
    return own == GATE_ANY || own == 0 || own == os_process();
}

void gate_tell(void) {
    /* release: what was done inside comes before the fork that sees this */
    atomic_fetch_add_explicit(&gate.left, 1, memory_order_release);
    os_wake_all(&gate.left);
}

/* One thread puts the child right, others are refused meanwhile. */
static bool settle_child(void) {
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong_explicit(&gate.page->settling, &nobody, 1, memory_order_acquire,
                                                 memory_order_relaxed)) {
        return false;
    }
    bool right = atomic_load_explicit(&gate.page->mark, memory_order_relaxed) == GATE_RIGHT;
    enum gate_answer answer = right ? GATE_LATER : gate_put_child_right();
    if (answer == GATE_PUT_RIGHT) {
        /* Those counted are threads of the parent's that were refused just then: in a child nobody counts before the mark is set. */
        atomic_store_explicit(&gate.outsiders, 0, memory_order_relaxed);
        if (atomic_load_explicit(&gate.page->process, memory_order_relaxed) == 0) { /* no handler ran */
            atomic_store_explicit(&gate.page->process, GATE_ANY, memory_order_relaxed);
        }
    }
    if (answer != GATE_LATER) {
        uint32_t mark = answer == GATE_PUT_RIGHT ? GATE_RIGHT : GATE_TORN;
        /* release: who sees the mark sees what was put right */
        atomic_store_explicit(&gate.page->mark, mark, memory_order_release);
    }
    atomic_store_explicit(&gate.page->settling, 0, memory_order_release);
    return right || answer == GATE_PUT_RIGHT;
}

bool gate_found_closed(void) {
    turns_note_refused();
    return atomic_load_explicit(&gate.page->mark, memory_order_relaxed) == GATE_CHILD && settle_child() &&
           atomic_load_explicit(&gate.page->forks, memory_order_relaxed) == 0;
}

bool gate_enter(void) {
    do {
        if (gate_is_open()) {
            atomic_fetch_add_explicit(&gate.outsiders, 1, memory_order_seq_cst);
            if (gate_is_open()) {
                return true;
            }
            atomic_fetch_sub_explicit(&gate.outsiders, 1, memory_order_release);
        }
    } while (gate_found_closed());
    return false;
}

void gate_leave(void) {
    /* release: what was done inside comes before the fork that sees nobody there */
    atomic_fetch_sub_explicit(&gate.outsiders, 1, memory_order_release);
    gate_left();
}

bool gate_close(bool (*is_quiet)(void), uint32_t milliseconds) {
    if (atomic_load_explicit(&gate.page->mark, memory_order_relaxed) == GATE_CHILD) {
        (void)settle_child(); /* a child that forks at once: what its parent's threads said they were is of no matter */
    }
    if (atomic_fetch_add_explicit(&gate.page->forks, 1, memory_order_seq_cst) == 0) {
        turns_note_closed();
    }
    if (atomic_load_explicit(&gate.page->mark, memory_order_relaxed) != GATE_RIGHT) {
        return false;
    }
    enum {
        NAP_MS = 1, /* who left before the gate was seen closed does not wake */
        HOOK_MS =
            1000, /* somebody inside is in a memory hook, which may wait for a lock of the program that the caller holds */
    };
    struct patience patience = patience_begin();
    for (bool slept = false;;) {
        uint32_t left = atomic_load_explicit(&gate.left, memory_order_acquire);
        if (is_quiet()) {
            return true;
        }
        uint32_t most = memory_hooks_are_running() ? (uint32_t)bits_min(milliseconds, HOOK_MS) : milliseconds;
        if (patience_ended(&patience, slept, NAP_MS, most)) {
            return false;
        }
        slept = os_wait_for(&gate.left, left, NAP_MS);
    }
}

void gate_count_down(_Atomic uint32_t *count) {
    uint32_t seen = atomic_load_explicit(count, memory_order_relaxed);
    while (seen != 0 &&
           !atomic_compare_exchange_weak_explicit(count, &seen, seen - 1, memory_order_seq_cst, memory_order_relaxed)) {
    }
}

void gate_reopen(void) {
    gate_count_down(&gate.page->forks);
    if (!gate_is_forking()) {
        turns_note_open();
    }
}

void gate_shut(void) {
    if (gate.page != NULL) {
        atomic_fetch_add_explicit(&gate.page->forks, 1, memory_order_seq_cst);
    }
}

/* -- the child ----------------------------------------------------------------------------------------------- */

void gate_mark_child(enum gate_fork fork, void *forker, void *cache, uint32_t forks, uint32_t process) {
    struct gate_page *page = gate.page;
    /* For kernels that wipe no page; the child has one thread. */
    atomic_store_explicit(&page->mark, GATE_CHILD, memory_order_relaxed);
    atomic_store_explicit(&page->forks, forks, memory_order_relaxed);
    atomic_store_explicit(&page->settling, 0, memory_order_relaxed);
    atomic_store_explicit(&page->leaving, forks, memory_order_relaxed);
    atomic_store_explicit(&page->keeper, 0, memory_order_relaxed);
    atomic_store_explicit(&page->process, process, memory_order_relaxed);
    atomic_store_explicit(&page->fork, fork, memory_order_relaxed);
    atomic_store_explicit(&page->forker, forker, memory_order_relaxed);
    atomic_store_explicit(&page->cache, cache, memory_order_relaxed);
    turns_forget();
}
