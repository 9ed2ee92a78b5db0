/* Six orders of malloc and free over a fixed number of live blocks: nanoseconds per pair.
 *
 *   lifo         N mallocs, then N frees, the youngest first
 *   fifo         N mallocs, then N frees, the oldest first
 *   random       N mallocs, then N frees in random order
 *   interleaved  one malloc, then the free of the block N mallocs older: the live count hovers
 *   mixed        as random, with sizes from 16 bytes to --size
 *   half-lived   of N mallocs every second block is freed in its round, the others only in the next
 *
 * The loop writes one word into each block, as any program would, and reads none. A round after the clock does the same
 * work with every block filled and checked; --verify does all rounds that way, before the clock. */
#include "block.h"
#include "crew.h"
#include "moment.h"
#include "random.h"
#include "report.h"
#include "store.h"

enum order { LIFO, FIFO, RANDOM, INTERLEAVED, MIXED, HALF_LIVED };
static const char *const orders[] = {"lifo", "fifo", "random", "interleaved", "mixed", "half-lived", NULL};

static uint64_t order = LIFO, size = 64, live = 10000, operations = 50000000, threads = 1;
static bool shuffle_inside, verify;

enum generator { OWN, RAND };
static const char *const generators[] = {"own", "rand", NULL};
static uint64_t generator = OWN;

static const struct parameter parameters[] = {
    {"order", CHOICE, &order, 0, 0, orders, "of the frees"},
    {"size", BYTES, &size, 8, 1 << 30, NULL, "of a block; the largest with --order mixed, which starts at 16"},
    {"live", COUNT, &live, 2, 1u << 30, NULL, "blocks of all threads together"},
    {"operations", COUNT, &operations, 2, 1e15, NULL, "mallocs and frees of all threads, rounded to whole rounds"},
    {"threads", COUNT, &threads, 1, CREW_MOST, NULL, "each with its share of the blocks and of the operations"},
    {"shuffle-inside", FLAG, &shuffle_inside, 0, 0, NULL, "draw the random order inside the timed loop (order random)"},
    {"draw", CHOICE, &generator, 0, 0, generators,
     "that order by: a generator of each thread's own, or rand() of libc"},
    {"verify", FLAG, &verify, 0, 0, NULL, "first do all of it untimed, each block filled and checked"},
};
static const struct program program = {"patterns", "malloc and free in a fixed order: nanoseconds per pair.",
                                       parameters, sizeof parameters / sizeof *parameters};

/* One thread's share. */
struct share {
    uint32_t count;     /* blocks of a round */
    void **blocks;      /* count, and as many again for the long-lived */
    uint32_t *releases; /* the order of the frees */
    uint32_t *sizes;    /* of each block, with order mixed */
    struct random random;
    uint64_t checksum;
    uint64_t first_round_ns;
};

static struct share *shares;
static uint64_t rounds;

/* Whether blocks are signed and checked, which the compiler knows of each of the loops. */
enum care { BARE, CHECKED };

ALWAYS_INLINE void *acquire(const struct allocator *a, enum care care, size_t bytes, uint64_t owner) {
    void *block = take(a, bytes);
    if (care == CHECKED)
        block_fill(block, bytes, owner);
    else
        block_put(block, owner);
    return block;
}

ALWAYS_INLINE void release(const struct allocator *a, enum care care, struct share *s, void *block, size_t bytes,
                           uint64_t owner) {
    if (care == CHECKED)
        s->checksum = checksum_add(s->checksum, block_check_fill(a, block, bytes, owner));
    a->free(block);
}

ALWAYS_INLINE void lifo(const struct allocator *a, enum care care, struct share *s) {
    for (uint32_t i = 0; i < s->count; i++)
        s->blocks[i] = acquire(a, care, size, i);
    for (uint32_t i = s->count; i-- > 0;)
        release(a, care, s, s->blocks[i], size, i);
}

ALWAYS_INLINE void fifo(const struct allocator *a, enum care care, struct share *s) {
    for (uint32_t i = 0; i < s->count; i++)
        s->blocks[i] = acquire(a, care, size, i);
    for (uint32_t i = 0; i < s->count; i++)
        release(a, care, s, s->blocks[i], size, i);
}

