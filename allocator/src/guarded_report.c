/* What is said of a guarded block that was misused, and how a fault comes here. */
#include <signal.h>
#include <ucontext.h>

#include "gate.h"
#include "guarded_inside.h"
#include "keeper.h"
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

static void say_trace(const char *what, const struct trace *trace) {
    struct message line = {0};
    message_text(&line, what);
    message_text(&line, " by thread ");
    message_pointer(&line, (const void *)trace->thread);
    message_text(&line, ":");
    message_print(&line);
    trace_print(trace);
}

static void say(enum guarded_fault fault, const struct guarded_place *place, const void *pointer, const char *how,
                size_t told, const struct trace *access) {
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
    }
    if (access == NULL) {
        message_text(&line, ", ");
        message_text(&line, how);
        message_text(&line, " before it was freed");
    }
    message_print(&line);
    if (access != NULL) {
        say_trace(how, access);
    }
    if (place != NULL) {
        say_trace("allocated", &place->taken);
        if (place->given.thread != 0 && fault != GUARDED_WRONG_SIZE) { /* that is the access itself */
            say_trace("freed", &place->given);
        }
    }
}

/* The first alone: what comes after it may be its consequence. True when the process is to go on. Else whoever comes second waits, since he
 * is about to end the process; but not for ever, nor for himself. */
static bool report(enum guarded_fault fault, const struct guarded_place *place, const void *pointer, const char *how,
                   size_t told, const struct trace *access) {
    enum { LONGEST_MS = 5000, STACK_BYTES = 64 * 1024 };
    static _Atomic uint32_t reports; /* relaxed: of several threads one is the first */
    static _Atomic uintptr_t first; /* relaxed, as the next: where its stack is, for a fault within the report */
    static _Atomic uint32_t done;
    bool goes_on = option_value(OPTION_GUARD_RECOVER) != 0;
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0); /* no thread-local: the keeper comes here too */
    if (atomic_exchange_explicit(&reports, 1, memory_order_relaxed) == 0) {
        atomic_store_explicit(&first, frame, memory_order_relaxed);
        say(fault, place, pointer, how, told, access);
        atomic_store_explicit(&done, 1, memory_order_relaxed);
        return goes_on;
    }
    bool same = atomic_load_explicit(&first, memory_order_relaxed) - frame < STACK_BYTES;
    for (int ms = 0; !goes_on && !same && ms < LONGEST_MS && atomic_load_explicit(&done, memory_order_relaxed) == 0;
         ms++) {
        os_nap(1);
    }
    return goes_on;
}

void guarded_report(enum guarded_fault fault, const struct guarded_place *place, const void *pointer, const char *how,
                    size_t told, const struct trace *access) {
    if (!report(fault, place, pointer, how, told, access)) {
        message_stop();
    }
}

/* -- faults -------------------------------------------------------------------------------------------------- */

/* Who was there before: the program's own handler, perhaps. Written once, before it can be called. */
static struct sigaction next_segv, next_bus;

