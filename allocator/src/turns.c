#include "turns.h"

#include "gate.h"
#include "os.h"
#include "patience.h"

struct turns turns;

enum {
    TURN_MOST_NS = 5000000, /* the gate stays open for those who were kept out, */
    TURN_LEAST_NS = 1000000, /* as long as it was closed, within these */
    TURN_NAP_MS = 1,
    TURN_WAIT_MS = 100, /* a fork waits for its turn */
    OPENING_WAIT_MS = 5, /* who is refused waits for a fork */
    OPENING_WAIT_LAST_MS =
        10000, /* ... without other memory: a fork waits up to 5 s for threads inside, and copies 100 GiB in about 1 s */
};

static bool is_others_turn(void) {
    return gate_is_forking() ? atomic_load_explicit(&turns.refused, memory_order_relaxed)
                             : stamp_is_ahead(atomic_load_explicit(&turns.open_until, memory_order_relaxed),
                                              os_nanoseconds(), TURN_MOST_NS);
}

void turns_await(void) {
    if (!gate_is_forking()) {
        return;
    }
    struct patience patience = patience_begin();
    atomic_fetch_add_explicit(&turns.waiting, 1, memory_order_seq_cst);
    uint32_t turn = atomic_load_explicit(&turns.number, memory_order_acquire);
    bool slept = false;
    while (is_others_turn() && !patience_ended(&patience, slept, TURN_NAP_MS, TURN_WAIT_MS)) {
        slept = os_wait_for(&turns.number, turn, TURN_NAP_MS);
        turn = atomic_load_explicit(&turns.number, memory_order_acquire);
    }
    gate_count_down(&turns.waiting);
}

/* False once somebody has waited for so long, in this turn, in vain. */
static bool await_next_turn(_Atomic uint32_t *vain_turn, struct patience *patience, uint32_t limit_ms) {
    uint32_t turn = atomic_load_explicit(&turns.number, memory_order_acquire);
    if (atomic_load_explicit(vain_turn, memory_order_relaxed) == turn + 1) {
        return false;
    }
    bool in_vain = false, slept = false;
    atomic_fetch_add_explicit(&turns.waiting, 1, memory_order_seq_cst);
    while (!in_vain && gate_is_forking() && atomic_load_explicit(&turns.number, memory_order_acquire) == turn) {
        in_vain = patience_ended(patience, slept, OPENING_WAIT_MS, limit_ms);
        if (in_vain) {
            atomic_store_explicit(vain_turn, turn + 1, memory_order_relaxed);
        } else {
            slept = os_wait_for(&turns.number, turn, OPENING_WAIT_MS);
        }
    }
    gate_count_down(&turns.waiting);
    return !in_vain;
}

bool turns_await_opening(void) {
    if (gate_is_forking()) {
        struct patience patience = patience_begin();
        (void)await_next_turn(&turns.in_vain, &patience, OPENING_WAIT_MS);
    }
    return gate_is_open();
}

bool turns_await_opening_at_last(struct patience *patience) {
    if (gate_is_forking()) {
        return await_next_turn(&turns.in_vain_at_last, patience, OPENING_WAIT_LAST_MS);
    }
    if (gate_is_open()) {
        return true;
    }
    os_nap(1); /* a child that another thread puts right, or has to: see gate_found_closed */
    return !gate_is_torn() && !patience_ended(patience, true, 1, OPENING_WAIT_LAST_MS);
}

void turns_note_refused(void) { atomic_store_explicit(&turns.refused, true, memory_order_relaxed); }

void turns_note_closed(void) { atomic_store_explicit(&turns.closed_at, os_nanoseconds(), memory_order_relaxed); }

void turns_note_open(void) {
    if (atomic_exchange_explicit(&turns.refused, false, memory_order_relaxed)) {
        uint64_t now = os_nanoseconds(), closed = now - atomic_load_explicit(&turns.closed_at, memory_order_relaxed);
        uint64_t turn = bits_min(bits_max(closed, TURN_LEAST_NS), TURN_MOST_NS);
        atomic_store_explicit(&turns.open_until, now + turn, memory_order_relaxed);
    }
    /* release: who sees the next turn sees the gate open */
    atomic_fetch_add_explicit(&turns.number, 1, memory_order_release);
    if (atomic_load_explicit(&turns.waiting, memory_order_seq_cst) != 0) {
        os_wake_all(&turns.number);
    }
}

void turns_forget(void) {
    atomic_store_explicit(&turns.waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&turns.refused, false, memory_order_relaxed);
    /* The turn goes on here, and nobody opens the gate of it. */
    atomic_store_explicit(&turns.in_vain, 0, memory_order_relaxed);
    atomic_store_explicit(&turns.in_vain_at_last, 0, memory_order_relaxed);
}
