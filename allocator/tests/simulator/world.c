#include "world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "control_group.h"
#include "direct_binding.h"
#include "failure.h"
#include "fault_handler.h"
#include "fibers.h"
#include "guarded.h"
#include "memory_hooks.h"
#include "os.h"
#include "program.h"

enum { MAPPINGS_MOST = 8192, ATFORK_MOST = 4 };

/* Far from everything that the kernel places itself. */
static const uintptr_t STREET = UINT64_C(0x200000000000), MAPPINGS = UINT64_C(0x280000000000);

unsigned world_cpus = 2;

/* -- time and refusals --------------------------------------------------------------------------------------- */

static uint64_t passed;
static uint32_t to_refuse, to_grant; /* first granted, then refused */
static uint64_t refused;
static size_t mapped, most;

static uint64_t begun = UINT64_C(1000000000000);

void world_begin_at(uint64_t milliseconds) { begun = milliseconds * 1000000; }

uint64_t world_now(void) { return begun + passed + fiber_yields * 1000; }

void world_pass(uint64_t nanoseconds) { passed += nanoseconds; }

void world_refuse(uint32_t requests, uint32_t later) {
    to_refuse = requests;
    to_grant = later;
}

void world_limit(uint32_t kib) { most = (size_t)kib * 1024; }

uint64_t world_refused(void) { return refused; }

static bool is_refused(size_t more) {
    outcome->calls++;
    bool over = most != 0 && more != 0 && mapped + more > most;
    bool granted = to_refuse == 0 || to_grant > 0;
    to_grant -= to_grant != 0;
    if (granted && !over) {
        return false;
    }
    to_refuse -= !granted;
    refused++;
    outcome->refusals++;
    return true;
}

uint64_t os_milliseconds(void) { return world_now() / 1000000; }

uint64_t os_nanoseconds(void) { return world_now(); }

/* -- memory -------------------------------------------------------------------------------------------------- */

static struct {
    uintptr_t start;
    size_t bytes;
} mapping[MAPPINGS_MOST]; /* of os_map, by address */
static size_t mappings;

size_t world_mappings(void) { return mappings; }

bool world_is_mapped(const void *page) {
    unsigned char resident;
    return mincore((void *)(uintptr_t)page, 1, &resident) == 0;
}

/* The lowest place, so that what was given back is soon somebody else's. */
static uintptr_t place_for(size_t bytes, size_t alignment, size_t *at) {
    uintptr_t place = (MAPPINGS + alignment - 1) & ~(alignment - 1);
    for (*at = 0; *at < mappings; ++*at) {
        if (place + bytes <= mapping[*at].start) {
            break;
        }
        place = (mapping[*at].start + mapping[*at].bytes + alignment - 1) & ~(alignment - 1);
    }
    return place;
}

static void enter(size_t at, uintptr_t start, size_t bytes) {
    EXPECT_HERE(mappings < MAPPINGS_MOST);
    memmove(&mapping[at + 1], &mapping[at], (mappings - at) * sizeof *mapping);
    mapping[at].start = start;
    mapping[at].bytes = bytes;
    mappings++;
}

static size_t find(uintptr_t start) {
    size_t at = 0;
    while (at < mappings && mapping[at].start != start) {
        at++;
    }
    return at;
}

static void leave(size_t at) {
    mappings--;
    memmove(&mapping[at], &mapping[at + 1], (mappings - at) * sizeof *mapping);
}

static void map_there(void *at, size_t bytes) {
    void *got = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    EXPECT_HERE(got == at);
    mapped += bytes;
}

/* Nothing is reserved as a whole. */
void *os_reserve(size_t bytes, size_t alignment) {
    (void)bytes, (void)alignment;
    return NULL;
}

bool os_commit(void *at, size_t bytes) {
    (void)at, (void)bytes;
    return false;
}

/* Only hardened processes ask for it; what is played is not. */
bool os_guard(void *at, size_t bytes) {
    (void)at, (void)bytes;
    return false;
}

void os_random(void *at, size_t bytes) { memset(at, 1, bytes); }

uint32_t os_mappings_most(void) { return 65530; }

/* No files. */
size_t control_group_limit(void) { return CONTROL_GROUP_UNKNOWN; }

void os_decommit(void *at, size_t bytes) { (void)at, (void)bytes; }

