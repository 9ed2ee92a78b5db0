/* How long a thread is kept by its allocator, in programs that fill and drop memory in phases.
 *
 *   stall free BLOCK-BYTES [MIB]    the longest call of free
 *   stall tail BLOCK-BYTES [MIB]    prints the microseconds that 99.99 % of the calls of free stay below
 *   stall births                    a thread started, and its whole life, while memory is given back and else
 *   stall forks                     a fork, likewise
 *
 * Time is the clock's, less what the thread stood ready and got no processor: who waits for a lock, or for the kernel's
 * work, waits by the allocator's making, who waits behind another program does not. The kernel tells it in
 * /proc/thread-self/schedstat. The clock has a bound of its own, of twice as much, or of twice what the machine
 * does meanwhile to a loop that calls nobody. A phase may always be disturbed: of nine the median counts. */
#include <errno.h>

#include "hazard.h"

enum { MIB = 512, PHASES = 9, REST_MS = 1500, MADE_MOST_NS = 1000000, CLOCK_MOST_NS = 2000000 };
enum { TAIL_CALLS = 65536 };
/* FALL_KIB less are resident: somebody is giving memory back. */
enum {
    BESIDE_MIB = 256,
    BESIDE_BLOCK = 65536,
    FALL_KIB = 512,
    DEEDS_MOST = 1 << 16,
    DEEDS_MS = 1500,
    DEEDS_ELSE = 8,
    LOOK_MS = 40,
    TIMES = 2
};

static size_t size, blocks;
static void **block;

/* --- time ------------------------------------------------------------------------------------------------------ */

struct time {
    uint64_t made, clock;
};

struct phase {
    struct time longest;
    uint64_t machine; /* the longest gap in a loop that calls nobody, as long as the calls together */
};

static int open_delay(void) {
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        expect_skip("the kernel does not tell how long a thread stood ready");
    }
    return file;
}

/* The second number of a file of /proc. */
static uint64_t second_number(int file) {
    char text[128];
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    EXPECT(length > 0, "a file of /proc cannot be read: errno %d", errno);
    text[length] = '\0';
    char *second = strchr(text, ' ');
    return second == NULL ? 0 : strtoull(second, NULL, 10);
}

/* Nanoseconds that the thread which opened /proc/thread-self/schedstat has stood ready so far. */
static uint64_t delay_ns(int file) { return second_number(file); }

static struct time less(uint64_t clock, uint64_t delay) {
    return (struct time){.made = delay < clock ? clock - delay : 0, .clock = clock};
}

static int ascending(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

static uint64_t median(uint64_t *values, size_t count) {
    qsort(values, count, sizeof *values, ascending);
    return values[count / 2];
}

static uint64_t larger(uint64_t one, uint64_t other) { return one > other ? one : other; }

static void *mapped(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(memory != MAP_FAILED, "no mapping");
    memset(memory, 0, bytes); /* no fault of its own later */
    return memory;
}

/* --- free ------------------------------------------------------------------------------------------------------ */

static void fill(void) {
    for (size_t i = 0; i < blocks; i++) {
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, size);
    }
}

static uint64_t longest_gap(uint64_t whole) {
    uint64_t longest = 0, last = nanoseconds();
    for (uint64_t end = last + whole; last < end;) {
        uint64_t now = nanoseconds();
        longest = larger(longest, now - last);
        last = now;
    }
    return longest;
}

static struct phase phase_of_frees(int delays) {
    struct time longest = {0};
    fill();
    uint64_t delay = delay_ns(delays), begun = nanoseconds(), rested = 0;
    for (size_t i = 0; i < blocks; i++) {
        uint64_t start = nanoseconds();
        free(block[i]);
        uint64_t clock = nanoseconds() - start, before = delay;
        delay = delay_ns(delays);
        struct time taken = less(clock, delay - before);
        longest.made = larger(longest.made, taken.made);
        longest.clock = larger(longest.clock, taken.clock);
        if (i == blocks / 2) {
            rested = nanoseconds();
            tasks_sleep(REST_MS);
            rested = nanoseconds() - rested;
            delay = delay_ns(delays);
        }
    }
    return (struct phase){longest, longest_gap(nanoseconds() - begun - rested)};
}

