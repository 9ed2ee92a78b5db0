/* Faults in pages that the library keeps closed: how they come here, and who is next. */
#include "fault_handler.h"

#include <signal.h>
#include <ucontext.h>

#include "gate.h"
#include "guarded_inside.h"
#include "hardened.h"
#include "keeper.h"
#include "options.h"
#include "os.h"

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

static void go_on(const struct sigaction *next, int number, siginfo_t *info, void *context) {
    if ((next->sa_flags & (int)SA_RESETHAND) != 0) { /* once, and then none: as if it were called by the kernel */
        struct sigaction none = {.sa_handler = SIG_DFL};
        (void)trace_sigaction(number, &none, NULL);
    }
    if ((next->sa_flags & SA_SIGINFO) != 0) {
        next->sa_sigaction(number, info, context);
    } else if (next->sa_handler != SIG_DFL) {
        next->sa_handler(number);
    } else { /* the access faults again, or the signal is sent again, and nobody catches it */
        (void)trace_sigaction(number, next, NULL);
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
    struct guarded_access access = {.walk = trace_take_from};
    access.how = access_of(context, &access.at);
    if (guarded_explain(info->si_addr, &access)) {
        return true;
    }
    if ((modes() & MODE_HARDENED) != 0 && hardened_explain(info->si_addr)) {
        struct trace trace;
        trace_take_from(&trace, access.at);
        trace_say(access.how, &trace);
    }
    return false;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    if (!explained_and_mended(info, context)) {
        go_on(number == SIGSEGV ? &next_segv : &next_bus, number, info, context);
    }
}

/* Then so it is for what the program executes later, which it would not be with a handler. A fault is ignored by nobody: it ends the process. */
static bool is_ignored(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_IGN;
}

/* In front of whoever is there. When another thread sets a handler at the very same instant, its own is the later one. */
static void listen_to(int number, struct sigaction *next) {
    struct sigaction before;
    if (trace_sigaction(number, NULL, next) != 0 || is_ignored(next)) {
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

void fault_handler_set(void) {
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