ALWAYS_INLINE void random_release(const struct allocator *a, enum care care, struct share *s) {
    for (uint32_t i = 0; i < s->count; i++)
        s->blocks[i] = acquire(a, care, size, i);
    for (uint32_t i = 0; i < s->count; i++)
        release(a, care, s, s->blocks[s->releases[i]], size, s->releases[i]);
}

/* 0 to below `bound`; libc's rand() is one generator for all threads, behind a lock. */
static inline uint32_t draw(struct share *s, enum generator by, uint32_t bound) {
    return by == RAND ? (uint32_t)rand() % bound : random_below(&s->random, bound);
}

/* As it was published: the order is drawn anew in each round, on the clock. */
ALWAYS_INLINE void shuffled_release(const struct allocator *a, enum care care, struct share *s, enum generator by) {
    for (uint32_t i = 0; i < s->count; i++) {
        s->blocks[i] = acquire(a, care, size, i);
        s->releases[i] = i;
    }
    for (uint32_t i = s->count; i-- > 1;) {
        const uint32_t j = draw(s, by, i + 1);
        const uint32_t owner = s->releases[i];
        void *block = s->blocks[i];
        s->releases[i] = s->releases[j];
        s->blocks[i] = s->blocks[j];
        s->releases[j] = owner;
        s->blocks[j] = block;
    }
    for (uint32_t i = 0; i < s->count; i++)
        release(a, care, s, s->blocks[i], size, s->releases[i]);
}

ALWAYS_INLINE void mixed(const struct allocator *a, enum care care, struct share *s) {
    for (uint32_t i = 0; i < s->count; i++)
        s->blocks[i] = acquire(a, care, s->sizes[i], i);
    for (uint32_t i = 0; i < s->count; i++) {
        const uint32_t at = s->releases[i];
        release(a, care, s, s->blocks[at], s->sizes[at], at);
    }
}

/* The window is full between rounds: the first round fills it, the end of the run empties it. */
ALWAYS_INLINE void interleaved(const struct allocator *a, enum care care, struct share *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        void *oldest = s->blocks[i];
        s->blocks[i] = acquire(a, care, size, i);
        if (oldest != NULL)
            release(a, care, s, oldest, size, i);
    }
}

/* blocks: the short-lived of this round, the long-lived of the even rounds, those of the odd rounds. */
ALWAYS_INLINE void half_lived(const struct allocator *a, enum care care, struct share *s, uint64_t round) {
    const uint32_t half = s->count / 2;
    void **young = s->blocks + half * (1 + round % 2), **old = s->blocks + half * (2 - round % 2);
    for (uint32_t i = 0; i < half; i++) {
        s->blocks[i] = acquire(a, care, size, i);
        young[i] = acquire(a, care, size, half + i);
    }
    for (uint32_t i = 0; i < half; i++)
        release(a, care, s, s->blocks[i], size, i);
    for (uint32_t i = 0; i < half; i++)
        if (old[i] != NULL)
            release(a, care, s, old[i], size, half + i);
}

ALWAYS_INLINE void empty_all(const struct allocator *a, enum care care, struct share *s, uint64_t after_rounds) {
    if (order == INTERLEAVED) {
        for (uint32_t i = 0; i < s->count; i++)
            release(a, care, s, s->blocks[i], size, i);
    } else if (order == HALF_LIVED) {
        const uint32_t half = s->count / 2;
        void **young = s->blocks + half * (1 + (after_rounds - 1) % 2);
        for (uint32_t i = 0; i < half; i++)
            release(a, care, s, young[i], size, half + i);
    }
}

