/* stops BUG: one bug in a hardened process, and the line that it earns (misuse/stopped.c compares).
 *
 * The options of each are in CMakeLists.txt: where the line depends on which slots are neighbours, they are not chosen at random. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "../misuse/misuse.h"
#include "use_up.h"

#define SIZE 40   /* in slots of 48 bytes: no canary between, the trailer follows at once */
#define SHORT 33  /* seven bytes of canary */
#define LARGE 600000

static _Atomic bool is_freed;

static unsigned char *take(size_t size) { return unseen(malloc(size)); }

static void nul_behind_end(void) {
    unsigned char *block = take(SHORT);
    announce("overflow: pointer %p, size 33 bytes, 1 byte behind its end overwritten", (void *)block);
    block[SHORT] = '\0';
    free(block);
}

static void canary_end(void) {
    unsigned char *block = take(SHORT);
    announce("overflow: pointer %p, size 33 bytes, 7 bytes behind its end overwritten", (void *)block);
    block[SHORT + 6] ^= 1;
    free(block);
}

static void trailer(void) {
    unsigned char *block = take(SIZE);
    announce("overflow: pointer %p, size class 48 bytes, its end overwritten", (void *)block);
    block[SIZE] = '\0';
    free(block);
}

static void far(void) {
    enum { FAR = 4096, SLICE = 64 << 10 };
    unsigned char *block = take(SHORT);
    while ((uintptr_t)block % SLICE >
           SLICE - 2 * FAR) { /* behind a slab lies a guard page, which would tell of it first */
        block = take(SHORT);
    }
    announce("overflow: pointer %p, size class 48 bytes, its end overwritten", (void *)block);
    memset(block + SHORT, 1, FAR);
    free(block);
}

static void seen_by_realloc(void) {
    unsigned char *block = take(SHORT);
    announce("overflow: pointer %p, size 33 bytes, 3 bytes behind its end overwritten", (void *)block);
    block[SHORT + 2] ^= 1;
    (void)unseen(realloc(block, SHORT + 4));
}

static void seen_by_check(void) {
    unsigned char *block = take(SHORT);
    announce("overflow: pointer %p, size 33 bytes, 2 bytes behind its end overwritten", (void *)block);
    block[SHORT + 1] ^= 1;
    (void)freestone_check();
}

static void seen_at_end(void) {
    unsigned char *block = take(SHORT);
    announce("overflow: pointer %p, size 33 bytes, 2 bytes behind its end overwritten", (void *)block);
    block[SHORT + 1] ^= 1;
    exit(0);
}

static void large_end(void) {
    unsigned char *block = take(LARGE + 1);
    announce("overflow: pointer %p, size 600001 bytes, 1 byte behind its end overwritten", (void *)block);
    block[LARGE + 1] = '\0';
    free(block);
}

static void large_start(void) {
    unsigned char *block = take(LARGE);
    announce("underflow: pointer %p, size 600000 bytes, 3 bytes before its start overwritten", (void *)block);
    block[-3] ^= 1;
    free(block);
}

/* Not at random: the second lies behind the first. */
static void before_start(void) {
    (void)take(SIZE);
    unsigned char *block = take(SIZE);
    announce("underflow: pointer %p, size 40 bytes, what lies before it overwritten", (void *)block);
    block[-1] ^= 1;
    free(block);
}

static void before_start_beside_freed(void) {
    unsigned char *first = take(SIZE);
    unsigned char *block = take(SIZE);
    free(first);
    announce("underflow: pointer %p, size 40 bytes, what lies before it overwritten", (void *)block);
    block[-1] ^= 1;
    free(block);
}

static void double_free(size_t size, const char *line) {
    unsigned char *block = take(size);
    announce(line, (void *)block);
    free(block);
    free(unseen(block));
}

static void twice(void) { double_free(SIZE, "double free: pointer %p, size class 48 bytes"); }
static void twice_nothing(void) { double_free(0, "double free: pointer %p, size class 16 bytes"); }
static void twice_large(void) { double_free(LARGE, "double free: pointer %p, size 600000 bytes"); }

