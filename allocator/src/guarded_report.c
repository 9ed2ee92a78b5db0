/* What is said of a guarded block that was misused. */
#include "guarded_inside.h"
#include "message.h"
#include "options.h"
#include "os.h"

static const char *const names[] = {
    [GUARDED_OVERFLOW] = "overflow",         [GUARDED_UNDERFLOW] = "underflow",
    [GUARDED_AFTER_FREE] = "use after free", [GUARDED_DOUBLE_FREE] = "double free",
    [GUARDED_INVALID_FREE] = "invalid free", [GUARDED_WRONG_SIZE] = "wrong size",
};

/* -- the report ---------------------------------------------------------------------------------------------- */

/* "5 bytes behind the end of", "at byte 3 of", "1 byte before" */
static void say_where(struct message *line, const struct guarded_place *place, const unsigned char *pointer) {
    bool before = pointer < place->block, behind = pointer >= place->block + place->size;
    size_t bytes = before   ? (size_t)(place->block - pointer)
                   : behind ? (size_t)(pointer - place->block) - place->size + 1
                            : (size_t)(pointer - place->block);
    message_text(line, before || behind ? ", " : ", byte ");
    message_number(line, bytes);
    if (before || behind) {
        message_text(line, bytes == 1 ? " byte " : " bytes ");
        message_text(line, before ? "before" : "behind the end of");
    } else {
        message_text(line, " of");
    }
    message_text(line, " a block of ");
    message_number(line, place->size);
    message_text(line, place->size == 1 ? " byte at " : " bytes at ");
    message_pointer(line, place->block);
}

static void say_access(const struct guarded_access *access) {
    struct trace trace;
    if (access->walk != NULL) { /* behind the line: a stack that is broken may end the process */
        access->walk(&trace, access->fault);
        trace_say(access->how, &trace);
    } else if (access->trace != NULL) {
        trace_say(access->how, access->trace);
    }
}

static void say(enum guarded_fault fault, const struct guarded_place *place, const void *pointer,
                const struct guarded_access *access, size_t told) {
    struct message line = {0};
    message_text(&line, names[fault]);
    message_text(&line, ": pointer ");
    message_pointer(&line, pointer);
    if (place != NULL) {
        say_where(&line, place, pointer);
    }
    if (fault == GUARDED_WRONG_SIZE) {
        message_text(&line, ", freed as one of ");
        message_number(&line, told);
        message_text(&line, MESSAGE_KINDS);
    }
    if (access->walk == NULL && access->trace == NULL) {
        message_text(&line, ", ");
        message_text(&line, access->how);
        message_text(&line, " before it was freed");
    }
    message_print(&line);
    say_access(access);
    if (place != NULL) {
        trace_say("allocated", &place->taken);
        if (place->given.thread != 0 && fault != GUARDED_WRONG_SIZE) { /* that is the access itself */
            trace_say("freed", &place->given);
        }
    }
}
/* Relaxed, all three: what they tell is waited for, and nothing is read that they would order. */
static _Atomic uint32_t reports;    /* so many were begun */
static _Atomic uintptr_t reporting; /* where the stack of who reports just now is; 0 for nobody */
static _Atomic uint64_t reported;   /* when the last report was out */

/* The same thread's, or nearly so: no thread-local tells, since the keeper comes here too, and no system call, which a filter might punish. */
static bool is_same_stack(uintptr_t one, uintptr_t other) {
    enum { STACK_BYTES = 64 * 1024 };
    return one != 0 && one - other + STACK_BYTES < (uintptr_t)2 * STACK_BYTES;
}

/* Whoever finds something while another thread reports, or soon after, waits: the process is about to end, and what was found may be a
 * consequence. False if that takes too long, and for a fault within the report. */