void *os_find(size_t bytes, size_t alignment) {
    (void)bytes, (void)alignment;
    enum { APART = 16 };
    return (void *)(STREET - ((uintptr_t)APART << 40)); /* the street lies so far above what is found */
}

enum os_answer os_map_at(void *at, size_t bytes) {
    if (is_refused(bytes)) {
        return OS_REFUSED;
    }
    map_there(at, bytes);
    return OS_DONE;
}

bool os_has_room(size_t bytes) { return !is_refused(bytes); }

void *os_map(size_t bytes, size_t alignment) {
    if (is_refused(bytes)) {
        return NULL;
    }
    size_t row;
    uintptr_t place = place_for(bytes, alignment, &row);
    enter(row, place, bytes);
    map_there((void *)place, bytes);
    return (void *)place;
}

void os_unmap(void *at, size_t bytes) {
    program_lost(at, bytes, "unmapped");
    EXPECT_HERE(munmap(at, bytes) == 0);
    mapped -= bytes;
    if ((uintptr_t)at < MAPPINGS) {
        return;
    }
    size_t row = find((uintptr_t)at);
    if (row == mappings || mapping[row].bytes != bytes) {
        fail("mapping: %zu bytes at %p are unmapped that were never mapped so", bytes, at);
    }
    leave(row);
}

bool os_unmap_unseen(void *at, size_t bytes) {
    os_unmap(at, bytes);
    return true;
}

bool os_locks_what_comes(void) { return false; }

/* A copy at a place of its own: what the kernel can move depends on how it happens to keep its mappings. */
static void *move_to(void *at, size_t had, size_t bytes) {
    size_t row;
    uintptr_t place = place_for(bytes, 4096, &row);
    enter(row, place, bytes);
    map_there((void *)place, bytes);
    memcpy((void *)place, at, had < bytes ? had : bytes);
    return (void *)place;
}

void *os_remap(void *at, size_t old_bytes, size_t new_bytes) {
    size_t row = find((uintptr_t)at);
    if (row == mappings || mapping[row].bytes != old_bytes) {
        fail("mapping: %zu bytes at %p are resized that were never mapped so", old_bytes, at);
    }
    if (is_refused(new_bytes > old_bytes ? new_bytes - old_bytes : 0)) {
        return NULL;
    }
    program_lost(at, old_bytes, "moved");
    uintptr_t next = row + 1 < mappings ? mapping[row + 1].start : UINTPTR_MAX;
    if ((uintptr_t)at + new_bytes > next) {
        void *moved = move_to(at, old_bytes, new_bytes);
        os_unmap(at, old_bytes);
        return moved;
    }
    if (new_bytes > old_bytes) {
        map_there((char *)at + old_bytes, new_bytes - old_bytes);
    } else if (new_bytes < old_bytes) {
        EXPECT_HERE(munmap((char *)at + new_bytes, old_bytes - new_bytes) == 0);
        mapped -= old_bytes - new_bytes;
    }
    mapping[row].bytes = new_bytes;
    return at;
}

void *os_move(void *at, size_t bytes) {
    if (is_refused(bytes)) {
        return NULL;
    }
    program_lost(at, bytes, "moved");
    void *moved = move_to(at, bytes, bytes);
    EXPECT_HERE(madvise(at, bytes, MADV_DONTNEED) == 0);
    return moved;
}

void *os_move_away(void *at, size_t bytes, size_t new_bytes) {
    if (is_refused(new_bytes - bytes)) {
        return NULL;
    }
    program_lost(at, bytes, "moved");
    void *moved = move_to(at, bytes, new_bytes);
    EXPECT_HERE(munmap(at, bytes) == 0);
    mapped -= bytes;
    return moved;
}

bool os_purge(void *at, size_t bytes) {
    program_lost(at, bytes, "purged");
    if (is_refused(0)) {
        return false;
    }
    EXPECT_HERE(madvise(at, bytes, MADV_DONTNEED) == 0);
    return true;
}

bool os_purge_unseen(void *at, size_t bytes) { return os_purge(at, bytes); }

/* Nothing hooks what is played. */
bool memory_hooks_installed(void) { return false; }
bool memory_hooks_may_call(void) { return true; }
bool memory_hooks_are_running(void) { return false; }
void memory_hooks_after_fork(void) {}

/* Nobody looks at what was written. */
unsigned os_present(const void *at, unsigned pages) { return (void)at, pages; }

