#include "keeper.h"

#include "gate.h"
#include "memory_hooks.h"
#include "options.h"
#include "os.h"
#include "patience.h"

enum {
    NAP_MS = 333,       /* between two looks round; longer after one that gave nothing back, for looking */
    NAP_LOOKS = 200,    /* to take a two-hundredth of the time, up to */
    NAP_MOST_MS = 4000, /* this */
    QUIET_ROUNDS = 3,   /* looks without a wish and without a return before it ends */
    LEAVE_MS = 200,     /* waited for it to end; a piece of its work takes less than one */
    LEAVE_NAP_MS = 10,
    LEAVE_FIRST_MS = 30000, /* by a call that it would spoil: see keeper.h */
    LEAVE_INSIDE_MS =
        20, /* the same by a signal's handler that has interrupted its thread with a lock, perhaps, that the keeper waits for */
    RETURN_MS =
        100, /* after that, before it is started again: forks often come one after the other, and who forks may count threads */
    RETURN_WISHES = 64, /* ... or so many slow paths: a program that works on */
    REFUSED_MS = 1000, /* before it is tried again after a refusal; twice as long each time, */
    REFUSED_MOST_MS = 4000, /* up to this: a call in so long costs nothing */
    LATE_MS = 2000, /* a hurry not heard for so long: it does not get to run */
    OVERDUE_MS = 1000, /* a look due for so long: it is not started any more */
};

enum command { HURRY = 1, LEAVE = 2 };

_Atomic uint32_t keeper_wished;

/* This thread has claimed the keeper, and not yet said what has come of it. For a signal's handler that interrupts it there and has the keeper
 * leave: it would wait for itself. */
static _Thread_local volatile bool is_starting __attribute__((tls_model("initial-exec")));

static struct {
    _Atomic uint32_t ending; /* it has stopped looking but for a last time */
    _Atomic uint32_t command; /* what it sleeps on; enum command */
    _Atomic bool threaded; /* the program is seen to start threads under the filters of its start */
    _Atomic bool
        files_shared; /* by a task that the program is about to start; relaxed: its first is started behind it */
    _Atomic bool confined; /* filters may have come since */
    _Atomic bool hears_identity; /* relaxed: set as the library is loaded */
    _Atomic bool
        privileged; /* one has found that it would keep what the program may give up; relaxed: the next finds the same */
    _Atomic uint32_t awaited; /* 1 when something was due while there was none */
    _Atomic uint32_t inside; /* 1 from before its start to its end: for a child that has to know whether it lived */
    /* gate.page->keeper is its thread number, zeroed by the kernel when it is gone; 1 while it is being started.
     * gate.page->leaving counts forks and the like under way: none is started. A child begins with 0 of it.
     * Stamps of os_milliseconds, relaxed: who sees one late tries once more. */
    _Atomic uint64_t hurried, not_before;
    /* When its next look is due, also across lives: forks that come more often than looks do not put them off for ever. 0: after a full nap.
     * Relaxed: written by the keeper, and who starts one late looks late. */
    _Atomic uint64_t due;
    _Atomic uint32_t refused; /* REFUSED_MS and so on; 0 before the first refusal */
    _Atomic uint32_t
        unheard; /* told to leave, it did not come for so long, in ms; relaxed: how long the next waits for it depends on it, no more */
    _Atomic uint32_t away; /* not 0 since it left; counts wishes */
    uint32_t beat_ms; /* 0: never; written before the first start, read by the thread */
    void *memory; /* of its stack, for one life after the other; changed by who has claimed `alive` */
    bool plain; /* no filter watches; likewise */
} keeper;

void keeper_beat_every(uint32_t milliseconds) { keeper.beat_ms = milliseconds; }

static uint32_t commands(void) { return atomic_load_explicit(&keeper.command, memory_order_acquire); }

static void command(enum command what) {
    if ((atomic_fetch_or_explicit(&keeper.command, what, memory_order_release) & (uint32_t)what) == 0) {
        os_wake(&keeper.command);
    }
}

bool keeper_is_to_leave(void) { return (commands() & LEAVE) != 0; }

/* -- its life ------------------------------------------------------------------------------------------------ */

/* True when it may end: nobody has wished for it meanwhile. */
static bool may_end(void) {
    atomic_store_explicit(&keeper.ending, 1, memory_order_seq_cst);
    if (atomic_exchange_explicit(&keeper_wished, 0, memory_order_seq_cst) == 0) {
        return true;
    }
    atomic_store_explicit(&keeper.ending, 0, memory_order_seq_cst);
    return false;
}

