/* Blocks of one size go between those of other sizes that outlive their phase: what a few blocks pin is used again, and every block there is
 * like any other, whichever thread frees it. With the argument `fork` a child goes on with them. */
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "figures.h"
#include "pattern.h"

enum { THREADS = 3, PHASES = 14, KEPT = 50, PHASE_BYTES = 16 << 20, MOST = PHASE_BYTES / 32 + (1 << 18) };

struct block {
    unsigned char *at;
    size_t size;
};

/* What one thread has. */
struct holder {
    struct block *held;
    size_t count;
    uint64_t random;
    size_t bytes; /* of a phase */
};

static struct {
    pthread_mutex_t lock;
    struct block block; /* left by one thread to another */
} passed = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void expect_untouched(const struct block *block) {
    size_t wrong = pattern_mismatch(block->at, block->size, (uintptr_t)block->at);
    EXPECT(wrong == SIZE_MAX, "byte %zu of a block of %zu bytes has changed", wrong, block->size);
}

static struct block held_now(void *at, size_t size) {
    EXPECT(at != NULL && malloc_usable_size(at) >= size, "%zu bytes got %zu", size, malloc_usable_size(at));
    pattern_fill(at, 0, size, (uintptr_t)at);
    return (struct block){at, size};
}

static void *zeroed(size_t size) {
    unsigned char *at = unseen(calloc(1, size));
    for (size_t i = 0; at != NULL && i < malloc_usable_size(at); i++) {
        EXPECT(at[i] == 0, "byte %zu of %zu from calloc is %d", i, malloc_usable_size(at), at[i]);
    }
    return at;
}

static struct block exchanged(struct block block) {
    pthread_mutex_lock(&passed.lock);
    struct block other = passed.block;
    passed.block = block;
    pthread_mutex_unlock(&passed.lock);
    return other;
}

static void drop(struct holder *holder, size_t i) {
    struct block block = exchanged(holder->held[i]);
    holder->held[i] = holder->held[--holder->count];
    if (block.at != NULL) {
        expect_untouched(&block);
        free(block.at);
    }
}

/* One that goes on at another size. */
static void grow(struct block *block) {
    expect_untouched(block);
    size_t had = block->size, size = had + had / 2;
    uintptr_t owner = (uintptr_t)block->at;
    unsigned char *at = realloc(block->at, size);
    EXPECT(at != NULL, "no memory");
    size_t wrong = pattern_mismatch(at, had, owner);
    EXPECT(wrong == SIZE_MAX, "byte %zu of %zu is not what it was before realloc", wrong, had);
    *block = held_now(at, size);
}

static void expect_aligned(size_t size) {
    for (size_t alignment = 32; alignment <= 4096; alignment *= 2) {
        void *at = aligned_alloc(alignment, size);
        EXPECT(at != NULL && (uintptr_t)at % alignment == 0, "%p is no multiple of %zu", at, alignment);
        free(at);
    }
}

static void phase(struct holder *holder, size_t size) {
    size_t from = holder->count;
    for (size_t bytes = 0; bytes < holder->bytes; bytes += size) {
        holder->held[holder->count] = held_now(holder->count % 8 == 0 ? zeroed(size) : unseen(malloc(size)), size);
        if (++holder->count % 64 == 0) {
            expect_aligned(size);
        }
    }
    while (holder->count - from > holder->bytes / size / KEPT) {
        size_t i = from + pattern_below(&holder->random, holder->count - from);
        if (pattern_below(&holder->random, 16) == 0) {
            grow(&holder->held[i]);
        }
        drop(holder, i);
    }
}

static void drop_all(struct holder *holder) {
    while (holder->count > 0) {
        drop(holder, holder->count - 1);
    }
}

static size_t size_in(unsigned number) {
    return (size_t)24 << number / 2 | (number % 2 != 0 ? (size_t)12 << number / 2 : 0);
}

static void *work(void *argument) {
    struct holder *holder = argument;
    for (unsigned i = 0; i < PHASES; i++) {
        phase(holder, size_in(i));
    }
    return NULL;
}

static struct holder holder_of(uint64_t random, size_t bytes) {
    static struct block blocks[THREADS][MOST];
    return (struct holder){.held = blocks[random], .random = random + 5, .bytes = bytes};
}

static void alone(void) {
    size_t most = 0;
    struct holder holder = holder_of(0, PHASE_BYTES);
    for (unsigned i = 0; i < PHASES; i++) {
        phase(&holder, size_in(i));
        size_t held_bytes = figure("slabs") - figure("clean");
        most = held_bytes > most ? held_bytes : most;
    }
    EXPECT(most <= (size_t)PHASE_BYTES * 6, "%zu MiB are in slabs",
           most >> 20); /* 83 to 91 MiB; 100 and more if nothing is lent */
    drop_all(&holder);
}

static void together(void) {
    struct holder holders[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        holders[i] = holder_of(i, PHASE_BYTES / 2);
        EXPECT(pthread_create(&threads[i], NULL, work, &holders[i]) == 0, "no thread");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        drop_all(&holders[i]);
    }
}

static void in_child(void) {
    struct holder holder = holder_of(0, PHASE_BYTES);
    (void)work(&holder);
    pid_t child = fork();
    if (child == 0) {
        phase(&holder, size_in(PHASES - 3));
        drop_all(&holder);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with %#x", status);
    phase(&holder, size_in(PHASES - 3));
    drop_all(&holder);
}

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "alone";
    (strcmp(which, "alone") == 0 ? alone : strcmp(which, "together") == 0 ? together : in_child)();
    return 0;
}
