/* Many threads that allocate, one of which goes on at a time: what is counted depends neither on this machine's CPUs nor on its clock.
 *
 *   lockstep PATTERN THREADS WARM CALLS [HOLDS]
 *
 * PATTERN: churn (each thread its own blocks), produce (one of two allocates, the other frees), hand-over (every fourth block that a thread
 * frees was another's). WARM, CALLS: of malloc and free by each thread, to warm up and counted. HOLDS: see counting_begin. With a
 * library that counts, what it counted goes to standard output. */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    THREADS_MOST = 64,
    SLOTS = 1000, /* a thread's blocks, about half of them live */
    TURN = 4, /* steps of a thread before another goes on */
    CALL_NS = 100, /* between two calls of a thread, on a clock of the program's own */
    MAILBOX = 512, /* blocks between a producer and its consumer */
    ANOTHERS = 4, /* one slot in so many is another thread's */
};

void counting_begin(const char *holds) __attribute__((weak));
void counting_turn(unsigned thread, uint32_t call) __attribute__((weak));
void counting_end(FILE *out) __attribute__((weak));

struct thread {
    pthread_t thread;
    sem_t turn;
    uint64_t random;
    uint32_t calls;
    bool done;
    unsigned first, count; /* of the mailbox, that of a producer */
    void *slots[SLOTS];
    void *mailbox[MAILBOX];
};

static struct thread *threads;
static unsigned count;
static uint32_t most;
static uint64_t steps; /* of all threads */
static uint64_t turns = 88172645463325252; /* who is next, by chance */
static void (*pattern)(unsigned self);
static sem_t all_done;

/* The library asks for the time too: it finds this one first. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    (void)clock;
    uint64_t ns = 1000000000 + steps * CALL_NS / count;
    now->tv_sec = (time_t)(ns / 1000000000);
    now->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(2685821657736338717) >> 16;
}

/* Mostly small; one in a thousand from 64 to 256 KiB, which are spans of their own. */
static size_t any_size(uint64_t random) {
    unsigned kind = (unsigned)(random % 1000);
    size_t spread = (size_t)(random >> 16);
    if (kind < 900) {
        return 1 + spread % 512;
    }
    if (kind < 995) {
        return 512 + spread % 7680;
    }
    return kind < 999 ? 8192 + spread % 24576 : 65536 + spread % 196608;
}

static void begin_call(unsigned self) {
    steps++;
    threads[self].calls++;
    if (counting_turn != NULL) {
        counting_turn(self, threads[self].calls);
    }
}

static void *take(unsigned self) {
    begin_call(self);
    char *block = malloc(any_size(next(&threads[self].random)));
    if (block == NULL) {
        abort();
    }
    *block = 1;
    return block;
}

static void give(unsigned self, void *block) {
    begin_call(self);
    free(block);
}

static void exchange(unsigned self, void **slot) {
    if (*slot != NULL) {
        give(self, *slot);
        *slot = NULL;
    } else {
        *slot = take(self);
    }
}

static void churn(unsigned self) { exchange(self, &threads[self].slots[next(&threads[self].random) % SLOTS]); }

static void hand_over(unsigned self) {
    uint64_t random = next(&threads[self].random);
    unsigned whose = random % ANOTHERS == 0 ? (unsigned)(random >> 8) % count : self;
    exchange(self, &threads[whose].slots[(random >> 24) % SLOTS]);
}

/* Even threads fill their mailboxes, odd ones empty the one before theirs; one alone does both. */
static void produce(unsigned self) {
    bool alone = count == 1;
    struct thread *producer = &threads[self & ~1u];
    bool gives = alone ? next(&producer->random) % 2 == 0 : self % 2 == 1;
    if (!gives && producer->count < MAILBOX) {
        producer->mailbox[(producer->first + producer->count++) % MAILBOX] = take(self);
    } else if (gives && producer->count > 0) {
        void *block = producer->mailbox[producer->first];
        producer->first = (producer->first + 1) % MAILBOX;
        producer->count--;
        give(self, block);
    }
}

static bool all_have(uint32_t calls) {
    for (unsigned i = 0; i < count; i++) {
        if (threads[i].calls < calls) {
            return false;
        }
    }
    return true;
}

/* Any thread but those that have had their calls, as far as there is one. */
static unsigned choose(void) {
    unsigned first = (unsigned)(next(&turns) % count);
    for (unsigned i = 0; i < count; i++) {
        unsigned chosen = (first + i) % count;
        if (threads[chosen].calls < most) {
            return chosen;
        }
    }
    return count;
}

static void *run(void *argument) {
    unsigned self = (unsigned)(uintptr_t)argument;
    for (;;) {
        sem_wait(&threads[self].turn);
        if (threads[self].done) {
            return NULL;
        }
        for (unsigned i = 0; i < TURN; i++) {
            pattern(self);
        }
        unsigned chosen = choose();
        sem_post(chosen == count ? &all_done : &threads[chosen].turn);
    }
}

/* All threads go on until each has made so many calls. */
static void play(uint32_t calls) {
    most = calls;
    if (!all_have(calls)) {
        sem_post(&threads[choose()].turn);
        sem_wait(&all_done);
    }
}

int main(int argc, char **argv) {
    if (argc < 5) {
        (void)fprintf(stderr, "usage: lockstep PATTERN THREADS WARM CALLS [HOLDS]\n");
        return 2;
    }
    count = (unsigned)strtoul(argv[2], NULL, 10);
    uint32_t warm = (uint32_t)strtoul(argv[3], NULL, 10);
    uint32_t calls = (uint32_t)strtoul(argv[4], NULL, 10);
    pattern = strcmp(argv[1], "churn") == 0 ? churn : strcmp(argv[1], "produce") == 0 ? produce : hand_over;
    if (count < 1 || count > THREADS_MOST || (pattern == produce && count % 2 != 0 && count != 1)) {
        (void)fprintf(stderr, "lockstep: 1 to %d threads, an even number to produce\n", THREADS_MOST);
        return 2;
    }
    threads =
        mmap(NULL, sizeof(struct thread) * THREADS_MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (threads == MAP_FAILED || sem_init(&all_done, 0, 0) != 0) {
        return 2;
    }
    for (unsigned i = 0; i < count; i++) {
        threads[i].random = UINT64_C(0x9E3779B97F4A7C15) * (i + 1);
        if (sem_init(&threads[i].turn, 0, 0) != 0 ||
            pthread_create(&threads[i].thread, NULL, run, (void *)(uintptr_t)i) != 0) {
            return 2;
        }
    }
    play(warm);
    if (counting_begin != NULL) {
        counting_begin(argc > 5 ? argv[5] : NULL);
    }
    uint64_t before = steps;
    play(warm + calls);
    uint64_t counted = steps - before;
    if (counting_end != NULL) {
        counting_end(stdout);
    }
    (void)printf("calls\t%lu\n", counted);
    for (unsigned i = 0; i < count; i++) {
        threads[i].done = true;
        sem_post(&threads[i].turn);
        pthread_join(threads[i].thread, NULL);
    }
    return 0;
}