/* How long it has slept, by the clock; what was slept in full counts in full, though the clock may stand still. */
static uint32_t passed_since(uint64_t *seen, bool slept, uint32_t nap) {
    uint64_t now = os_milliseconds(), passed = now - *seen;
    *seen = now;
    return (uint32_t)bits_min(slept ? bits_max(passed, nap) : passed, NAP_MOST_MS);
}

/* Sleeps so long, or until it is told to leave; hurries and beats on the way, and `worked` becomes true when somebody has worked since the last
 * beat. False when it is to leave. */
static bool sleep_for(uint32_t milliseconds, bool *worked) {
    uint64_t seen = os_milliseconds();
    uint32_t passed = 0, since_beat = 0;
    for (;;) {
        uint32_t told = commands();
        if ((told & LEAVE) != 0) {
            return false;
        }
        if ((told & HURRY) != 0) {
            atomic_fetch_and_explicit(&keeper.command, ~(uint32_t)HURRY, memory_order_acquire);
            (void)keeping_hurry();
            continue;
        }
        if (passed >= milliseconds) {
            return true;
        }
        if (keeper.beat_ms != 0 && since_beat >= keeper.beat_ms) {
            *worked |= keeping_summon();
            since_beat = 0;
        }
        uint32_t nap = milliseconds - passed;
        nap = keeper.beat_ms != 0 ? (uint32_t)bits_min(nap, keeper.beat_ms - since_beat) : nap;
        uint32_t step = passed_since(&seen, os_wait_for(&keeper.command, 0, nap), nap);
        passed += step;
        since_beat += step;
    }
}

/* After a look that took so long, and gave nothing back. */
static uint32_t nap_after(uint64_t look_ns) {
    return (uint32_t)bits_min(bits_max(look_ns * NAP_LOOKS / 1000000, NAP_MS), NAP_MOST_MS);
}

void keeper_hear_identity(void) { atomic_store_explicit(&keeper.hears_identity, true, memory_order_relaxed); }

static bool hears_identity(void) { return atomic_load_explicit(&keeper.hears_identity, memory_order_relaxed); }

/* False if it would keep privileges that the program may give up unseen. */
static bool be_plain(void) {
    bool harmless = os_be_plain("freestone") || hears_identity() || option_value(OPTION_KEEPER) == KEEPER_ALWAYS;
    if (!harmless) {
        atomic_store_explicit(&keeper.privileged, true, memory_order_relaxed);
    }
    return harmless;
}

static void set_due(uint64_t when) { atomic_store_explicit(&keeper.due, when, memory_order_relaxed); }

/* For how long a new life sleeps first: what the one before it did not sleep. */
static uint32_t nap_left(void) {
    uint64_t due = atomic_load_explicit(&keeper.due, memory_order_relaxed), now = os_milliseconds();
    if (due == 0) {
        set_due(now + NAP_MS);
        return NAP_MS;
    }
    return stamp_is_ahead(due, now, NAP_MOST_MS) ? (uint32_t)(due - now) : 0;
}

static void live(void) {
    if (keeper.plain && !be_plain()) {
        atomic_store_explicit(&keeper.ending, 1, memory_order_seq_cst);
        return;
    }
    uint32_t nap = nap_left();
    int quiet = 0;
    bool worked = false;
    while (sleep_for(nap, &worked)) {
        bool wished = atomic_exchange_explicit(&keeper_wished, 0, memory_order_seq_cst) != 0;
        bool more;
        uint64_t began = os_nanoseconds();
        bool returned = keeping_look(&more) > 0;
        nap = returned ? NAP_MS : nap_after(os_nanoseconds() - began);
        if (keeper_is_to_leave() || memory_hooks_installed()) {
            break; /* the look may have been cut short */
        }
        set_due(os_milliseconds() + nap);
        quiet = wished || returned || more || worked ? 0 : quiet + 1;
        worked = false;
        if (quiet >= QUIET_ROUNDS && may_end()) {
            set_due(0); /* what is freed from then on may be used again first */
            return;
        }
    }
    keeper_wish(); /* it goes before its work is done */
    atomic_store_explicit(&keeper.ending, 1, memory_order_seq_cst);
}