void os_prefer_huge(void *at, size_t bytes) { (void)at, (void)bytes; }

void os_avoid_huge(void *at, size_t bytes) { (void)at, (void)bytes; }

void os_populate(void *at, size_t bytes) { (void)at, (void)bytes; }

static bool old;

void world_be_old(void) { old = true; }

bool world_is_old(void) { return old; }

void os_wipe_on_fork(void *at, size_t bytes) { EXPECT_HERE(old || madvise(at, bytes, MADV_WIPEONFORK) == 0); }

/* -- threads ------------------------------------------------------------------------------------------------- */

unsigned os_cpus(void) { return world_cpus; }

#if !defined(__x86_64__)
size_t os_page_bytes(void) { return 4096; }
#endif

uint32_t os_filters(void) { return 0; }
bool os_tasks_are_few(void) { return false; }

static uint32_t process = 1; /* and a number more for each fork on the way here */

uint32_t os_process(void) { return process; }

uint32_t os_process_at_start(void) { return 1; }

bool os_be_plain(const char *name) {
    (void)name;
    return true;
}

bool os_is_privileged_at_start(void) { return false; }

static void sleep_on(const _Atomic uint32_t *word, uint32_t expected, uint64_t until) {
    if (fiber_running == NULL) {
        fail("world: the auditor sleeps");
    }
    if (atomic_load_explicit(word, memory_order_relaxed) == expected) {
        fiber_running->word = word;
        fiber_running->expected = expected;
        fiber_running->until = until;
        fiber_pause(FIBER_WAITING);
        fiber_running->word = NULL;
    }
}

static void wake(const _Atomic uint32_t *word, int threads) {
    for (int i = 0; i < FIBERS_MOST && threads > 0; i++) {
        if (fibers[i].state == FIBER_WAITING && fibers[i].word == word) {
            fibers[i].state = FIBER_READY;
            threads--;
        }
    }
}

void os_wait(const _Atomic uint32_t *word, uint32_t expected) { sleep_on(word, expected, UINT64_MAX); }

static uint64_t offered[FIBERS_MOST];

uint64_t world_waited(void) { return offered[fiber_running - fibers]; }

bool os_wait_for(const _Atomic uint32_t *word, uint32_t expected, uint32_t milliseconds) {
    offered[fiber_running - fibers] += milliseconds;
    uint64_t until = world_now() + (uint64_t)milliseconds * 1000000;
    sleep_on(word, expected, until);
    return world_now() >= until;
}

void os_nap(uint32_t milliseconds) {
    static const _Atomic uint32_t never;
    (void)os_wait_for(&never, 0, milliseconds);
}

bool os_wait_for_thread(const _Atomic uint32_t *word, uint32_t expected, uint32_t milliseconds) {
    return os_wait_for(word, expected, milliseconds);
}

/* Threads that have been in the place of each fiber, so that no id is used again. */
static uint32_t lives[FIBERS_MOST];

uint32_t os_thread(void) {
    ptrdiff_t self = fiber_running - fibers;
    return 2 + (uint32_t)self + FIBERS_MOST * lives[self];
}

uint32_t os_thread_of_libc(void) { return os_thread(); }

bool os_thread_is_gone(uint32_t of_process, uint32_t thread) {
    uint32_t life = (thread - 2) / FIBERS_MOST;
    return of_process != process || lives[(thread - 2) % FIBERS_MOST] != life;
}

bool os_has_thread(uint32_t thread) {
    (void)thread;
    return true;
}

void os_await_thread_gone(uint32_t thread, uint32_t milliseconds) {
    (void)thread;
    (void)milliseconds;
}

void os_wake_for_thread(const _Atomic uint32_t *word) { wake(word, FIBERS_MOST); }

void os_wake(const _Atomic uint32_t *word) { wake(word, 1); }

void os_wake_all(const _Atomic uint32_t *word) { wake(word, FIBERS_MOST); }

static struct {
    bool alive;
    void (*run)(void);
    _Atomic uint32_t *word;
} keeper;

bool world_has_keeper(void) { return keeper.alive; }

static void live(void) {
    keeper.run();
    keeper.alive = false;
    atomic_store_explicit(keeper.word, 0, memory_order_seq_cst);
    wake(keeper.word, FIBERS_MOST);
}

