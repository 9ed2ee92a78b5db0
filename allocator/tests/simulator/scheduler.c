#include "scheduler.h"

#include <stdatomic.h>
#include <unistd.h>

#include "auditor.h"
#include "duties.h"
#include "failure.h"
#include "fibers.h"
#include "gate.h"
#include "options.h"
#include "program.h"
#include "world.h"

enum {
    TURN = 2000,          /* yields before others get their turn, where nothing is said */
    STALL_MS = 2000,      /* that others wait at most for who gets no turn */
    PATIENCE = 4000000,   /* yields in which a step has to end, when everybody gets turns */
    CHILD_SECONDS = 60,
};

static struct step doing[FIBERS_MOST]; /* what each thread is in the middle of */
static uint64_t child_steps = UINT64_MAX; /* left to a child */
static unsigned generation;
uint64_t scheduler_turns;
static uint32_t stalled[FIBERS_MOST]; /* steps in which it goes on only by itself: its processor is another's */

/* Whether the copy was whole, as far as this thread, which forked, comes first to put it right. */
static struct {
    bool whole;
    ptrdiff_t forker;
} copy;

static void do_step(void) { program_do(&doing[fiber_running - fibers]); }

bool scheduler_is_at_rest(void) {
    for (int i = 0; i < FIBER_KEEPER; i++) {
        if (fibers[i].state != FIBER_IDLE) {
            return false;
        }
    }
    return fibers[FIBER_KEEPER].state != FIBER_READY;
}

bool scheduler_is_alone(void) {
    for (int i = 0; i < FIBERS_MOST; i++) {
        bool idle = fibers[i].state == FIBER_IDLE || (i == FIBER_KEEPER && fibers[i].state == FIBER_WAITING);
        if (&fibers[i] != fiber_running && !idle) {
            return false;
        }
    }
    return true;
}

/* -- turns --------------------------------------------------------------------------------------------------- */

static void wake_who_is_due(void) {
    for (int i = 0; i < FIBERS_MOST; i++) {
        if (fibers[i].state == FIBER_WAITING && fibers[i].until <= world_now()) {
            fibers[i].state = FIBER_READY;
        }
    }
}

/* It sleeps on what has changed since. */
static bool is_forgotten(const struct fiber *fiber) {
    return fiber->state == FIBER_WAITING && atomic_load_explicit(fiber->word, memory_order_relaxed) != fiber->expected;
}

/* Who waits without a limit waits for them too. */
static bool end_stalls(void) {
    bool any = false;
    for (int i = 0; i < FIBERS_MOST; i++) {
        any |= stalled[i] != 0 && fibers[i].state == FIBER_READY;
        stalled[i] = 0;
    }
    return any;
}

static bool somebody_stalls(void) {
    for (int i = 0; i < FIBERS_MOST; i++) {
        if (stalled[i] != 0 && fibers[i].state == FIBER_READY) {
            return true;
        }
    }
    return false;
}

/* Everybody sleeps: time goes by until somebody is due. Nobody is about to wake another, so only the limit of its wait
 * would help who is forgotten. */
static void skip_to_who_is_due(const char *whose) {
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < FIBERS_MOST; i++) {
        if (!somebody_stalls() && is_forgotten(&fibers[i])) {
            fail("overslept: nobody wakes thread %d", i);
        }
        if (fibers[i].state == FIBER_WAITING && fibers[i].until < next) {
            next = fibers[i].until;
        }
    }
    if (next == UINT64_MAX && end_stalls()) {
        return;
    }
    if (next == UINT64_MAX) {
        fail("waits for ever: %s", whose);
    }
    if (next > world_now()) {
        world_pass(next - world_now());
    }
    wake_who_is_due();
}

/* Who goes on while `first` cannot: the next of the others that can. */
static struct fiber *another(const struct fiber *first, int *turn) {
    for (int i = 0; i < FIBERS_MOST; i++) {
        *turn = (*turn + 1) % FIBERS_MOST;
        if (&fibers[*turn] != first && fibers[*turn].state == FIBER_READY && stalled[*turn] == 0) {
            return &fibers[*turn];
        }
    }
    return NULL;
}

/* Brings to its end what the fiber is at, or, the keeper, until it sleeps. Others get their turns where it has to wait for them. */
static void finish(struct fiber *fiber) {
    uint64_t begun = fiber_yields, since = world_now();
    bool keeper = fiber == &fibers[FIBER_KEEPER];
    int turn = 0;
    while (fiber->state != FIBER_IDLE) {
        wake_who_is_due();
        if (world_now() - since > (uint64_t)STALL_MS * 1000000) {
            (void)end_stalls();
        }
        if (fiber->state == FIBER_READY) {
            fiber_resume(fiber, TURN, GRAIN_ALL);
            if (keeper && fiber->state == FIBER_WAITING && fiber->until != UINT64_MAX) {
                return;
            }
        }
        if (fiber->state != FIBER_IDLE) {
            struct fiber *next = another(fiber, &turn);
            if (next != NULL) {
                scheduler_turns++;
                fiber_resume(next, TURN, GRAIN_ALL);
            } else if (fiber->state == FIBER_WAITING) {
                skip_to_who_is_due("a step that has begun");
            }
        }
        if (fiber_yields - begun > PATIENCE) {
            fail("stalls: a step does not end");
        }
    }
}