static void run(void) {
    live();
    atomic_store_explicit(&keeper.inside, 0, memory_order_release);
}

/* -- starting it --------------------------------------------------------------------------------------------- */

static void refuse(void) {
    uint32_t before = atomic_load_explicit(&keeper.refused, memory_order_relaxed);
    uint32_t rest = (uint32_t)bits_min(bits_max(2 * (size_t)before, REFUSED_MS), REFUSED_MOST_MS);
    atomic_store_explicit(&keeper.refused, rest, memory_order_relaxed);
    atomic_store_explicit(&keeper.not_before, os_milliseconds() + rest, memory_order_relaxed);
}

/* It left for a fork; relaxed: a few wishes more or less. */
static bool is_wanted_back(void) {
    return atomic_load_explicit(&keeper.away, memory_order_relaxed) != 0 &&
           atomic_fetch_add_explicit(&keeper.away, 1, memory_order_relaxed) > RETURN_WISHES;
}

static bool is_to_wait(void) {
    uint64_t stamp = atomic_load_explicit(&keeper.not_before, memory_order_relaxed);
    return stamp_is_ahead(stamp, os_milliseconds(), REFUSED_MOST_MS);
}

/* relaxed: whoever says so has made it leave before, and nobody starts one until it may return */
bool keeper_is_confined(void) { return atomic_load_explicit(&keeper.confined, memory_order_relaxed); }

static bool is_confined(void) { return keeper_is_confined() && option_value(OPTION_KEEPER) != KEEPER_ALWAYS; }

bool keeper_is_unwatched(void) { return os_filters() == 0 && !keeper_is_confined(); }

bool keeper_may_ask(void) { return option_value(OPTION_KEEPER) != 0 && keeper_is_unwatched(); }

/* Of glibc since 2.32, which writes it before it starts a thread. */
extern char libc_single_threaded __asm__("__libc_single_threaded") __attribute__((weak));

/* Never called. A static program that does not have it starts no threads by libc. */
extern char libc_thread_start __asm__("pthread_create") __attribute__((weak));

/* Whether a thread of the program's may use its descriptors beside the caller. The shared library hears of threads before they are started. */
static bool files_are_shared(void) {
    if (atomic_load_explicit(&keeper.threaded, memory_order_relaxed) ||
        atomic_load_explicit(&keeper.files_shared, memory_order_relaxed)) {
        return true;
    }
    if (&libc_single_threaded != NULL) {
        return *(volatile char *)&libc_single_threaded == 0;
    }
    return !hears_identity() && &libc_thread_start != NULL;
}

void keeper_note_sharing(void) { atomic_store_explicit(&keeper.files_shared, true, memory_order_relaxed); }

bool keeper_may_open(void) {
    return option_value(OPTION_KEEPER) != 0 && os_filters() != OS_FILTERS_UNKNOWN && !keeper_is_confined() &&
           !files_are_shared();
}

/* Under filters it puts on none of its own, which they might punish: privileges would stay with it. */
static bool keeps_privileges(void) {
    return atomic_load_explicit(&keeper.privileged, memory_order_relaxed) ||
           (!hears_identity() && !keeper_is_unwatched() && os_is_privileged_at_start());
}

/* Asked without a system call: under filters any might be punished. */
static bool is_allowed(void) {
    bool known = os_filters() != OS_FILTERS_UNKNOWN && atomic_load_explicit(&keeper.threaded, memory_order_relaxed);
    bool runs = keeper_is_unwatched() || (known && !is_confined());
    return option_value(OPTION_KEEPER) == KEEPER_ALWAYS || (runs && !keeps_privileges());
}

bool keeper_is_barred(void) { return option_value(OPTION_KEEPER) != 0 && (is_confined() || !is_allowed()); }

/* A child of vfork would take it along when it ends, in the middle of its work: its parent will start it. That question is a system call, and
 * the last. */
static bool may_start(void) {
    return option_value(OPTION_KEEPER) != 0 && !is_confined() && !memory_hooks_installed() &&
           atomic_load_explicit(&gate.page->leaving, memory_order_relaxed) == 0 &&
           (!is_to_wait() || is_wanted_back()) && is_allowed() && gate_is_own_process(true);
}

/* Not in the child where a handler has forked since the claim: that was the parent's. */
static bool is_claimed(void) { return atomic_load_explicit(&gate.page->keeper, memory_order_relaxed) == 1; }

