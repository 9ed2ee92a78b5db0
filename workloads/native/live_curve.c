/* The cost of a free with a malloc by the number of blocks alive, from a hundred up by powers of ten: random ones of them
 * are replaced. Lists, one entry per number. */
#include "block.h"
#include "moment.h"
#include "random.h"
#include "report.h"
#include "store.h"

enum { FIRST = 100, POINTS_MOST = 8 };

static uint64_t size = 64, most = 1000000, pairs = 1000000;

static const struct parameter parameters[] = {
    {"size", BYTES, &size, BLOCK_LEAST, 1 << 24, NULL, "of a block"},
    {"most", COUNT, &most, FIRST, 1e9, NULL, "blocks alive at the last point, at most"},
    {"pairs", COUNT, &pairs, 1, 1e9, NULL, "of free and malloc at each point"},
};
static const struct program program = {"live-curve", "The cost of a pair by the number of live blocks.", parameters,
                                       sizeof parameters / sizeof *parameters};

static void **table;
static uint32_t *picks;

/* Seconds of the replacements; filling and emptying the table is off the clock. */
ALWAYS_INLINE double point(const struct allocator *a, uint64_t live, uint64_t count, uint64_t *checksum) {
    for (uint64_t i = 0; i < live; i++)
        table[i] = block_take(a, size, i);
    const uint64_t from = moment_ns();
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t at = picks[i];
        *checksum = checksum_add(*checksum, block_give(a, table[at], size, at));
        table[at] = block_take(a, size, at);
    }
    const double seconds = seconds_between(from, moment_ns());
    for (uint64_t i = 0; i < live; i++)
        (void)block_give(a, table[i], size, i);
    return seconds;
}

static __attribute__((noinline)) double point_measured(uint64_t live, uint64_t count, uint64_t *checksum) {
    return point(&measured, live, count, checksum);
}
static __attribute__((noinline)) double point_floor(uint64_t live, uint64_t count, uint64_t *checksum) {
    return point(&null_allocator, live, count, checksum);
}

static void draw(uint64_t live) {
    struct random random;
    random_seed(&random, 13);
    for (uint64_t i = 0; i < pairs; i++)
        picks[i] = random_below(&random, live);
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    table = store_take(most * sizeof *table);
    picks = store_take(pairs * sizeof *picks);
    uint64_t lives[POINTS_MOST];
    double ns[POINTS_MOST], floor_ns[POINTS_MOST];
    size_t count = 0;
    struct measurement result = {0}, floor = {0};
    for (uint64_t live = FIRST; live <= most && count < POINTS_MOST; live *= 10, count++) {
        draw(live);
        const double seconds = point_measured(live, pairs, &result.checksum);
        lives[count] = live;
        ns[count] = seconds * 1e9 / (double)pairs;
        result.seconds += seconds;
        result.operations += 2 * pairs;
    }
    const uint64_t few = pairs < 8 ? pairs : pairs / 8;
    for (size_t i = 0; program_has_floor() && i < count; i++) {
        draw(lives[i]);
        null_open(null_pool_for(lives[i] * size, size, 1));
        const double seconds = point_floor(lives[i], few, &floor.checksum);
        null_close();
        floor_ns[i] = seconds * 1e9 / (double)few;
        floor.seconds += seconds;
        floor.operations += 2 * few;
    }

    report_open(&program);
    report_measurement(result);
    if (program_has_floor()) {
        report_floor_of(floor, result);
        report_reals("floor_ns", floor_ns, count);
    } else {
        report_no_floor();
    }
    report_counts("live", lives, count);
    report_reals("pair_ns", ns, count);
    report_close();
    return 0;
}