static bool begin_report(uintptr_t frame) {
    enum { LONGEST_MS = 5000, SOON_MS = 200 };
    static _Atomic uintptr_t last; /* relaxed, as above: who has survived a report of his own waits for nothing */
    for (int ms = 0; ms < LONGEST_MS; ms++) {
        uintptr_t reporter = 0;
        bool soon = !is_same_stack(atomic_load_explicit(&last, memory_order_relaxed), frame) &&
                    os_milliseconds() - atomic_load_explicit(&reported, memory_order_relaxed) < SOON_MS;
        if (!soon && atomic_compare_exchange_strong_explicit(&reporting, &reporter, frame, memory_order_relaxed,
                                                             memory_order_relaxed)) {
            atomic_store_explicit(&last, frame, memory_order_relaxed);
            return true;
        }
        if (is_same_stack(reporter, frame)) {
            atomic_store_explicit(&reporting, 0, memory_order_relaxed); /* that report ends here */
            return false;
        }
        os_nap(1);
    }
    return false;
}

/* True when the process is to go on. Then only the first is said, since what comes after it may be its consequence; else each: a handler of the
 * program's may have survived those before. */
static bool report(enum guarded_fault fault, const struct guarded_place *place, const void *pointer,
                   const struct guarded_access *access, size_t told) {
    bool goes_on = option_value(OPTION_GUARD_RECOVER) != 0;
    bool first = atomic_fetch_add_explicit(&reports, 1, memory_order_relaxed) == 0;
    if ((first || !goes_on) && begin_report((uintptr_t)__builtin_frame_address(0))) { /* the keeper comes here too */
        say(fault, place, pointer, access, told);
        atomic_store_explicit(&reported, os_milliseconds(), memory_order_relaxed);
        atomic_store_explicit(&reporting, 0, memory_order_relaxed);
    }
    return goes_on;
}

/* Whoever reported in another thread is not there. */
void guarded_report_after_fork(void) { atomic_store_explicit(&reporting, 0, memory_order_relaxed); }

void guarded_report(enum guarded_fault fault, const struct guarded_place *place, const void *pointer,
                    const struct guarded_access *access, size_t told) {
    if (!report(fault, place, pointer, access, told)) {
        message_stop();
    }
}

/* -- faults: called by fault_handler.c --------------------------------------------------------------------------------- */

static enum guarded_fault fault_of(const struct guarded_place *place, const unsigned char *pointer) {
    bool freed = atomic_load_explicit(&place->state, memory_order_acquire) >= GUARDED_FREEING;
    return freed ? GUARDED_AFTER_FREE : pointer < place->block ? GUARDED_UNDERFLOW : GUARDED_OVERFLOW;
}

/* What is closed within a block in use the program has closed itself: a write barrier, perhaps. */
static bool is_closed_by_program(const struct guarded_place *place, const unsigned char *pointer) {
    return atomic_load_explicit(&place->state, memory_order_acquire) == GUARDED_USED && pointer >= place->from &&
           pointer < place->from + place->bytes;
}

/* The page can be touched from now on. Whoever takes the place next that it belongs to, or either that it lies between, has all as before. */
static bool open_page(unsigned char *page) {
    for (int before = 0; before <= 1; before++) {
        struct guarded_place *place = guarded_place_of(page - before);
        if (place != NULL) {
            atomic_store_explicit(&place->mended, true, memory_order_relaxed);
        }
    }
    return os_commit(page, os_page_bytes());
}

/* Where no place nearby was ever used, somebody goes on from farther away, whom the first report has named; else it is nobody's. */
static bool is_known_to_go_on(void) {
    return option_value(OPTION_GUARD_RECOVER) != 0 && atomic_load_explicit(&reports, memory_order_relaxed) != 0;
}

bool guarded_explain(unsigned char *pointer, const struct guarded_access *access) {
    if (!guarded_owns(pointer)) {
        return false;
    }
    struct guarded_place *place = guarded_nearest(pointer);
    bool goes_on = place == NULL ? is_known_to_go_on()
                                 : !is_closed_by_program(place, pointer) &&
                                       report(fault_of(place, pointer), place, pointer, access, 0);
    return goes_on && open_page(pointer - (uintptr_t)pointer % os_page_bytes());
}
