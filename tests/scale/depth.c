/* What operations cost beside many live blocks, in instructions: the processor traps after each (x86-64), and so the library is the one that
 * is used, on the kernel as it is.
 *
 *   depth LIVE BLOCKS BYTES
 *
 * LIVE blocks of 16 bytes, and BLOCKS of BYTES bytes of each of which one small page is written: so many gibibytes of addresses. Prints for each
 * operation how often it was made, instructions of all calls and those of the longest: its name, tab, three numbers with tabs. "floor" is a call
 * that does nothing. Status 3: memory was out. */
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum {
    SMALL = 16,
    GROWN = 40, /* another size class */
    CALLS = 2000, /* of small blocks */
    LARGE_CALLS = 50, /* of others */
    LARGE = 1 << 20, /* a span of the arena */
    FARTHER = LARGE + LARGE / 2,
    VAST_CALLS = 20,
    VAST = 129 << 20, /* a mapping of its own */
};

static void *sample[CALLS]; /* live blocks from all over */
static void *fresh[CALLS];
static size_t sink;
static volatile uint64_t steps;

/* The library asks for the time too, and finds this one first: what it does by the clock does not depend on how long a step takes. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    static uint64_t ns = 1000000000;
    (void)clock;
    ns += 1000;
    now->tv_sec = (time_t)(ns / 1000000000);
    now->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

static void step(int number) {
    (void)number;
    steps++;
}

#if defined(__x86_64__)
/* Past the red zone, so that nothing below the stack's end is lost. */
static inline __attribute__((always_inline)) void trap(void) {
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushf\n\torl $0x100, (%%rsp)\n\tpopf\n\tlea 128(%%rsp), %%rsp"
                     :
                     :
                     : "memory", "cc");
}
static inline __attribute__((always_inline)) void untrap(void) {
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushf\n\tandl $~0x100, (%%rsp)\n\tpopf\n\tlea 128(%%rsp), %%rsp"
                     :
                     :
                     : "memory", "cc");
}
#else
#error "instructions are counted on x86-64"
#endif

static uint64_t next(void) {
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void *checked(void *block) {
    if (block == NULL) {
        (void)fprintf(stderr, "depth: memory is out\n");
        exit(3);
    }
    return block;
}

/* An order by chance, so that neighbours in it lie apart. */
static void shuffle(void **blocks, size_t count) {
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = next() % (i + 1);
        void *block = blocks[i];
        blocks[i] = blocks[other];
        blocks[other] = block;
    }
}

static void fill(size_t live) {
    size_t apart = live / CALLS;
    for (size_t i = 0; i < live; i++) {
        void *block = checked(malloc(SMALL));
        *(uint32_t *)block = 1;
        if (i % apart == 0 && i / apart < CALLS) {
            sample[i / apart] = block;
        }
    }
}

static void spread(size_t blocks, size_t bytes) {
    for (size_t i = 0; i < blocks; i++) {
        *(volatile char *)checked(malloc(bytes)) = 1;
    }
}

static __attribute__((noinline)) void *nothing(void *block) {
    __asm__ volatile("" : "+r"(block));
    return block;
}

#define MEASURED(name, count, statement)                                     \
    do {                                                                     \
        uint64_t all = 0, longest = 0;                                       \
        for (size_t i = 0; i < (count); i++) {                               \
            steps = 0;                                                       \
            trap();                                                          \
            statement;                                                       \
            untrap();                                                        \
            uint64_t took = steps;                                           \
            all += took;                                                     \
            longest = took > longest ? took : longest;                       \
        }                                                                    \
        (void)fprintf(out, "%s\t%d\t%lu\t%lu\n", name, count, all, longest); \
    } while (0)

int main(int argc, char **argv) {
    static char room[4096];
    FILE *out = stdout;
    (void)setvbuf(out, room, _IOFBF, sizeof room);
    size_t live = argc == 4 ? strtoull(argv[1], NULL, 10) : 0;
    if (live < CALLS) {
        (void)fprintf(stderr, "usage: depth LIVE BLOCKS BYTES; LIVE: %d or more\n", CALLS);
        return 2;
    }
    struct sigaction action = {.sa_handler = step};
    if (sigaction(SIGTRAP, &action, NULL) != 0) {
        return 2;
    }
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* one small page is written of each block */
    spread(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    fill(live);
    shuffle(sample, CALLS);

    MEASURED("floor", CALLS, fresh[i] = nothing(sample[i]));
    MEASURED("malloc", CALLS, fresh[i] = malloc(SMALL));
    MEASURED("malloc_usable_size", CALLS, sink += malloc_usable_size(sample[i]));
    MEASURED("realloc, to another class", CALLS, sample[i] = realloc(sample[i], GROWN));
    MEASURED("free", CALLS, free(sample[i]));
    MEASURED("malloc, of what was freed", CALLS, sample[i] = malloc(SMALL));
    MEASURED("malloc of 1 MiB", LARGE_CALLS, fresh[i] = malloc(LARGE));
    shuffle(fresh, LARGE_CALLS);
    MEASURED("malloc_usable_size of them", LARGE_CALLS, sink += malloc_usable_size(fresh[i]));
    MEASURED("realloc of them, to half", LARGE_CALLS, fresh[i] = realloc(fresh[i], LARGE / 2));
    MEASURED("free of them", LARGE_CALLS, free(fresh[i]));
    MEASURED("malloc of 1.5 MiB, beside what was freed", LARGE_CALLS, fresh[i] = malloc(FARTHER));
    MEASURED("malloc of 129 MiB", VAST_CALLS, fresh[i] = malloc(VAST));
    MEASURED("free of the 129 MiB", VAST_CALLS, free(fresh[i]));
    return 0;
}
