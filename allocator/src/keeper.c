#include "keeper.h"

#include "options.h"
#include "os.h"

enum {
    NAP_MS = 333,       /* between two looks round; longer after one that gave nothing back, for looking */
    NAP_LOOKS = 200,    /* to take a two-hundredth of the time, up to */
    NAP_MOST_MS = 4000, /* this */
    QUIET_ROUNDS = 3,   /* looks without a wish and without a return before it ends */
};

_Atomic uint32_t keeper_wished;

static struct {
    _Atomic uint32_t alive; /* its thread number, zeroed by the kernel when it is gone; 1 while it is being started */
    _Atomic uint32_t ending; /* it has stopped looking but for a last time */
    _Atomic uint32_t never; /* the kernel refused it; relaxed: who sees that late asks once more */
    _Atomic uint32_t nap; /* what it sleeps on; never changes */
    keeper_round *round; /* written before the start, read by the thread */
    void *memory; /* of its stack, for one life after the other; changed by who has claimed `alive` */
    uint32_t filtered; /* 1: system calls were filtered from the start on, 2: they were not; 0: not yet known */
} keeper;

/* True when it may end: nobody has wished for it meanwhile. */
static bool may_end(void) {
    atomic_store_explicit(&keeper.ending, 1, memory_order_seq_cst);
    if (atomic_exchange_explicit(&keeper_wished, 0, memory_order_seq_cst) == 0) {
        return true;
    }
    atomic_store_explicit(&keeper.ending, 0, memory_order_seq_cst);
    return false;
}

/* A program that has locked itself into a sandbox since it started may be killed for a call that the sandbox does not
 * know; one that was started in a sandbox, as in a container, expects threads. */
static bool may_go_on(void) { return keeper.filtered == 1 || os_is_unfiltered(); }

/* After a look that took so long, and gave nothing back. */
static uint32_t nap_after(uint64_t look_ns) {
    return (uint32_t)bits_min(bits_max(look_ns * NAP_LOOKS / 1000000, NAP_MS), NAP_MOST_MS);
}

static void look_round_until_quiet(void) {
    os_name_thread("freestone");
    os_drop_capabilities();
    uint32_t nap = NAP_MS;
    int quiet = 0;
    for (;;) {
        os_wait_for(&keeper.nap, 0, nap);
        while (!may_go_on()) { /* not even to end: the sandbox may not know that call */
            os_wait(&keeper.nap, 0);
        }
        bool wished = atomic_exchange_explicit(&keeper_wished, 0, memory_order_seq_cst) != 0;
        bool more;
        uint64_t began = os_nanoseconds();
        bool returned = keeper.round(&more) > 0;
        nap = returned ? NAP_MS : nap_after(os_nanoseconds() - began);
        quiet = wished || returned || more ? 0 : quiet + 1;
        if (quiet >= QUIET_ROUNDS && may_end()) {
            return;
        }
    }
}

void keeper_open(void) { keeper.filtered = os_is_unfiltered() ? 2 : 1; }

/* The caller has claimed `alive`. */
static bool start(keeper_round *round) {
    if (keeper.memory == NULL) {
        keeper.memory = os_map(OS_THREAD_BYTES, os_page_bytes());
    }
    keeper.round = round;
    atomic_store_explicit(&keeper.ending, 0, memory_order_seq_cst);
    return keeper.memory != NULL && os_start_thread(look_round_until_quiet, keeper.memory, &keeper.alive);
}

OUT_OF_LINE void keeper_serve(keeper_round *round) {
    if (atomic_load_explicit(&keeper.never, memory_order_relaxed) != 0 || option_value(OPTION_KEEPER) == 0) {
        atomic_store_explicit(&keeper_wished, 0, memory_order_relaxed); /* so that nobody asks again before the next */
        return;
    }
    /* seq_cst: the wish came first, see keeper.h */
    uint32_t alive = atomic_load_explicit(&keeper.alive, memory_order_seq_cst);
    if (alive != 0) {
        if (atomic_load_explicit(&keeper.ending, memory_order_seq_cst) == 0) {
            return; /* it will see the wish */
        }
        os_wait_for(&keeper.alive, alive, 1); /* on its last few instructions; else the next slow path will do */
    }
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong_explicit(&keeper.alive, &none, 1, memory_order_seq_cst, memory_order_relaxed)) {
        return;
    }
    if (!may_go_on() || !start(round)) {
        atomic_store_explicit(&keeper.never, 1, memory_order_relaxed);
        atomic_store_explicit(&keeper.alive, 0, memory_order_seq_cst);
    }
}

void keeper_after_fork(void) {
    atomic_store_explicit(&keeper.alive, 0, memory_order_relaxed);
    atomic_store_explicit(&keeper.ending, 0, memory_order_relaxed);
    atomic_store_explicit(&keeper.never, 0, memory_order_relaxed);
}