static void twice_apart(void) {
    unsigned char *block = take(SIZE);
    announce("double free: pointer %p, size class 48 bytes", (void *)block);
    free(block);
    for (int i = 0; i < 100; i++) { /* fewer than are held back */
        free(take(SIZE));
    }
    free(unseen(block));
}

static void *free_it(void *block) {
    free(block);
    return NULL;
}

static void twice_and_written(void) {
    unsigned char *block = take(SIZE);
    announce("double free: pointer %p, size class 48 bytes", (void *)block);
    free(block);
    block[3] = 1;
    free(unseen(block));
}

static void twice_and_end_written(void) {
    unsigned char *block = take(SIZE);
    announce("double free: pointer %p, size class 48 bytes", (void *)block);
    free(block);
    block[47] = 1;
    free(unseen(block));
}

/* Zeros over all that the slot has: it looks like a free one. */
static void zeros_behind_end(void) {
    unsigned char *block = unseen(calloc(1, 64));
    announce("overflow: pointer %p, size class 80 bytes, its end overwritten", (void *)block);
    memset(block, 0, 80);
    free(block);
}

/* Without a free: the slot is as a free one is, but lies among none. Others, freed and taken ahead, lie beside it. */
static unsigned char *take_among_free(void) {
    for (int i = 0; i < 50; i++) {
        free(take(64));
    }
    unsigned char *block = take(64), *other = take(64);
    announce("overflow: pointer %p, size class 80 bytes, its end overwritten", (void *)block);
    free(other);
    return block;
}

static void zeros_seen_by_check(void) {
    memset(take_among_free(), 0, 80);
    (void)freestone_check();
}

static void zeros_seen_at_end(void) {
    memset(take_among_free(), 0, 80);
    exit(0);
}

static void size_of_what_is_on_stack(void) {
    char here[100];
    char *pointer = unseen(here + 16);
    EXPECT(malloc_usable_size(NULL) == 0, "NULL has a size");
    announce("foreign pointer: pointer %p was not allocated here", (void *)pointer);
    (void)malloc_usable_size(pointer);
}

static void size_of_freed(void) {
    unsigned char *block = take(SIZE);
    free(block);
    announce("double free: pointer %p, size class 48 bytes", (void *)block);
    (void)malloc_usable_size(block);
}

static void size_of_inside(void) {
    unsigned char *block = take(SIZE);
    announce("interior pointer: pointer %p, size class 48 bytes", (void *)(block + 16));
    (void)malloc_usable_size(block + 16);
}

static void *free_and_stay(void *block) {
    free(block);
    atomic_store(&is_freed, true);
    for (;;) {
        pause();
    }
    return block;
}

/* It waits among what the other thread has at hand. */
static void twice_beside_thread(void) {
    unsigned char *block = take(SIZE);
    pthread_t thread;
    announce("double free: pointer %p, size class 48 bytes", (void *)block);
    EXPECT(pthread_create(&thread, NULL, free_and_stay, block) == 0, "no thread");
    while (!atomic_load(&is_freed)) {
        usleep(1000);
    }
    free(unseen(block));
}

static void twice_by_threads(void) {
    unsigned char *block = take(SIZE);
    pthread_t thread;
    announce("double free: pointer %p, size class 48 bytes", (void *)block);
    EXPECT(pthread_create(&thread, NULL, free_it, block) == 0, "no thread");
    pthread_join(thread, NULL);
    free(unseen(block));
}

static void realloc_freed(void) {
    unsigned char *block = take(SIZE);
    announce("double free: pointer %p, size class 48 bytes", (void *)block);
    free(block);
    (void)unseen(realloc(unseen(block), 2 * SIZE));
}

static void inside(void) {
    unsigned char *block = take(SIZE);
    announce("interior pointer: pointer %p, size class 48 bytes", (void *)(block + 16));
    free(unseen(block + 16));
}

static void unaligned(void) {
    unsigned char *block = take(SIZE);
    announce("interior pointer: pointer %p, size class 48 bytes", (void *)(block + 1));
    free(unseen(block + 1));
}

static void inside_large(void) {
    unsigned char *block = take(LARGE);
    announce("interior pointer: pointer %p, size 600000 bytes", (void *)(block + 4096));
    free(unseen(block + 4096));
}