/* The caller has claimed `alive`, and asks once more whether one may be started: who makes it leave has said so before it looked. */
static bool start(void) {
    if (atomic_load_explicit(&gate.page->leaving, memory_order_seq_cst) != 0 || !is_allowed()) {
        return false;
    }
    keeper.plain = keeper_is_unwatched();
    if (keeper.plain && option_value(OPTION_KEEPER) != KEEPER_ALWAYS && os_tasks_are_few()) {
        return false;
    }
    if (keeper.memory == NULL) {
        keeper.memory = os_thread_memory();
    }
    bool awaited = atomic_exchange_explicit(&keeper.awaited, 0, memory_order_relaxed) != 0;
    atomic_store_explicit(&keeper.command, awaited ? HURRY : 0, memory_order_relaxed);
    atomic_store_explicit(&keeper.ending, 0, memory_order_seq_cst);
    atomic_store_explicit(&keeper.inside, keeper.memory != NULL, memory_order_release);
    return keeper.memory != NULL && is_claimed() && os_start_thread(run, keeper.memory, &gate.page->keeper);
}

static void start_claimed(void) {
    if (start()) {
        atomic_store_explicit(&keeper.refused, 0, memory_order_relaxed);
        atomic_store_explicit(&keeper.away, 0, memory_order_relaxed);
    } else {
        atomic_store_explicit(&keeper.inside, 0, memory_order_relaxed);
        if (atomic_load_explicit(&gate.page->leaving, memory_order_relaxed) == 0) {
            refuse();
        }
        uint32_t claim = 1;
        (void)atomic_compare_exchange_strong_explicit(&gate.page->keeper, &claim, 0, memory_order_seq_cst,
                                                      memory_order_relaxed);
    }
    /* The claim has become the keeper's number, or nothing. seq_cst: who makes it leave has said so before it looked at the claim and slept
     * on it. */
    if (atomic_load_explicit(&gate.page->leaving, memory_order_seq_cst) != 0) {
        os_wake_for_thread(&gate.page->keeper);
    }
}

OUT_OF_LINE void keeper_serve(void) {
    if (option_value(OPTION_KEEPER) == 0) {
        /* A wish from before mallopt said so, which nobody serves; from now on none is written. */
        atomic_store_explicit(&keeper_wished, 0, memory_order_relaxed);
        return;
    }
    /* seq_cst: the wish came first, see keeper.h */
    uint32_t alive = atomic_load_explicit(&gate.page->keeper, memory_order_seq_cst);
    if (alive != 0 && atomic_load_explicit(&keeper.ending, memory_order_seq_cst) == 0) {
        return; /* it will see the wish */
    }
    if (alive != 0 || is_starting || !may_start()) {
        return; /* the wish stays open: the next slow path will do */
    }
    uint32_t none = 0;
    is_starting = true;
    if (atomic_compare_exchange_strong_explicit(&gate.page->keeper, &none, 1, memory_order_seq_cst,
                                                memory_order_relaxed)) {
        start_claimed();
    }
    is_starting = false;
}

void keeper_note_thread(void) {
    static _Atomic uint32_t threads; /* relaxed: the second tells, whichever that is */
    if (!atomic_load_explicit(&keeper.threaded, memory_order_relaxed) &&
        atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) == 1) {
        atomic_store_explicit(&keeper.threaded, true, memory_order_relaxed);
    }
}

void keeper_confine(void) { atomic_store_explicit(&keeper.confined, true, memory_order_relaxed); }

/* -- what it is told ----------------------------------------------------------------------------------------- */

/* A hurry that was told a while ago and not heard. */
static bool is_late(void) {
    uint64_t hurried = atomic_load_explicit(&keeper.hurried, memory_order_relaxed);
    return (commands() & HURRY) != 0 && os_milliseconds() - hurried > LATE_MS;
}

bool keeper_hurry(void) {
    if (option_value(OPTION_KEEPER) == 0 || memory_hooks_installed()) {
        return false;
    }
    if (atomic_load_explicit(&gate.page->keeper, memory_order_relaxed) > 1 &&
        atomic_load_explicit(&keeper.ending, memory_order_relaxed) == 0) {
        if ((commands() & HURRY) == 0) {
            atomic_store_explicit(&keeper.hurried, os_milliseconds(), memory_order_relaxed);
            command(HURRY);
        }
        return !is_late();
    }
    atomic_store_explicit(&keeper.awaited, 1, memory_order_relaxed);
    keeper_wish();
    return may_start(); /* the caller will, when it is out */
}

