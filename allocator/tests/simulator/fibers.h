/* Fibers: the threads of a simulation, each a stack of its own in one thread of the kernel's. One runs at a time, until it gives the
 * processor back to whoever resumed it. */
#ifndef FREESTONE_SIMULATOR_FIBERS_H
#define FREESTONE_SIMULATOR_FIBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FIBERS_MOST = 10, FIBER_KEEPER = FIBERS_MOST - 1 };

enum fiber_state {
    FIBER_IDLE, /* nothing to do */
    FIBER_READY, /* in the middle of something */
    FIBER_WAITING, /* asleep on a word */
};

struct fiber {
    void *stack_pointer;
    char *stack;
    char *locals; /* its thread-local variables while another runs */
    enum fiber_state state;
    const _Atomic uint32_t *word; /* what it sleeps on, */
    uint32_t expected; /* until that is not its value any more */
    int error; /* its errno while another runs */
    uint64_t until; /* nanoseconds; UINT64_MAX without a limit */
    void (*deed)(void);
};

extern struct fiber fibers[FIBERS_MOST];
extern struct fiber *fiber_running; /* NULL while the scheduler itself runs */

/* Once, before any thread-local variable of the library was written. */
void fibers_open(void);

/* Whether the address is of a thread-local variable. */
bool fiber_is_local(const void *address);

/* From now on it runs `deed` when it is resumed. */
void fiber_begin(struct fiber *fiber, void (*deed)(void));

/* Which yields are counted: all, those before an atomic that orders others, and those before one that has a place in one order for all. */
enum grain { GRAIN_ALL, GRAIN_ORDERED, GRAIN_TOTAL };

/* Lets it go on for so many yields at most, or until it sleeps or is done. */
void fiber_resume(struct fiber *fiber, uint64_t yields, enum grain grain);

/* Where the fiber has a thread-local variable that stands at `address` while it runs. */
const void *fiber_local(const struct fiber *fiber, const void *address);

/* By the running fiber: it is interrupted no more before it sleeps or is done. */
void fiber_go_on(void);

/* By the running fiber: back to who resumed it, in that state. */
void fiber_pause(enum fiber_state state);

/* A new thread in its place: its thread-local variables are as at the start. */
void fiber_reset(struct fiber *fiber);

/* Yields of all fibers, and times that one was resumed. */
extern uint64_t fiber_yields, fiber_turns;

#endif