static bool is_sound(struct phase phase) {
    return phase.longest.made <= MADE_MOST_NS && phase.longest.clock <= larger(CLOCK_MOST_NS, TIMES * phase.machine);
}

/* Once more phases than half are on one side of the bounds, so is the median. */
static void judge_free(void) {
    int delays = open_delay();
    uint64_t made[PHASES], clock[PHASES], machine[PHASES];
    size_t phases = 0, sound = 0, enough = PHASES / 2 + 1;
    while (phases < PHASES && sound < enough && phases - sound < enough) {
        struct phase phase = phase_of_frees(delays);
        made[phases] = phase.longest.made;
        clock[phases] = phase.longest.clock;
        machine[phases++] = phase.machine;
        sound += is_sound(phase);
    }
    char said[200];
    uint64_t of_machine = median(machine, phases);
    snprintf(said, sizeof said,
             "the longest free took %.2f ms (limit %.2f), %.2f by the clock (limit %.2f; a loop of nothing %.2f); "
             "%zu of %zu phases hold",
             (double)median(made, phases) / 1e6, MADE_MOST_NS / 1e6, (double)median(clock, phases) / 1e6,
             (double)larger(CLOCK_MOST_NS, TIMES * of_machine) / 1e6, (double)of_machine / 1e6, sound, phases);
    EXPECT(sound >= enough, "%s", said);
    printf("%s\n", said);
}

static void tell_tail(void) {
    size_t phases = (TAIL_CALLS + blocks - 1) / blocks, calls = 0;
    uint64_t *taken = mapped(phases * blocks * sizeof *taken);
    int delays = open_delay();
    for (size_t phase = 0; phase < phases; phase++) {
        fill();
        uint64_t delay = delay_ns(delays);
        for (size_t i = 0; i < blocks; i++) {
            uint64_t start = nanoseconds();
            free(block[i]);
            uint64_t clock = nanoseconds() - start, before = delay;
            delay = delay_ns(delays);
            taken[calls++] = less(clock, delay - before).made;
            if (i == blocks / 2 && phase == 0) {
                tasks_sleep(REST_MS);
                delay = delay_ns(delays);
            }
        }
    }
    qsort(taken, calls, sizeof *taken, ascending);
    printf("%.1f\n", (double)taken[calls - 1 - calls / 10000] / 1000);
}

/* --- beside what is given back ------------------------------------------------------------------------------------ */

static size_t resident_pages(int statm) { return second_number(statm); }

struct deed {
    struct time birth, whole;
};

static void *live_shortly(void *delay) {
    free(unseen(malloc(100)));
    int delays = open_delay();
    *(uint64_t *)delay = delay_ns(delays);
    close(delays);
    return NULL;
}

static struct deed give_birth(int delays) {
    pthread_t thread;
    uint64_t of_child = 0, before = delay_ns(delays), start = nanoseconds();
    EXPECT(pthread_create(&thread, NULL, live_shortly, &of_child) == 0, "no thread");
    uint64_t born = nanoseconds() - start, delay_of_birth = delay_ns(delays) - before;
    pthread_join(thread, NULL);
    uint64_t ended = nanoseconds() - start;
    return (struct deed){less(born, delay_of_birth), less(ended, delay_ns(delays) - before + of_child)};
}

static struct deed fork_once(int delays) {
    uint64_t before = delay_ns(delays), start = nanoseconds();
    pid_t process = fork();
    EXPECT(process >= 0, "fork failed");
    if (process == 0) {
        _exit(0);
    }
    uint64_t taken = nanoseconds() - start, delay = delay_ns(delays) - before;
    EXPECT(waitpid(process, NULL, 0) == process, "waitpid failed");
    return (struct deed){less(taken, delay), less(taken, delay)};
}

/* Deeds with memory given back meanwhile, and deeds while nothing is. */
struct side {
    uint64_t births[DEEDS_MOST], wholes[DEEDS_MOST], longest[PHASES];
    size_t count, cycles;
};