static void on_stack(void) {
    int here = 0;
    announce("foreign pointer: pointer %p was not allocated here", (void *)&here);
    free(unseen((void *)&here));
}

/* What is not held back is taken again soon. */
static void written_since(void) {
    unsigned char *block = take(SIZE);
    announce("write after free: pointer %p, size class 48 bytes, byte 5 written since", (void *)block);
    free(block);
    ((unsigned char *)unseen(block))[5] = 1;
    for (int i = 0; i < 100; i++) {
        free(take(SIZE));
    }
}

static void written_since_seen_at_end(void) {
    unsigned char *block = take(SIZE);
    announce("write after free: pointer %p, size class 48 bytes, byte 47 written since", (void *)block);
    free(block);
    ((unsigned char *)unseen(block))[47] = 1;
    exit(0);
}

static void larger(void) {
    unsigned char *block = take(SIZE);
    announce("wrong size: pointer %p, 41 bytes given, size 40 bytes (kinds=0 leaves this check out)", (void *)block);
    free_sized(block, SIZE + 1);
}

static void smaller(void) {
    unsigned char *block = take(SIZE);
    announce("wrong size: pointer %p, 39 bytes given, size 40 bytes (kinds=0 leaves this check out)", (void *)block);
    free_sized(block, SIZE - 1);
}

static void larger_nothing(void) {
    unsigned char *block = take(0);
    announce("wrong size: pointer %p, 10 bytes given, size 0 bytes (kinds=0 leaves this check out)", (void *)block);
    free_sized(block, 10);
}

/* No memory is left to move to: the block stays, and so its end moves. */
static void shrunk_end(void) {
    unsigned char *block = take(5 * LARGE);
    announce("overflow: pointer %p, size 600001 bytes, 1 byte behind its end overwritten", (void *)block);
    use_up(0);
    EXPECT(unseen(realloc(block, LARGE + 1)) == block, "it has moved");
    block[LARGE + 1] ^= 1;
    free(block);
}

static void larger_large(void) {
    unsigned char *block = take(LARGE);
    announce("wrong size: pointer %p, 600001 bytes given, size 600000 bytes (kinds=0 leaves this check out)",
             (void *)block);
    free_sized(block, LARGE + 1);
}

static const struct {
    const char *name;
    void (*run)(void);
} bugs[] = {
    {"nul_behind_end", nul_behind_end},
    {"canary_end", canary_end},
    {"trailer", trailer},
    {"far", far},
    {"seen_by_realloc", seen_by_realloc},
    {"seen_by_check", seen_by_check},
    {"seen_at_end", seen_at_end},
    {"large_end", large_end},
    {"large_start", large_start},
    {"before_start", before_start},
    {"before_start_beside_freed", before_start_beside_freed},
    {"twice", twice},
    {"twice_nothing", twice_nothing},
    {"twice_large", twice_large},
    {"twice_apart", twice_apart},
    {"twice_by_threads", twice_by_threads},
    {"realloc_freed", realloc_freed},
    {"inside", inside},
    {"unaligned", unaligned},
    {"inside_large", inside_large},
    {"on_stack", on_stack},
    {"written_since", written_since},
    {"written_since_seen_at_end", written_since_seen_at_end},
    {"larger", larger},
    {"smaller", smaller},
    {"larger_large", larger_large},
    {"twice_and_written", twice_and_written},
    {"twice_and_end_written", twice_and_end_written},
    {"twice_beside_thread", twice_beside_thread},
    {"zeros_behind_end", zeros_behind_end},
    {"size_of_what_is_on_stack", size_of_what_is_on_stack},
    {"size_of_freed", size_of_freed},
    {"size_of_inside", size_of_inside},
    {"zeros_seen_by_check", zeros_seen_by_check},
    {"zeros_seen_at_end", zeros_seen_at_end},
    {"larger_nothing", larger_nothing},
    {"shrunk_end", shrunk_end},
};

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: stops BUG");
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
        if (strcmp(bugs[i].name, arguments[1]) == 0) {
            bugs[i].run();
            _exit(unnoticed());
        }
    }
    EXPECT(0, "no such bug: %s", arguments[1]);
}
