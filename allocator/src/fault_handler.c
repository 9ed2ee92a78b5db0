/* Faults in pages that the library keeps closed: how they come here, and who is next. */
#include "fault_handler.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "gate.h"
#include "guarded_inside.h"
#include "hardened.h"
#include "keeper.h"
#include "options.h"
#include "os.h"

/* What the program has set for a signal that the library's handler stands before, and is told of it. Read by that handler at any moment, also in
 * between a change of its own thread: the copy that is not current is written, and then made current. */
enum { WORDS = sizeof(struct sigaction) / sizeof(uintptr_t) };
_Static_assert(WORDS * sizeof(uintptr_t) == sizeof(struct sigaction), "copied word by word");
static struct behind {
    _Atomic uint32_t changes; /* 0: the library's handler stands before nobody. release: who sees it finds the copy */
    _Atomic uint32_t changing; /* 1 while a thread writes: of others, and of a handler in between, none waits for it */
    _Atomic uint32_t again; /* one of those would have */
    _Atomic uintptr_t copies[2][WORDS]; /* relaxed: a copy is good if nothing has changed since */
} behind_segv, behind_bus;

static struct behind *behind_of(int number) {
    return number == SIGSEGV ? &behind_segv : number == SIGBUS ? &behind_bus : NULL;
}

/* False where the library's handler stands before nobody. */
static bool read_behind(struct behind *behind, struct sigaction *action) {
    uint32_t before, after = atomic_load_explicit(&behind->changes, memory_order_acquire);
    do {
        uintptr_t words[WORDS];
        before = after;
        for (size_t i = 0; i < WORDS; i++) {
            words[i] = atomic_load_explicit(&behind->copies[before % 2][i], memory_order_relaxed);
        }
        memcpy(action, words, sizeof *action);
        atomic_thread_fence(memory_order_acquire); /* the words come first */
        after = atomic_load_explicit(&behind->changes, memory_order_relaxed);
    } while (before != after);
    return after != 0;
}

/* By who has set `changing`. */
static void write_behind(struct behind *behind, const struct sigaction *action) {
    uint32_t next = atomic_load_explicit(&behind->changes, memory_order_relaxed) + 1;
    uintptr_t words[WORDS];
    memcpy(words, action, sizeof words);
    next += next == 0 ? 2 : 0; /* it has gone round */
    for (size_t i = 0; i < WORDS; i++) {
        atomic_store_explicit(&behind->copies[next % 2][i], words[i], memory_order_relaxed);
    }
    atomic_store_explicit(&behind->changes, next, memory_order_release);
}

