/* calloc of many blocks, then free of all, in rounds: the first round gets memory no one has used, the later ones what
 * the round before has written. */
#include "block.h"
#include "moment.h"
#include "report.h"
#include "store.h"

enum touch { NONE, PAGE, ALL };
static const char *const touches[] = {"none", "page", "all", NULL};

static uint64_t size = 4096, live = 1000, operations = 1000000, touch = PAGE;

static const struct parameter parameters[] = {
    {"size", BYTES, &size, BLOCK_LEAST, UINT64_C(1) << 40, NULL, "of a block"},
    {"live", COUNT, &live, 1, 1u << 30, NULL, "blocks of a round"},
    {"operations", COUNT, &operations, 2, 1e15, NULL, "callocs and frees, rounded to whole rounds"},
    {"touch", CHOICE, &touch, 0, 0, touches, "what is read and written: nothing, a word of each 4 KiB, every word"},
};
static const struct program program = {"calloc-loop", "calloc of fresh and of recycled memory.", parameters,
                                       sizeof parameters / sizeof *parameters};

enum { PAGE_BYTES = 4096, CHECKED_BYTES_MOST = 64 << 20 };

static void **table;

/* Read, hold against zero and write one word of each `stride` bytes. */
ALWAYS_INLINE void use(const struct allocator *a, void *block, size_t bytes, size_t stride, uint64_t owner) {
    uint64_t *words = block;
    uint64_t seen = 0;
    for (size_t i = 0; i < bytes / sizeof *words; i += stride / sizeof *words) {
        seen |= words[i];
        words[i] = owner | 1;
    }
    if (UNLIKELY(seen != 0))
        a->not_zero(block, bytes);
}

ALWAYS_INLINE void one_round(const struct allocator *a, size_t bytes, enum touch what, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        void *block = a->calloc(1, bytes);
        if (UNLIKELY(block == NULL))
            out_of_memory(bytes);
        if (what != NONE) {
            use(a, block, bytes, what == ALL ? sizeof(uint64_t) : PAGE_BYTES, i);
            block_sign(block, bytes, i);
        }
        table[i] = block;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (what != NONE)
            (void)block_check(a, table[i], bytes, i);
        a->free(table[i]);
    }
}

struct outcome {
    struct measurement whole;
    double fresh_seconds;
};

ALWAYS_INLINE struct outcome run(const struct allocator *a, size_t bytes, uint64_t rounds) {
    const uint64_t from = moment_ns();
    one_round(a, bytes, touch, live);
    const uint64_t fresh = moment_ns();
    for (uint64_t round = 1; round < rounds; round++)
        one_round(a, bytes, touch, live);
    return (struct outcome){.whole = {2 * live * rounds, seconds_between(from, moment_ns()), 0},
                            .fresh_seconds = seconds_between(from, fresh)};
}

static __attribute__((noinline)) struct outcome run_measured(uint64_t rounds) { return run(&measured, size, rounds); }
static __attribute__((noinline)) struct outcome run_floor(size_t bytes, uint64_t rounds) {
    return run(&null_allocator, bytes, rounds);
}

/* Off the clock: blocks dirtied all over come back all zero. Returns the checksum of what was seen. */
static uint64_t check_all_words(void) {
    uint64_t count = CHECKED_BYTES_MOST / size;
    count = count < 1 ? 1 : count > live ? live : count;
    for (int round = 0; round < 2; round++)
        one_round(&measured, size, ALL, count);
    return checksum_add(block_mark(count, size), live);
}

static void report_scaled_floor(struct measurement whole, uint64_t rounds) {
    const size_t pool = null_pool_for(size, 0, 1), bytes = size < pool ? size : pool;
    null_open(pool > 2 * bytes ? pool : 2 * bytes);
    const struct measurement floor = run_floor(bytes, rounds < 8 ? rounds : rounds / 8).whole;
    null_close();
    const double calls = (double)floor.operations / (double)whole.operations;
    report_floor(floor, touch == NONE ? calls : calls * (double)bytes / (double)size);
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    table = store_take(live * sizeof *table);
    const uint64_t rounds = operations / 2 / live < 2 ? 2 : operations / 2 / live;
    struct outcome outcome = run_measured(rounds);
    outcome.whole.checksum = check_all_words();

    report_open(&program);
    report_measurement(outcome.whole);
    if (program_has_floor())
        report_scaled_floor(outcome.whole, rounds);
    else
        report_no_floor();
    report_real("fresh_ns", outcome.fresh_seconds * 1e9 / (double)live);
    report_real("recycled_ns", (outcome.whole.seconds - outcome.fresh_seconds) * 1e9 / (double)(live * (rounds - 1)));
    report_close();
    return 0;
}
