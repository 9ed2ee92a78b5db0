#include "gate.h"

#include "os.h"

struct gate gate;

static gate_child *put_right;

bool gate_open(void) {
    if (gate.mark != NULL) {
        return true;
    }
    _Atomic uint32_t *mark = os_map_wiped(os_page_bytes());
    if (mark == NULL) {
        return false;
    }
    atomic_store_explicit(mark, 1, memory_order_relaxed);
    gate.mark = mark;
    return true;
}

void gate_watch(gate_child *child) { put_right = child; }

void gate_tell(void) {
    /* release: what was done inside comes before the fork that sees this */
    atomic_fetch_add_explicit(&gate.left, 1, memory_order_release);
    os_wake(&gate.left);
}

/* One thread puts the child right, others are refused meanwhile. */
static bool settle_child(void) {
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong_explicit(&gate.settling, &nobody, 1, memory_order_acquire,
                                                 memory_order_relaxed)) {
        return false;
    }
    bool right = atomic_load_explicit(gate.mark, memory_order_relaxed) != 0;
    if (!right) {
        right = put_right();
        atomic_store_explicit(&gate.outsiders, 0, memory_order_relaxed);
        atomic_store_explicit(gate.mark, 1, memory_order_relaxed);
        /* last, and seq_cst: who sees the gate open sees what was put right */
        atomic_store_explicit(&gate.forks, right ? 0 : 1, memory_order_seq_cst);
    }
    atomic_store_explicit(&gate.settling, 0, memory_order_release);
    return right;
}

bool gate_found_closed(void) {
    if (unlikely(atomic_load_explicit(gate.mark, memory_order_relaxed) == 0)) {
        return settle_child();
    }
    gate_tell();
    return false;
}

bool gate_enter(void) {
    do {
        atomic_fetch_add_explicit(&gate.outsiders, 1, memory_order_seq_cst);
        if (gate_is_open()) {
            return true;
        }
        atomic_fetch_sub_explicit(&gate.outsiders, 1, memory_order_release);
    } while (gate_found_closed());
    return false;
}

void gate_leave(void) {
    /* release: what was done inside comes before the fork that sees nobody there */
    atomic_fetch_sub_explicit(&gate.outsiders, 1, memory_order_release);
    gate_left();
}

bool gate_close(bool (*is_quiet)(void), uint32_t milliseconds) {
    atomic_fetch_add_explicit(&gate.forks, 1, memory_order_seq_cst);
    uint64_t begun = os_milliseconds();
    for (;;) {
        uint32_t left = atomic_load_explicit(&gate.left, memory_order_acquire);
        if (is_quiet()) {
            return true;
        }
        if (os_milliseconds() - begun > milliseconds) {
            return false;
        }
        os_wait_for(&gate.left, left, 1); /* who left before the gate was seen closed does not wake */
    }
}

void gate_reopen(void) { atomic_fetch_sub_explicit(&gate.forks, 1, memory_order_seq_cst); }

void gate_mark_child(void) { atomic_store_explicit(gate.mark, 0, memory_order_relaxed); }