/* The kind of access, as far as this machine reports it. */
static const char *access_of(const ucontext_t *context) {
#if defined(__x86_64__)
    return (context->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? "written" : "read";
#else
    (void)context;
    return "touched";
#endif
}

/* Then so it is for what the program executes later, which it would not be with a handler. A fault is ignored by nobody: it ends the process. */
static bool is_ignored(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_IGN;
}

static void go_on(int number, siginfo_t *info, void *context) {
    struct sigaction next;
    (void)read_behind(behind_of(number), &next);
    if ((next.sa_flags & (int)SA_RESETHAND) != 0) { /* once, and then none: as if it were called by the kernel */
        struct sigaction none = {.sa_handler = SIG_DFL};
        (void)trace_sigaction(number, &none, NULL);
        fault_handler_return(number);
    }
    if ((next.sa_flags & SA_SIGINFO) != 0 || (next.sa_handler != SIG_DFL && !is_ignored(&next))) {
        /* A handler without SA_SIGINFO may read these too: the kernel passes them to every handler. */
        next.sa_sigaction(number, info, context);
    } else if (info->si_code > 0 || !is_ignored(&next)) {
        /* The access faults again, or the signal is sent again, and nobody catches it. */
        (void)trace_sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        if (info->si_code <= 0) {
            os_raise(number);
        }
    }
}

/* True when it was in a page that the library keeps closed, and the access may be tried again. */
static bool explained_and_mended(const siginfo_t *info, const ucontext_t *context) {
    if (info->si_code <= 0 || (!guarded_owns(info->si_addr) && (modes() & MODE_HARDENED) == 0)) {
        return false;
    }
    struct guarded_access access = {.how = access_of(context), .fault = context, .walk = trace_take_fault};
    if (guarded_explain(info->si_addr, &access)) {
        return true;
    }
    if ((modes() & MODE_HARDENED) != 0 && hardened_explain(info->si_addr)) {
        struct trace trace;
        trace_take_fault(&trace, context);
        trace_say(access.how, &trace);
    }
    return false;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    if (!explained_and_mended(info, context)) {
        go_on(number, info, context);
    }
}

bool fault_handler_is_own(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == on_fault;
}

/* In front of whoever is there, until nobody else is: another thread may set a handler meanwhile. Not for ever: what a library behind this one
 * makes of the call is not known. */
static void stand_before(int number, struct behind *behind) {
    enum { ROUNDS = 8 };
    struct sigaction next;
    for (int round = 0; round < ROUNDS && trace_sigaction(number, NULL, &next) == 0 && !fault_handler_is_own(&next);
         round++) {
        write_behind(behind, &next);
        if (is_ignored(&next)) {
            return;
        }
        struct sigaction own = next; /* with the mask and the stack of whoever is next, who expects them */
        own.sa_flags = SA_SIGINFO | (next.sa_flags & (SA_ONSTACK | SA_NODEFER | SA_RESTART));
        own.sa_sigaction = on_fault;
        struct sigaction before;
        if (trace_sigaction(number, &own, &before) != 0) {
            return;
        }
        if (before.sa_sigaction != next.sa_sigaction || before.sa_flags != next.sa_flags) {
            (void)trace_sigaction(number, &before, NULL);
        }
    }
}

/* Its filters may know nothing of the calls; and the handlers of a child of vfork are not those of the memory it writes to. */
static bool may_stand(void) { return !keeper_is_confined() && gate_is_own_process(true); }

/* acquire and release: one thread writes after the other. seq_cst: who finds `changing` set has said `again` before, and who clears it looks
 * afterwards. */
static void change(int number) {
    enum { ROUNDS = 8 }; /* a library that passes what is set here back to this one would have no end */
    struct behind *behind = behind_of(number);
    int round = 0;
    do {
        uint32_t nobody = 0;
        atomic_store_explicit(&behind->again, 1, memory_order_seq_cst);
        if (!atomic_compare_exchange_strong_explicit(&behind->changing, &nobody, 1, memory_order_seq_cst,
                                                     memory_order_relaxed)) {
            return;
        }
        atomic_store_explicit(&behind->again, 0, memory_order_seq_cst);
        stand_before(number, behind);
        atomic_store_explicit(&behind->changing, 0, memory_order_seq_cst);
    } while (atomic_load_explicit(&behind->again, memory_order_seq_cst) != 0 && ++round < ROUNDS);
}

bool fault_handler_stands(int number) {
    struct behind *behind = behind_of(number);
    return behind != NULL && atomic_load_explicit(&behind->changes, memory_order_relaxed) != 0;
}

void fault_handler_behind(int number, struct sigaction *action) { (void)read_behind(behind_of(number), action); }

void fault_handler_return(int number) {
    if (may_stand()) {
        change(number);
    }
}

void fault_handler_set(void) {
    static _Atomic uint32_t listens; /* relaxed: of several threads one is the first */
    if (likely(atomic_load_explicit(&listens, memory_order_relaxed) != 0) || !may_stand() ||
        atomic_exchange_explicit(&listens, 1, memory_order_relaxed) != 0) {
        return;
    }
    change(SIGSEGV);
    change(SIGBUS);
}

void fault_handler_after_fork(void) {
    atomic_store_explicit(&behind_segv.changing, 0, memory_order_relaxed);
    atomic_store_explicit(&behind_bus.changing, 0, memory_order_relaxed);
}