/* A thread of the program's that the scheduler prefers may keep the CPU from it: it is not waited for as long a second time. A handler that has
 * interrupted its thread inside does not wait at all then: signals that come faster would not let that thread go on. */
static uint32_t wait_for_leaving(bool inside, uint32_t limit) {
    uint32_t unheard = atomic_load_explicit(&keeper.unheard, memory_order_relaxed);
    if (inside) {
        return unheard != 0 ? 0 : LEAVE_INSIDE_MS;
    }
    return unheard >= limit ? LEAVE_NAP_MS : limit;
}

static void note_leaving(bool gone, uint32_t waited) {
    uint32_t unheard = atomic_load_explicit(&keeper.unheard, memory_order_relaxed);
    unheard = gone ? 0 : (uint32_t)bits_max(unheard, waited);
    atomic_store_explicit(&keeper.unheard, unheard, memory_order_relaxed);
}

static bool leave(bool inside, uint32_t limit) {
    if (gate.page == NULL) {
        return false;
    }
    atomic_fetch_add_explicit(&gate.page->leaving, 1, memory_order_seq_cst);
    struct patience patience = patience_begin();
    uint32_t wait = wait_for_leaving(inside, limit);
    bool slept = false;
    uint32_t alive, last = 0;
    while ((alive = atomic_load_explicit(&gate.page->keeper, memory_order_seq_cst)) != 0) {
        if (alive == 1 && is_starting) {
            return true; /* it begins after what the caller does, or not at all: see start */
        }
        command(LEAVE);
        last = alive;
        if (wait == 0 || patience_ended(&patience, slept, LEAVE_NAP_MS, wait)) {
            break;
        }
        slept = os_wait_for_thread(&gate.page->keeper, alive, LEAVE_NAP_MS);
    }
    note_leaving(alive == 0, inside ? LEAVE_INSIDE_MS : wait);
    if (last > 1 && alive == 0 &&
        keeper_is_unwatched()) { /* the kernel counts the threads of who asks for a namespace, and so do programs that fork */
        os_await_thread_gone(last, limit);
    }
    return true;
}

bool keeper_leave(bool inside) { return leave(inside, LEAVE_MS); }

bool keeper_leave_first(bool inside) { return leave(inside, LEAVE_FIRST_MS); }

void keeper_return(bool at_once) {
    if (!is_confined()) { /* else nothing is asked for, not even the time */
        atomic_store_explicit(&keeper.away, at_once ? RETURN_WISHES + 1 : 1, memory_order_relaxed);
        atomic_store_explicit(&keeper.not_before, os_milliseconds() + RETURN_MS, memory_order_relaxed);
    }
    gate_count_down(&gate.page->leaving);
}

bool keeper_is_overdue(void) {
    uint64_t due = atomic_load_explicit(&keeper.due, memory_order_relaxed);
    return due != 0 && keeper_is_wished() && !is_confined() && !memory_hooks_installed() &&
           atomic_load_explicit(&gate.page->keeper, memory_order_relaxed) == 0 && os_milliseconds() > due + OVERDUE_MS;
}

void keeper_has_looked(void) { set_due(os_milliseconds() + NAP_MS); }

bool keeper_give_way(bool inside) {
    return gate.page != NULL && atomic_load_explicit(&gate.page->keeper, memory_order_relaxed) != 0 &&
           keeper_leave(inside);
}

void keeper_stay_away(void) {
    atomic_store_explicit(&keeper.away, 0, memory_order_relaxed); /* no wish brings it back sooner */
    refuse();
    gate_count_down(&gate.page->leaving);
}

bool keeper_was_there(void) { return atomic_load_explicit(&keeper.inside, memory_order_relaxed) != 0; }

void keeper_after_fork(void) {
    if (keeper_was_there()) {
        keeper_wish(); /* it did not come when it was told to leave: it has not wished itself back */
    }
    atomic_store_explicit(&keeper.inside, 0, memory_order_relaxed);
    atomic_store_explicit(&keeper.ending, 0, memory_order_relaxed);
    atomic_store_explicit(&keeper.command, 0, memory_order_relaxed);
    atomic_store_explicit(&keeper.not_before, 0, memory_order_relaxed);
    set_due(0);
    atomic_store_explicit(&keeper.refused, 0, memory_order_relaxed);
}