static void go_on(struct fiber *fiber, const struct step *step) {
    wake_who_is_due();
    if (step->yields == 0) {
        finish(fiber);
    } else if (fiber->state == FIBER_READY) {
        fiber_resume(fiber, step->yields, step->grain);
    }
}

/* It has slept long enough. */
static void wake_keeper(void) {
    const struct fiber *keeper = &fibers[FIBER_KEEPER];
    if (keeper->state == FIBER_WAITING && keeper->until != UINT64_MAX && keeper->until > world_now()) {
        world_pass(keeper->until - world_now());
    }
}

static void rest(void) {
    (void)end_stalls();
    for (int i = 0; i < FIBERS_MOST; i++) {
        finish(&fibers[i]);
    }
    for (int i = 0; i < FIBERS_MOST; i++) { /* whom others have woken meanwhile, above all the keeper */
        wake_who_is_due();
        if (fibers[i].state == FIBER_READY) {
            finish(&fibers[i]);
        }
    }
}

/* -- steps --------------------------------------------------------------------------------------------------- */

/* A thread other than the first is there only once the first has allocated: libc does, to start it. */
static void open_library(void) {
    static bool opened;
    static const struct step first[] = {{.verb = VERB_MALLOC, .size = 64}, {.verb = VERB_FREE}};
    for (int i = 0; !opened && i < 2; i++) {
        doing[0] = first[i];
        fiber_begin(&fibers[0], do_step);
        finish(&fibers[0]);
    }
    opened = true;
}

/* Who comes first to a child of a fork without handlers, and has not forked, cannot tell that its parent was alone. */
static void note_comer(uint8_t thread) {
    copy.whole &= copy.forker < 0 || copy.forker == thread || gate.page->mark != GATE_CHILD;
}

static void play_step(const struct step *step) {
    struct fiber *fiber = &fibers[step->thread];
    switch (step->verb) {
    case VERB_KEEPER:
        wake_keeper();
        go_on(&fibers[FIBER_KEEPER], step);
        break;
    case VERB_IDLE:
        world_pass((uint64_t)step->size * 1000000);
        break;
    case VERB_REST:
        rest();
        break;
    case VERB_REFUSE:
        world_refuse(step->size, step->more);
        break;
    case VERB_LIMIT:
        world_limit(step->size);
        break;
    case VERB_CPUS:
        world_cpus = step->size == 0 ? 1 : step->size;
        break;
    case VERB_OPTION:
        option_set((enum option)step->size, step->more);
        break;
    case VERB_STALL:
        stalled[step->size % FIBERS_MOST] = step->more;
        break;
    case VERB_OLD:
        world_be_old();
        break;
    default:
        open_library();
        note_comer(step->thread);
        if (step->verb != VERB_GO) {
            finish(fiber);
            doing[step->thread] = *step;
            fiber_begin(fiber, do_step);
        }
        if (fiber->state != FIBER_IDLE) {
            go_on(fiber, step);
        }
    }
}

void scheduler_become_child(uint32_t steps, bool announced, bool whole) {
    enum { GENERATIONS = 2 };
    alarm(CHILD_SECONDS);
    generation++;
    copy.whole = whole;
    copy.forker = announced ? -1 : fiber_running - fibers;
    child_steps = generation > GENERATIONS ? 0 : steps;
    auditor_fork(announced);
}

/* Not without having been inside. */
static void end_child(void) {
    static const struct step last = {.verb = VERB_TRIM};
    rest();
    note_comer(0);
    doing[0] = last;
    fiber_begin(&fibers[0], do_step);
    rest();
    if (copy.whole && gate.page != NULL && gate.page->mark != GATE_RIGHT) {
        fail("torn: a child that was whole");
    }
    audit();
    _exit(0);
}

void scheduler_play(const struct script *script, unsigned every) {
    for (size_t i = 0; i < script->count; i++) {
        outcome->step = (uint32_t)i;
        for (int f = 0; f < FIBERS_MOST; f++) {
            stalled[f] -= stalled[f] != 0;
        }
        unsigned before = generation;
        duties_before(&script->step[i]);
        play_step(&script->step[i]);
        outcome->steps++;
        outcome->yields = generation == 0 ? fiber_yields : outcome->yields;
        if (generation != before || child_steps == 0 || (i + 1) % every == 0) {
            audit();
        }
        duties_after(&script->step[i]);
        if (generation > 0 && child_steps-- == 0) {
            end_child();
        }
    }
    if (generation > 0) {
        end_child();
    }
    rest();
    audit();
}
