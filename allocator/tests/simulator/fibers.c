#include "fibers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "failure.h"

enum {
    STACK_BYTES = 256 * 1024,
    GUARD_BYTES = 64 * 1024,
    SPINS_MOST = 1000000, /* yields in one turn, whichever are counted: it spins */
};

struct fiber fibers[FIBERS_MOST];
struct fiber *fiber_running;
uint64_t fiber_yields, fiber_turns;

/* The section that yields.h puts thread-local variables into; the linker names its ends. */
extern char __start_simulator_locals[], __stop_simulator_locals[];
static char *pristine;

static uint64_t budget; /* yields left to the fiber that runs, */
static enum grain counted; /* of those counted */
static uint64_t resumed; /* yields until then */

static size_t locals_bytes(void) { return (size_t)(__stop_simulator_locals - __start_simulator_locals); }

bool fiber_is_local(const void *address) {
    return (const char *)address >= __start_simulator_locals && (const char *)address < __stop_simulator_locals;
}

/* -- the switch ---------------------------------------------------------------------------------------------- */

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)

static void *scheduler;

/* Saves what a call must keep, leaves one stack and takes up another. */
void simulator_switch(void **from, void *to);
__asm__(".text\n"
        ".type simulator_switch, @function\n"
        "simulator_switch:\n"
        "  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp\n"
        "  ret\n"
        ".size simulator_switch, .-simulator_switch\n");

static void to_fiber(struct fiber *fiber) { simulator_switch(&scheduler, fiber->stack_pointer); }

static void to_scheduler(struct fiber *fiber) { simulator_switch(&fiber->stack_pointer, scheduler); }

static void prepare(struct fiber *fiber, void (*entry)(void)) {
    void **top = (void **)(void *)(fiber->stack + STACK_BYTES);
    *--top = NULL; /* where the entry would return to; it stands so that the stack is aligned as after a call */
    *--top = (void *)(uintptr_t)entry;
    top -= 6;
    memset(top, 0, 6 * sizeof *top);
    fiber->stack_pointer = top;
}

#else

static ucontext_t scheduler, contexts[FIBERS_MOST];

static void to_fiber(struct fiber *fiber) { (void)swapcontext(&scheduler, &contexts[fiber - fibers]); }

static void to_scheduler(struct fiber *fiber) { (void)swapcontext(&contexts[fiber - fibers], &scheduler); }

static void prepare(struct fiber *fiber, void (*entry)(void)) {
    ucontext_t *context = &contexts[fiber - fibers];
    (void)getcontext(context);
    context->uc_stack.ss_sp = fiber->stack;
    context->uc_stack.ss_size = STACK_BYTES;
    makecontext(context, entry, 0);
}

#endif

/* -- fibers -------------------------------------------------------------------------------------------------- */

static void run_deed(void) {
    for (;;) {
        fiber_running->deed();
        fiber_pause(FIBER_IDLE);
    }
}

void fibers_open(void) {
    size_t bytes = locals_bytes();
    pristine = malloc(bytes);
    EXPECT_HERE(pristine != NULL);
    memcpy(pristine, __start_simulator_locals, bytes);
    for (int i = 0; i < FIBERS_MOST; i++) {
        char *at = mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_HERE(at != MAP_FAILED);
        EXPECT_HERE(mprotect(at + GUARD_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE) == 0);
        fibers[i].stack = at + GUARD_BYTES;
        fibers[i].locals = malloc(bytes);
        EXPECT_HERE(fibers[i].locals != NULL);
        fiber_reset(&fibers[i]);
    }
}

void fiber_reset(struct fiber *fiber) {
    memcpy(fiber == fiber_running ? __start_simulator_locals : fiber->locals, pristine, locals_bytes());
    if (fiber != fiber_running) {
        fiber->state = FIBER_IDLE;
        fiber->word = NULL;
        prepare(fiber, run_deed);
    }
}

void fiber_begin(struct fiber *fiber, void (*deed)(void)) {
    fiber->deed = deed;
    fiber->state = FIBER_READY;
}

void fiber_resume(struct fiber *fiber, uint64_t yields, enum grain grain) {
    budget = yields;
    counted = grain;
    fiber_turns++;
    resumed = fiber_yields;
    memcpy(__start_simulator_locals, fiber->locals, locals_bytes());
    fiber_running = fiber;
    errno = fiber->error;
    to_fiber(fiber);
    fiber->error = errno;
    fiber_running = NULL;
    memcpy(fiber->locals, __start_simulator_locals, locals_bytes());
}

const void *fiber_local(const struct fiber *fiber, const void *address) {
    return fiber->locals + ((const char *)address - __start_simulator_locals);
}

void fiber_go_on(void) { budget = UINT64_MAX; }

void fiber_pause(enum fiber_state state) {
    struct fiber *fiber = fiber_running;
    fiber->state = state;
    to_scheduler(fiber);
}

void *simulator_self(void);
void *simulator_self(void) { return fiber_running; }

void simulator_yield(int order);
void simulator_yield(int order) {
    if (fiber_running == NULL) {
        return;
    }
    fiber_yields++;
    bool counts = counted == GRAIN_ALL || order == memory_order_seq_cst ||
                  (counted == GRAIN_ORDERED && order != memory_order_relaxed);
    if (fiber_yields - resumed > SPINS_MOST) {
        fail("stalls: a thread spins, and does not sleep");
    }
    if (counts && budget-- == 0) {
        fiber_pause(FIBER_READY);
    }
}