ALWAYS_INLINE void one_round(const struct allocator *a, enum care care, struct share *s, uint64_t round) {
    switch ((enum order)order) {
    case LIFO:
        lifo(a, care, s);
        break;
    case FIFO:
        fifo(a, care, s);
        break;
    case RANDOM:
        if (shuffle_inside && generator == RAND)
            shuffled_release(a, care, s, RAND);
        else if (shuffle_inside)
            shuffled_release(a, care, s, OWN);
        else
            random_release(a, care, s);
        break;
    case INTERLEAVED:
        interleaved(a, care, s);
        break;
    case MIXED:
        mixed(a, care, s);
        break;
    case HALF_LIVED:
        half_lived(a, care, s, round);
        break;
    }
}

ALWAYS_INLINE void all_rounds(const struct allocator *a, enum care care, size_t member) {
    struct share *s = &shares[member];
    for (uint32_t i = 0; i < s->count + s->count / 2; i++)
        s->blocks[i] = NULL;
    const uint64_t from = moment_ns();
    for (uint64_t round = 0; round < rounds; round++) {
        one_round(a, care, s, round);
        if (round == 0)
            s->first_round_ns = moment_ns() - from;
    }
    empty_all(a, care, s, rounds);
}

static void work_timed(size_t member, void *unused) {
    (void)unused;
    all_rounds(&measured, BARE, member);
}

static void work_checked(size_t member, void *unused) {
    (void)unused;
    all_rounds(&measured, CHECKED, member);
}

static void work_floor(size_t member, void *unused) {
    (void)unused;
    all_rounds(&null_allocator, BARE, member);
}

static uint32_t share_of(size_t member) { return (uint32_t)(live / threads + (member < live % threads)); }

/* Everything random is drawn here, in the same way for every run over the shares. */
static void prepare(void) {
    for (size_t t = 0; t < threads; t++) {
        struct share *s = &shares[t];
        random_seed(&s->random, 1 + t);
        random_order(&s->random, s->releases, s->count);
        for (uint32_t i = 0; order == MIXED && i < s->count; i++)
            s->sizes[i] = random_between(&s->random, 16, size);
        s->checksum = 0;
    }
}

static struct measurement run(void (*work)(size_t, void *), uint64_t round_count, size_t null_pool) {
    prepare();
    rounds = round_count;
    const double seconds = crew_run((struct crew){threads, work, NULL, null_pool});
    struct measurement result = {0, seconds, 0};
    for (size_t t = 0; t < threads; t++) {
        const uint64_t per_round = order == HALF_LIVED ? shares[t].count / 2 * 2 : shares[t].count;
        result.operations += 2 * per_round * rounds;
        result.checksum += shares[t].checksum;
    }
    return result;
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (live / threads < 2)
        program_refuse("--live must be at least two blocks for each of --threads");
    if (order == MIXED && size < 16)
        program_refuse("--size must be at least 16 with --order mixed");
    if (shuffle_inside && order != RANDOM)
        program_refuse("--shuffle-inside goes with --order random");
    if (generator != OWN && !shuffle_inside)
        program_refuse("--draw rand goes with --shuffle-inside");

    shares = store_take(threads * sizeof *shares);
    for (size_t t = 0; t < threads; t++) {
        struct share *s = &shares[t];
        s->count = share_of(t);
        s->blocks = store_take((s->count + s->count / 2) * sizeof *s->blocks);
        s->releases = store_take(s->count * sizeof *s->releases);
        s->sizes = store_take((order == MIXED ? s->count : 1) * sizeof *s->sizes);
    }
    const uint64_t all = operations / 2 / live == 0 ? 1 : operations / 2 / live;

    if (verify)
        (void)run(work_checked, all, 0);
    struct measurement timed = run(work_timed, all, 0);
    const uint64_t first_round_ns = shares[0].first_round_ns;
    timed.checksum = run(work_checked, 1, 0).checksum;

    report_open(&program);
    report_measurement(timed);
    if (program_has_floor())
        report_floor_of(run(work_floor, all / 8 == 0 ? 1 : all / 8, null_pool_for(live / threads * size, 0, threads)),
                        timed);
    else
        report_no_floor();
    report_real("ns_per_pair", timed.seconds * 1e9 / ((double)timed.operations / 2));
    report_real("first_round_ns_per_pair", (double)first_round_ns / (double)shares[0].count);
    report_close();
    return 0;
}
