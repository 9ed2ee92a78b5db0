#include "program.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "auditor.h"
#include "failure.h"
#include "fibers.h"
#include "gate.h"
#include "scheduler.h"
#include "seams.h"
#include "shelter.h"
#include "thread_inside.h"
#include "turns.h"
#include "world.h"

/* The library's own entry points, under names that leave the simulator its malloc. */
void *played_malloc(size_t size);
void *played_calloc(size_t count, size_t size);
void *played_realloc(void *block, size_t size);
void *played_aligned_alloc(size_t alignment, size_t size);
void played_free(void *block);
size_t played_malloc_usable_size(void *block);
int played_malloc_trim(size_t pad);
struct mallinfo2 played_mallinfo2(void);

struct held program_held[BLOCKS_MOST];
unsigned program_in_hand;
unsigned program_nulls, program_chunks_left;
struct mallinfo2 program_figures;

/* -- patterns ------------------------------------------------------------------------------------------------ */

enum { DENSE_WORDS = 16, APART = 512 }; /* all words at the start, and then one in so many bytes */

static uint64_t word_of(const struct held *held, size_t offset) {
    uint64_t number = (uint64_t)(held - program_held);
    return (offset + 1 + (number << 40)) * UINT64_C(0x9E3779B97F4A7C15) | 1;
}

static size_t next_offset(size_t offset) {
    return offset + 8 < DENSE_WORDS * 8 ? offset + 8 : (offset / APART + 1) * APART;
}

static void fill(const struct held *held) {
    for (size_t offset = 0; offset + 8 <= held->usable; offset = next_offset(offset)) {
        *(uint64_t *)(void *)(held->at + offset) = word_of(held, offset);
    }
    *(uint64_t *)(void *)(held->at + held->usable - 8) = word_of(held, held->usable - 8);
}

/* The first `bytes` are as they were. */
static void check(const struct held *held, const char *at, size_t bytes) {
    for (size_t offset = 0; offset + 8 <= bytes; offset = next_offset(offset)) {
        uint64_t found = *(const uint64_t *)(const void *)(at + offset);
        /* the last word of what a block was before may lie in the way */
        if (found != word_of(held, offset)) {
            fail("written: block %zu of %zu bytes, byte %zu", (size_t)(held - program_held), held->size, offset);
        }
    }
}

static void check_all(const struct held *held) {
    check(held, held->at, held->usable);
    size_t last = held->usable - 8;
    if (*(const uint64_t *)(const void *)(held->at + last) != word_of(held, last)) {
        fail("written: block %zu of %zu bytes, its end", (size_t)(held - program_held), held->size);
    }
}

static void check_zero(const char *at, size_t size) {
    for (size_t offset = 0; offset < size; offset += offset < 4096 ? 1 : 61) {
        if (at[offset] != 0) {
            fail("zero: calloc of %zu bytes, byte %zu", size, offset);
        }
    }
}

void program_check(void) {
    for (unsigned i = 0; i < BLOCKS_MOST; i++) {
        if (program_held[i].at != NULL && !program_held[i].in_hand) {
            check_all(&program_held[i]);
        }
    }
}

void program_lost(const void *at, size_t bytes, const char *how) {
    for (unsigned i = 0; i < BLOCKS_MOST; i++) {
        const struct held *held = &program_held[i];
        if (held->at != NULL && !held->in_hand && held->at < (const char *)at + bytes &&
            held->at + held->usable > (const char *)at) {
            fail("%s: block %u of %zu bytes", how, i, held->size);
        }
    }
}

/* -- operations ---------------------------------------------------------------------------------------------- */

enum { ERRNO_BEFORE = 4711 }; /* no error's */

/* Of the call that has just ended; what succeeds leaves it alone. */
static void check_errno(bool failed, const char *call) {
    int error = errno;
    if (error != (failed ? ENOMEM : ERRNO_BEFORE)) {
        fail("errno: %d after %s that has %s", error, call, failed ? "failed" : "succeeded");
    }
}

/* Somebody was served by the shelter since the gate was closed: he has to have his turn. */
static bool kept_out;