bool os_start_thread(void (*run)(void), void *memory, _Atomic uint32_t *word) {
    (void)memory;
    if (keeper.alive) {
        fail("keeper: a second one is started");
    }
    if (is_refused(0)) {
        return false;
    }
    keeper.alive = true;
    keeper.run = run;
    keeper.word = word;
    atomic_store_explicit(word, 2 + FIBER_KEEPER, memory_order_seq_cst);
    fiber_reset(&fibers[FIBER_KEEPER]);
    fiber_begin(&fibers[FIBER_KEEPER], live);
    return true;
}

void *os_thread_memory(void) {
    static char memory[16];
    return is_refused(sizeof memory) ? NULL : memory;
}

/* -- misfortune ---------------------------------------------------------------------------------------------- */

static char said[256];

_Noreturn void os_abort(void) { fail("stopped: %s", said); }

void os_write_error(const char *text, size_t length) {
    size_t kept = length < sizeof said ? length : sizeof said - 1;
    memcpy(said, text, kept);
    said[kept > 0 ? kept - 1 : 0] = '\0'; /* without the line's end */
}

/* The library's destructor is not played. */
void thread_last_look(void);
void thread_last_look(void) {}

/* -- libc's threads ------------------------------------------------------------------------------------------ */

int simulator_key_create(pthread_key_t *key, void (*destructor)(void *));
int simulator_setspecific(pthread_key_t key, const void *value);
int simulator_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

static void (*destroy)(void *);
static const void *specific[FIBERS_MOST];

int simulator_key_create(pthread_key_t *key, void (*destructor)(void *)) {
    *key = 0;
    destroy = destructor;
    return 0;
}

int simulator_setspecific(pthread_key_t key, const void *value) {
    (void)key;
    specific[fiber_running - fibers] = value;
    return 0;
}

void world_destroy_specific(void) {
    enum { PASSES = 4 };
    ptrdiff_t self = fiber_running - fibers;
    for (int pass = 0; pass < PASSES && specific[self] != NULL; pass++) {
        const void *value = specific[self];
        specific[self] = NULL;
        destroy((void *)(uintptr_t)value);
    }
}

void world_end_thread(void) {
    specific[fiber_running - fibers] = NULL;
    lives[fiber_running - fibers]++;
    fiber_reset(fiber_running);
}

static struct {
    void (*prepare)(void), (*parent)(void), (*child)(void);
} atfork;

int simulator_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    atfork.prepare = prepare;
    atfork.parent = parent;
    atfork.child = child;
    return 0;
}

void world_before_fork(void) { atfork.prepare(); }

void world_after_fork_in_parent(void) { atfork.parent(); }

void world_after_fork_in_child(void) { atfork.child(); }

void world_fork(void) {
    process++;
    keeper.alive = false;
    for (int i = 0; i < FIBERS_MOST; i++) {
        if (&fibers[i] != fiber_running) {
            specific[i] = NULL;
            lives[i] += i != FIBER_KEEPER;
            fiber_reset(&fibers[i]);
        }
    }
}

/* -- guarded blocks: only where the environment asks for them -------------------------------------------------- */

bool guarded_open(void) { return false; }
bool guarded_may_take(void) { return false; }
void *guarded_take(size_t size, size_t alignment, const struct trace *taken) {
    (void)size, (void)alignment, (void)taken;
    return NULL;
}
bool guarded_owns(const void *pointer) {
    (void)pointer;
    return false;
}
void guarded_stand_in(const void *block, void *instead) { (void)block, (void)instead; }
bool guarded_park(void *block, const struct trace *given) {
    (void)block, (void)given;
    return true;
}
void *guarded_give(void *block, size_t size, const struct trace *given, bool parked) {
    (void)block, (void)size, (void)given, (void)parked;
    return NULL;
}
bool guarded_size(const void *block, size_t *size) {
    (void)block, (void)size;
    return false;
}
void guarded_figures(size_t *served, size_t *unguarded, size_t *in_use) { *served = *unguarded = *in_use = 0; }
void guarded_reclaim(void) {}
void guarded_after_fork(void) {}
void fault_handler_set(void) {}
bool elf_has_further_runtime(void) { return false; }
const char *elf_file_before_own(const char *name) {
    (void)name;
    return NULL;
}
void *direct_function(enum direct_function which) {
    (void)which;
    return NULL;
}
void trace_open(void) {}
bool trace_is_open(void) { return false; }
void trace_take(struct trace *trace, bool asks) {
    (void)trace;
    (void)asks;
}
