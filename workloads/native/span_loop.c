/* malloc, write, free of one large block, over and over: what an allocator keeps between the rounds, seen in the page
 * faults of the first round and of all later ones, and what it gives back when the program then does nothing. */
#include "block.h"
#include "moment.h"
#include "report.h"
#include "resident.h"

#include <string.h>

enum touch { NONE, PAGE, ALL };
static const char *const touches[] = {"none", "page", "all", NULL};

static uint64_t size = 1 << 20, rounds = 12000, touch = ALL;
static double idle = 0;

static const struct parameter parameters[] = {
    {"size", BYTES, &size, BLOCK_LEAST, UINT64_C(1) << 40, NULL, "of the block"},
    {"rounds", COUNT, &rounds, 2, 1e12, NULL, "of malloc, write, free"},
    {"touch", CHOICE, &touch, 0, 0, touches, "what is written: nothing, a word of each 4 KiB, every byte"},
    {"idle", REAL, &idle, 0, 86400, NULL, "seconds to sleep after the last free, before rss_kib_idle"},
};
static const struct program program = {"span-loop", "malloc, write and free one large block, over and over.",
                                       parameters, sizeof parameters / sizeof *parameters};

ALWAYS_INLINE void write_block(unsigned char *block, size_t bytes, uint64_t round) {
    if (touch == ALL)
        memset(block, (int)(round & 0xFF), bytes);
    for (size_t at = 0; touch == PAGE && at + sizeof(uint64_t) <= bytes; at += 4096)
        block_put(block + at, round);
}

/* With --touch none the block stays as it came, so there are no marks to check. */
ALWAYS_INLINE uint64_t one_round(const struct allocator *a, size_t bytes, uint64_t round) {
    unsigned char *block = take(a, bytes);
    if (touch == NONE) {
        a->free(block);
        return block_mark(round, bytes);
    }
    write_block(block, bytes, round);
    block_sign(block, bytes, round);
    return block_give(a, block, bytes, round);
}

struct outcome {
    struct measurement whole;
    uint64_t first_faults, later_faults;
    double first_seconds;
};

ALWAYS_INLINE struct outcome run(const struct allocator *a, size_t bytes, uint64_t count) {
    const uint64_t faults_before = minor_faults();
    const uint64_t from = moment_ns();
    uint64_t checksum = checksum_add(0, one_round(a, bytes, 0));
    const uint64_t first = moment_ns();
    const uint64_t faults_first = minor_faults();
    const uint64_t again = moment_ns();
    for (uint64_t round = 1; round < count; round++)
        checksum = checksum_add(checksum, one_round(a, bytes, round));
    const uint64_t to = moment_ns();
    return (struct outcome){
        .whole = {2 * count, seconds_between(from, first) + seconds_between(again, to), checksum},
        .first_faults = faults_first - faults_before,
        .later_faults = minor_faults() - faults_first,
        .first_seconds = seconds_between(from, first),
    };
}

static __attribute__((noinline)) struct outcome run_measured(void) { return run(&measured, size, rounds); }
static __attribute__((noinline)) struct outcome run_floor(size_t bytes, uint64_t count) {
    return run(&null_allocator, bytes, count);
}

/* Blocks too large for the null allocator's pool are cut, and the floor told by bytes written instead of by calls. */
static void report_scaled_floor(struct measurement whole) {
    const size_t pool = null_pool_for(size, 0, 1), bytes = size < pool ? size : pool;
    const uint64_t count = rounds < 16 ? rounds : rounds / 8;
    null_open(pool);
    const struct measurement floor = run_floor(bytes, count).whole;
    null_close();
    const double calls = (double)floor.operations / (double)whole.operations;
    report_floor(floor, touch == NONE ? calls : calls * (double)bytes / (double)size);
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    (void)resident_kib(); /* its own first faults are not the loop's */
    const struct outcome outcome = run_measured();
    const uint64_t resident_end = resident_kib();
    if (idle > 0)
        sleep_until(moment_ns() + (uint64_t)(idle * 1e9));
    const uint64_t resident_idle = resident_kib();

    report_open(&program);
    report_measurement(outcome.whole);
    if (program_has_floor())
        report_scaled_floor(outcome.whole);
    else
        report_no_floor();
    report_real("ns_per_round", outcome.whole.seconds * 1e9 / (double)rounds);
    report_real("first_round_ns", outcome.first_seconds * 1e9);
    report_count("first_round_faults", outcome.first_faults);
    report_count("later_faults", outcome.later_faults);
    report_count("rss_kib_end", resident_end);
    if (idle > 0)
        report_count("rss_kib_idle", resident_idle);
    report_close();
    return 0;
}