/* A block has come; the number is free. */
static void hold(struct held *held, void *at, size_t size, size_t alignment, uint64_t refused) {
    if (at == NULL) {
        program_nulls++;
        if (refused == world_refused()) {
            fail("refused: no block of %zu bytes, and the kernel has refused nothing", size);
        }
        held->in_hand = false;
        return;
    }
    size_t usable = played_malloc_usable_size(at);
    if ((uintptr_t)at % alignment != 0 || usable < size) {
        fail("block: %zu bytes at %p, aligned to %zu, for %zu bytes", usable, at, alignment, size);
    }
    program_lost(at, usable, "handed out twice");
    kept_out |= gate.page->forks != 0 && shelter_usable(at) != 0;
    held->size = size;
    held->usable = usable;
    held->at = at;
    fill(held);
    held->in_hand = false;
}

size_t program_alignment(const struct step *step) {
    return step->more == 0 || (step->more & (step->more - 1)) != 0 ? 16 : step->more;
}

static void allocate_block(const struct step *step, struct held *held) {
    if (held->at != NULL || held->in_hand) {
        return;
    }
    held->in_hand = true;
    uint64_t refused = world_refused();
    size_t alignment = 16;
    void *at;
    errno = ERRNO_BEFORE;
    if (step->verb == VERB_MALLOC) {
        at = played_malloc(step->size);
        check_errno(at == NULL, "malloc");
    } else if (step->verb == VERB_CALLOC) {
        at = played_calloc(1, step->size);
        check_errno(at == NULL, "calloc");
        if (at != NULL) {
            check_zero(at, step->size);
        }
    } else {
        alignment = program_alignment(step);
        at = played_aligned_alloc(alignment, step->size);
        check_errno(at == NULL, "aligned_alloc");
    }
    hold(held, at, step->size, alignment, refused);
}

static void resize_block(const struct step *step, struct held *held) {
    if (held->at == NULL || held->in_hand || step->size == 0) {
        return;
    }
    held->in_hand = true;
    check_all(held);
    size_t had = held->usable;
    uint64_t refused = world_refused();
    errno = ERRNO_BEFORE;
    char *at = played_realloc(held->at, step->size);
    check_errno(at == NULL, "realloc");
    if (at == NULL) {
        check_all(held);
        hold(held, NULL, step->size, 16, refused);
        return;
    }
    check(held, at, had < step->size ? had : step->size);
    held->at = NULL;
    hold(held, at, step->size, 16, refused);
}

static void free_block(struct held *held) {
    if (held->at == NULL || held->in_hand) {
        return;
    }
    held->in_hand = true;
    check_all(held);
    char *at = held->at;
    held->at = NULL; /* from here on it may be another's */
    errno = ERRNO_BEFORE;
    played_free(at);
    check_errno(false, "free");
    held->in_hand = false;
}

/* What libc does last for a thread comes after the destructors. */
static void end_thread(size_t last) {
    bool seen = seam_view()->state == THREAD_ALIVE || seam_view()->state == THREAD_SHELTERED;
    world_destroy_specific();
    const void *const *chunk = seam_shelter_own();
    if (*chunk != NULL) {
        fail("shelter: a thread ends and keeps its chunk");
    }
    played_free(played_malloc(last));
    if (seen) { /* and not a second time */
        audit_forgotten();
    }
    if (seen && *chunk != NULL) {
        fail("shelter: a thread that has ended takes a chunk");
    }
    program_chunks_left += *chunk != NULL; /* its first, and nobody sees this end */
    world_end_thread();
}

/* -- forks --------------------------------------------------------------------------------------------------- */

void program_fork(void) {
    for (int i = 0; i < FIBERS_MOST; i++) {
        enum { IN_HAND = 2 }; /* by realloc: the old block and the new one */
        program_in_hand += &fibers[i] != fiber_running && fibers[i].state != FIBER_IDLE ? IN_HAND : 0;
    }
    for (unsigned i = 0; i < BLOCKS_MOST; i++) {
        struct held *held = &program_held[i];
        if (held->in_hand) { /* lost with its thread */
            held->in_hand = false;
            held->at = NULL;
        }
    }
}

/* A fork of the whole simulation: the child is this thread alone. */
enum { /* waited at least, in ms, however the clock has run meanwhile, */
       KEEPER_GOES_MS = 190, /* for the keeper that does not go, */
       OTHERS_LEAVE_MS = 60000, /* and for others that do not come out */
};