/* What the access was, and where, as far as this machine tells. */
static const char *access_of(const ucontext_t *context, uintptr_t *at) {
#if defined(__x86_64__)
    *at = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    return (context->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? "written" : "read";
#elif defined(__aarch64__)
    *at = (uintptr_t)context->uc_mcontext.pc;
    return "touched";
#else
    (void)context;
    *at = 0;
    return "touched";
#endif
}

/* The frames from the one that faulted on: those before it are the handler's. */
static void take_from_fault(struct trace *trace, uintptr_t at) {
    trace_take(trace);
    unsigned first = 0;
    while (first < trace->count && trace->frames[first] != at - 1 && trace->frames[first] != at) {
        first++;
    }
    if (at != 0 && first == trace->count) { /* nothing unwound as far as that */
        trace->frames[0] = at;
        trace->count = 1;
        return;
    }
    for (unsigned i = first; i < trace->count; i++) {
        trace->frames[i - first] = trace->frames[i];
    }
    trace->count -= first;
    if (trace->count > 0) {
        trace->frames[0] = at; /* no call: the instruction itself */
    }
}

static enum guarded_fault fault_of(const struct guarded_place *place, const unsigned char *pointer) {
    bool freed = atomic_load_explicit(&place->state, memory_order_acquire) >= GUARDED_FREEING;
    return freed ? GUARDED_AFTER_FREE : pointer < place->block ? GUARDED_UNDERFLOW : GUARDED_OVERFLOW;
}

/* True when it was in the pool, and the access may be tried again. */
static bool reported_and_mended(const siginfo_t *info, const ucontext_t *context) {
    size_t page = os_page_bytes();
    struct guarded_place *place = info->si_code > 0 ? guarded_nearest(info->si_addr) : NULL;
    if (place == NULL) {
        return false;
    }
    uintptr_t at;
    const char *how = access_of(context, &at);
    struct trace access;
    take_from_fault(&access, at);
    unsigned char *pointer = info->si_addr;
    if (!report(fault_of(place, pointer), place, pointer, how, 0, &access)) {
        return false;
    }
    /* Of both places that a page may lie between. */
    for (int step = 0; step <= 1; step++) {
        struct guarded_place *other = guarded_nearest(pointer - (uintptr_t)pointer % page + (step == 0 ? 0 : page - 1));
        if (other != NULL) {
            atomic_store_explicit(&other->mended, true, memory_order_relaxed);
        }
    }
    atomic_store_explicit(&place->mended, true, memory_order_relaxed);
    return os_commit(pointer - (uintptr_t)pointer % page, page);
}

static void go_on(const struct sigaction *next, int number, siginfo_t *info, void *context) {
    if ((next->sa_flags & (int)SA_RESETHAND) != 0) { /* once, and then none: as if it were called by the kernel */
        struct sigaction none = {.sa_handler = SIG_DFL};
        (void)trace_sigaction(number, &none, NULL);
    }
    if ((next->sa_flags & SA_SIGINFO) != 0) {
        next->sa_sigaction(number, info, context);
    } else if (next->sa_handler != SIG_DFL && next->sa_handler != SIG_IGN) {
        next->sa_handler(number);
    } else { /* the access faults again, or the signal is sent again, and nobody catches it */
        (void)trace_sigaction(number, next, NULL);
        if (info->si_code <= 0) {
            os_raise(number);
        }
    }
}

static void on_fault(int number, siginfo_t *info, void *context) {
    if (!reported_and_mended(info, context)) {
        go_on(number == SIGSEGV ? &next_segv : &next_bus, number, info, context);
    }
}

/* In front of whoever is there. When another thread sets a handler at the very same instant, its own is the later one. */
static void listen_to(int number, struct sigaction *next) {
    struct sigaction before;
    if (trace_sigaction(number, NULL, next) != 0) {
        return;
    }
    struct sigaction own = *next; /* with the mask and the stack of whoever is next, who expects them */
    own.sa_flags = SA_SIGINFO | (next->sa_flags & (SA_ONSTACK | SA_NODEFER | SA_RESTART));
    own.sa_sigaction = on_fault;
    if (trace_sigaction(number, &own, &before) == 0 &&
        (before.sa_sigaction != next->sa_sigaction || before.sa_flags != next->sa_flags)) {
        (void)trace_sigaction(number, &before, NULL);
    }
}

void guarded_listen(void) {
    static _Atomic uint32_t listens; /* relaxed: of several threads one is the first */
    if (likely(atomic_load_explicit(&listens, memory_order_relaxed) != 0) ||
        keeper_is_confined() ||   /* its filters may know nothing of the call */
        !gate_is_own_process(true) || /* the handlers of a child of vfork are not those of the memory it writes to */
        atomic_exchange_explicit(&listens, 1, memory_order_relaxed) != 0) {
        return;
    }
    listen_to(SIGSEGV, &next_segv);
    listen_to(SIGBUS, &next_bus);
}
