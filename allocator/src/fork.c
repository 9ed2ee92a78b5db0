#include "fork.h"

#include <pthread.h>

#include "arena.h"
#include "direct_binding.h"
#include "guarded.h"
#include "hardened.h"
#include "keeping.h"
#include "large.h"
#include "memory_hooks.h"
#include "os.h"
#include "shelter.h"
#include "thread_inside.h"
#include "turns.h"

enum {
    WAIT_MS =
        5000, /* for others to come out; they wait there for nobody but the kernel, or in a signal's handler for anything, */
    WAIT_INSIDE_MS =
        20, /* unless it is inside itself, interrupted by a signal: with a lock, perhaps, that they wait for; or in another fork, whose
               handler may have the registry's lock to see who is inside */
};

/* Forks of the thread that are under way: more than one where another library's handler forks, none where the library could not open. */
static _Thread_local uint32_t closings __attribute__((tls_model("initial-exec")));

/* Those of which the gate may be closed: from before it is until after it is open again, or a signal handler in between would wait for its own
 * thread. */
static _Thread_local volatile uint32_t own __attribute__((tls_model("initial-exec")));

bool fork_is_own(void) { return own != 0; }

/* What the forking thread knows of it, for the child. */
static _Thread_local enum gate_fork fork_seen __attribute__((tls_model("initial-exec")));

static void before_fork(void) {
    if (!thread_start()) { /* or it may be half done in the child */
        return;
    }
    bool inside = thread_is_inside();
    if (!inside && closings == 0) {
        turns_await();
        keeping_catch_up();
    }
    (void)keeper_leave(inside);
    own = own + 1;
    closings++;
    bool quiet = gate_close(thread_is_alone_inside, inside || closings > 1 ? WAIT_INSIDE_MS : WAIT_MS);
    fork_seen = !quiet ? GATE_UNQUIET : inside ? GATE_INSIDE : GATE_WHOLE;
}

static void after_fork_in_parent(void) {
    if (closings == 0) {
        return;
    }
    closings--;
    gate_reopen();
    own = own - 1;
    if ((modes() & MODE_HARDENED) != 0) {
        hardened_after_fork_in_parent();
    }
    /* Any recent answer will do. Somebody without a cache may have freed meanwhile, and call no more. */
    bool alone = thread_view.cache->next == NULL && registry.alive == thread_view.cache && !shelter_has_parked();
    keeper_return(!alone);
    if (!alone && !thread_is_inside()) {
        thread_serve_wishes();
    }
}

static void after_fork_in_child(void) {
    bool handled = closings > 0;
    closings -= handled;
    own = own - handled;
    if (gate.page != NULL) {
        /* Asked here where it can be: the first to ask later may be a child of vfork. */
        uint32_t process = keeper_may_ask() ? os_process() : GATE_ANY;
        gate_mark_child(handled ? fork_seen : GATE_UNHANDLED, &thread_view, thread_view.cache, closings, process);
    }
}

/* -- the child ----------------------------------------------------------------------------------------------- */

/* Whether what was copied is whole. */
static enum gate_answer judge(void) {
    void *forker = atomic_load_explicit(&gate.page->forker, memory_order_relaxed);
    bool alone = (registry.alive == NULL || (registry.alive == thread_view.cache && registry.alive->next == NULL)) &&
                 atomic_load_explicit(&gate.outsiders, memory_order_relaxed) == 0;
    switch (atomic_load_explicit(&gate.page->fork, memory_order_relaxed)) {
    case GATE_WHOLE:
        return GATE_PUT_RIGHT;
    case GATE_INSIDE: /* who comes and forked has left that frame by now */
        return forker == &thread_view ? GATE_PUT_RIGHT : GATE_LATER;
    case GATE_UNQUIET:
        return GATE_PUT_TORN;
    default: /* no handler: nobody has waited for anybody, so whole only where there was nobody */
        return alone && !keeper_was_there() ? GATE_PUT_RIGHT : GATE_PUT_TORN;
    }
}

/* In a child, by its first to come: every lock is free. */
enum gate_answer gate_put_child_right(void) {
    enum gate_answer answer = judge();
    if (answer != GATE_PUT_RIGHT) {
        return answer;
    }
    lock_reset(&registry.lock);
    borrow_after_fork();
    heap_after_fork();
    arena_after_fork();
    large_after_fork();
    if ((modes() & MODE_GUARDED) != 0) { /* the others have not touched these pages, nor the code of the modes */
        guarded_after_fork();
    }
    memory_hooks_after_fork();
    shelter_after_fork();
    keeper_after_fork();
    bool handled = atomic_load_explicit(&gate.page->fork, memory_order_relaxed) != GATE_UNHANDLED;
    struct thread_cache *spared =
        handled ? atomic_load_explicit(&gate.page->cache, memory_order_relaxed) : thread_view.cache;
    if ((modes() & MODE_HARDENED) != 0) {
        hardened_after_fork(spared != NULL ? spared->hard : NULL, keeper_may_ask());
    }
    thread_make_orphans(spared);
    return GATE_PUT_RIGHT;
}

extern void *__dso_handle INTERNAL __attribute__((weak)); /* object.c, or the compiler's start files */

/* As pthread_atfork is in glibc: code of the object that calls it, which says who that is. */
static void register_handlers(void) {
    typedef int register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *object);
    register_atfork *with_object = (register_atfork *)direct_function(DIRECT___register_atfork);
    if (with_object != NULL) {
        (void)with_object(before_fork, after_fork_in_parent, after_fork_in_child,
                          &__dso_handle != NULL ? __dso_handle : NULL);
    } else {
        (void)DIRECT(pthread_atfork)(before_fork, after_fork_in_parent, after_fork_in_child);
    }
}

/* Registers with pthread_atfork, once, at the first allocation or as a constructor, whichever comes first. Handlers that
 * run before a fork run in the opposite order of registration: the earlier ours registers, the later it closes the gate. */
__attribute__((constructor(101))) void fork_watch(void) {
    static _Atomic bool watching; /* relaxed: only who sets it first registers */
    if (!atomic_exchange_explicit(&watching, true, memory_order_relaxed)) {
        register_handlers();
    }
}
