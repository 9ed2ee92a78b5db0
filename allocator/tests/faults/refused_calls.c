/* Any system call of the heap may fail at any time: memory is out, the count of mappings is, a page is locked. Then
 * requests give NULL and ENOMEM or are served from what is there; no block changes, calloc stays zero although pages
 * could not be dropped; and once the kernel gives again, so does the heap. Four threads, five phases. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "entry.h"
#include "expect.h"
#include "gate.h"
#include "pattern_ends.h"
#include "serving.h"

enum { THREADS = 4, TABLE = 300, STEPS = 4000, LOOKED_AT = 1 << 20 };

enum phase { ALL_PASS, SOME_FAIL, ALL_FAIL, PASS_AGAIN, SOME_FAIL_AGAIN, PASS_FINALLY, PHASES };

static const char *const phase_names[PHASES] = {"before",     "some fail",       "all fail",
                                                "pass again", "some fail again", "pass finally"};

struct block {
    void *address;
    size_t size;
    uint64_t id;
};

static atomic_int phase;
static atomic_uint_fast64_t stopped_calls;
static atomic_size_t failed_calls;
static atomic_size_t refused_requests[PHASES];
static pthread_barrier_t together;
static struct block tables[THREADS][TABLE];

/* EAGAIN is what the kernel says of a page it could not drop for want of memory, EINVAL of a locked one. */
static int error_of(long number, uint64_t count) {
    if (number == SYS_madvise) {
        static const int errors[] = {EINVAL, EAGAIN, ENOMEM};
        return errors[count % 3];
    }
    return ENOMEM;
}

static int decide(long number, const long arguments[6]) {
    (void)arguments;
    uint64_t count = atomic_fetch_add(&stopped_calls, 1);
    int now = atomic_load(&phase);
    uint64_t state = count;
    bool fails = now == ALL_FAIL || ((now == SOME_FAIL || now == SOME_FAIL_AGAIN) && pattern_random(&state) % 2 == 0);
    if (!fails) {
        return 0;
    }
    atomic_fetch_add(&failed_calls, 1);
    return error_of(number, count);
}

static size_t any_size(uint64_t *random) {
    size_t kind = pattern_below(random, 100);
    /* One in a hundred is of a size that has its own mapping; its pages stay untouched but for the first MiB. */
    if (kind == 0) {
        return ((size_t)64 << 20) + pattern_below(random, (size_t)700 << 20);
    }
    size_t bits = kind < 60   ? 4 + pattern_below(random, 9)
                  : kind < 90 ? 12 + pattern_below(random, 6)
                              : 18 + pattern_below(random, 6);
    return 1 + pattern_below(random, (size_t)1 << bits);
}

static void inspect(const struct block *block, const char *when) {
    size_t mismatch = pattern_mismatch_ends(block->address, block->size, block->size, LOOKED_AT, block->id);
    EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu changed %s, in phase '%s'", mismatch, block->size, when,
           phase_names[atomic_load(&phase)]);
}

static void refused(size_t size) {
    int now = atomic_load(&phase);
    EXPECT(errno == ENOMEM, "a request of %zu bytes was refused with errno %d", size, errno);
    EXPECT(now == SOME_FAIL || now == ALL_FAIL || now == SOME_FAIL_AGAIN,
           "a request of %zu bytes was refused in phase '%s', where no system call fails", size, phase_names[now]);
    atomic_fetch_add(&refused_requests[now], 1);
}

static void step(struct block *block, uint64_t *random, uint64_t *id) {
    size_t what = pattern_below(random, 4);
    size_t size = any_size(random);
    errno = 0;
    if (block->address == NULL) {
        void *address = what == 0   ? calloc(1, size)
                        : what == 1 ? memalign((size_t)16 << pattern_below(random, 12), size)
                                    : malloc(size);
        if (address == NULL) {
            refused(size);
            return;
        }
        if (what == 0) {
            size_t dirty = pattern_not_zero(address, pattern_head(size, LOOKED_AT));
            EXPECT(dirty == SIZE_MAX, "calloc of %zu bytes: byte %zu is not zero, in phase '%s'", size, dirty,
                   phase_names[atomic_load(&phase)]);
        }
        *block = (struct block){.address = address, .size = size, .id = (*id)++};
        pattern_fill_ends(address, size, LOOKED_AT, block->id);
        return;
    }
    inspect(block, "while it lay there");
    if (what == 0) {
        void *moved = realloc(block->address, size);
        if (moved == NULL) {
            refused(size);
            inspect(block, "when realloc refused to resize it");
            return;
        }
        size_t mismatch = pattern_mismatch_ends(moved, block->size, size, LOOKED_AT, block->id);
        EXPECT(mismatch == SIZE_MAX, "realloc from %zu to %zu bytes changed byte %zu, in phase '%s'", block->size, size,
               mismatch, phase_names[atomic_load(&phase)]);
        *block = (struct block){.address = moved, .size = size, .id = (*id)++};
        pattern_fill_ends(moved, size, LOOKED_AT, block->id);
        return;
    }
    free(block->address);
    EXPECT(errno == 0, "free set errno to %d", errno);
    block->address = NULL;
    if (pattern_below(random, 200) == 0) {
        malloc_trim(0);
    }
}

static void *work(void *argument) {
    size_t self = (uintptr_t)argument;
    uint64_t random = self + 1;
    uint64_t id = (uint64_t)(self + 1) << 32;
    pthread_barrier_wait(&together); /* the gate is closed now */
    for (int p = 0; p < PHASES; p++) {
        pthread_barrier_wait(&together);
        for (size_t i = 0; i < STEPS; i++) {
            step(&tables[self][pattern_below(&random, TABLE)], &random, &id);
        }
        pthread_barrier_wait(&together);
    }
    for (size_t b = 0; b < TABLE; b++) {
        if (tables[self][b].address != NULL) {
            inspect(&tables[self][b], "in the end");
            free(tables[self][b].address);
        }
    }
    pthread_barrier_wait(&together);
    while (pause() == -1) { /* for ever: a thread may not end behind the gate */
    }
    return NULL;
}

int main(void) {
    require_serving();
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (uintptr_t t = 0; t < THREADS; t++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, work, (void *)t) == 0, "no thread");
    }
    static const long calls[] = {SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise};
    gate_close(calls, sizeof calls / sizeof *calls, false, decide);
    pthread_barrier_wait(&together);
    for (int p = 0; p < PHASES; p++) {
        atomic_store(&phase, p);
        pthread_barrier_wait(&together);
        pthread_barrier_wait(&together);
    }
    pthread_barrier_wait(&together);
    /* Had nothing failed, nothing would have been tested. */
    EXPECT(atomic_load(&failed_calls) > 50, "only %zu system calls failed", atomic_load(&failed_calls));
    EXPECT(atomic_load(&refused_requests[ALL_FAIL]) > 0, "every request was served although every call failed");
    _exit(0);
}