/* A fork that comes while another's keeps somebody out lets him work first. */
static void check_turn(bool crowded, uint32_t turn, uint64_t waited) {
    if (crowded && waited == 0 && turns.number == turn) {
        fail("turn: a fork keeps the gate closed, and somebody was refused");
    }
}

/* What is known of the copy before it is made: nobody else was inside, or was waited for. */
static bool is_whole(bool announced) {
    if (gate.page == NULL || gate.page->mark != GATE_RIGHT) {
        return false;
    }
    const struct thread_cache *own = seam_view()->cache;
    bool alone = registry.alive == NULL || (registry.alive == own && own->next == NULL);
    return announced || (alone && gate.outsiders == 0 && scheduler_is_alone() && !world_has_keeper());
}

static void before_fork(void) {
    uint64_t waited = world_waited();
    uint32_t turn = turns.number;
    bool closed = gate.page != NULL && gate.page->forks != 0;
    bool crowded = closed && kept_out && seam_view()->state == THREAD_ALIVE;
    kept_out &= closed;
    world_before_fork();
    check_turn(crowded, turn, world_waited() - waited);
    if (gate.page != NULL && gate.page->mark == GATE_CHILD && gate.page->settling == 0) {
        fail("child: it forks, and nobody has put it right");
    }
    static bool deaf; /* it did not go for the fork before: this one need not wait as long */
    if (world_has_keeper() && world_waited() - waited < (deaf ? 1 : KEEPER_GOES_MS)) {
        fail("keeper: there at a fork that did not wait for it");
    }
    deaf = world_has_keeper();
}

/* The keeper that went is back where the program has other threads; asked of who was not interrupted. */
static void check_keeper_back(uint64_t refused, uint64_t turns) {
    bool alone = registry.alive == NULL || registry.alive->next == NULL;
    if (!alone && turns == fiber_turns && refused == world_refused() && auditor_sees() &&
        seam_keeper_is_due(UINT64_MAX)) {
        fail("kept: the keeper does not come back after a fork");
    }
}

static void fork_here(bool announced, uint32_t steps) {
    uint64_t waited = world_waited();
    announced |= world_is_old();
    if (announced) {
        before_fork();
        waited = world_waited() - waited;
    }
    bool right = gate.page != NULL && gate.page->mark == GATE_RIGHT; /* a torn child's child is torn */
    bool whole = is_whole(announced);
    pid_t child = fork();
    EXPECT_HERE(child >= 0);
    if (child == 0) {
        program_fork();
        world_fork();
        fiber_go_on(); /* nobody else is there before the handlers are done */
        if (announced) {
            world_after_fork_in_child();
            if (gate.page != NULL && gate.page->mark == GATE_RIGHT) {
                fail("child: it takes itself for its parent");
            }
            if (right && gate.page->fork == GATE_UNQUIET && waited < OTHERS_LEAVE_MS) {
                fail("torn: a fork gave up after %u ms", (unsigned)waited);
            }
            whole &= gate.page->fork == GATE_WHOLE;
        }
        scheduler_become_child(steps, announced, whole);
        return;
    }
    int status = 0;
    EXPECT_HERE(waitpid(child, &status, 0) == child);
    if (status != 0) {
        if (outcome->text[0] != '\0') {
            _exit(1);
        }
        fail("child: it ended with wait status %#x", (unsigned)status);
    }
    outcome->forks++;
    if (announced) {
        uint64_t refused = world_refused(), turns = fiber_turns;
        world_after_fork_in_parent();
        check_keeper_back(refused, turns);
    }
}

void program_do(const struct step *step) {
    struct held *held = &program_held[step->block];
    switch (step->verb) {
    case VERB_MALLOC:
    case VERB_CALLOC:
    case VERB_ALIGNED:
        allocate_block(step, held);
        break;
    case VERB_REALLOC:
        resize_block(step, held);
        break;
    case VERB_FREE:
        free_block(held);
        break;
    case VERB_END:
        end_thread(step->size);
        break;
    case VERB_FORK:
    case VERB_FORK_UNANNOUNCED:
        fork_here(step->verb == VERB_FORK, step->size);
        break;
    case VERB_TRIM:
        (void)played_malloc_trim(0);
        break;
    case VERB_FIGURES:
        program_figures = played_mallinfo2();
        break;
    default:
        break;
    }
}