static void note(struct side *side, struct deed deed, uint64_t *longest) {
    if (side->count < DEEDS_MOST) {
        side->births[side->count] = deed.birth.made;
        side->wholes[side->count++] = deed.whole.made;
    }
    *longest = larger(*longest, larger(deed.birth.made, deed.whole.made));
}

/* Some deeds when all is alive and nothing can be given back; then half is freed, and deeds follow as soon as memory is seen to go. */
static void cycle(struct deed (*done)(int), int delays, int statm, struct side *during, struct side *without) {
    uint64_t longest = 0, longest_else = 0;
    fill();
    for (size_t i = 0; i < DEEDS_ELSE; i++) {
        /* As cold as those that wait for memory to go. */
        for (long end = tasks_clock() + LOOK_MS; tasks_clock() < end;) {
            (void)resident_pages(statm);
        }
        note(without, done(delays), &longest_else);
    }
    for (size_t i = 0; i < blocks; i += 2) {
        free(block[i]);
    }
    size_t last = resident_pages(statm);
    for (long end = tasks_clock() + DEEDS_MS; tasks_clock() < end;) {
        size_t now = resident_pages(statm);
        if (now + FALL_KIB / 4 <= last) {
            note(during, done(delays), &longest);
            last = resident_pages(statm);
        } else {
            last = larger(now, last);
        }
    }
    for (size_t i = 1; i < blocks; i += 2) {
        free(block[i]);
    }
    if (longest != 0) {
        without->longest[without->cycles++] = longest_else;
        during->longest[during->cycles++] = longest;
    }
}

static double microseconds(uint64_t *values, size_t count) { return (double)median(values, count) / 1000; }

static void judge_beside(const char *what, struct deed (*done)(int)) {
    int delays = open_delay(), statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    struct side *during = mapped(sizeof *during), *without = mapped(sizeof *without);
    for (size_t i = 0; i < PHASES; i++) {
        cycle(done, delays, statm, during, without);
    }
    if (during->count == 0) {
        printf("%s: nothing is given back beside them\n", what);
        return;
    }
    double birth = microseconds(during->births, during->count),
           else_birth = microseconds(without->births, without->count),
           whole = microseconds(during->wholes, during->count),
           else_whole = microseconds(without->wholes, without->count),
           most = microseconds(during->longest, during->cycles),
           else_most = microseconds(without->longest, without->cycles);
    char said[200];
    snprintf(said, sizeof said,
             "%s take %.0f us beside a return (limit %.0f, else %.0f); with their ends %.0f (limit %.0f, else %.0f); "
             "the longest %.0f (limit %.0f, else %.0f)",
             what, birth, TIMES * else_birth, else_birth, whole, TIMES * else_whole, else_whole, most,
             MADE_MOST_NS / 1e3 + else_most, else_most);
    EXPECT(birth <= TIMES * else_birth && whole <= TIMES * else_whole && most * 1000 <= MADE_MOST_NS + 1000 * else_most,
           "%s", said);
    printf("%s (%zu)\n", said, during->count);
}

static void open_blocks(size_t bytes, size_t mib) {
    size = bytes;
    blocks = (mib << 20) / size;
    block = mapped(blocks * sizeof *block);
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count >= 2, "usage: stall free|tail BLOCK-BYTES [MIB] | births | forks");
    bool free_alone = strcmp(arguments[1], "free") == 0;
    if (free_alone || strcmp(arguments[1], "tail") == 0) {
        EXPECT(count >= 3, "usage: stall free|tail BLOCK-BYTES [MIB]");
        open_blocks(strtoul(arguments[2], NULL, 10), count > 3 ? strtoul(arguments[3], NULL, 10) : MIB);
        (free_alone ? judge_free : tell_tail)();
        return 0;
    }
    open_blocks(BESIDE_BLOCK, BESIDE_MIB);
    bool births = strcmp(arguments[1], "births") == 0;
    judge_beside(births ? "births" : "forks", births ? give_birth : fork_once);
    return 0;
}
