/* What an allocator gives back of memory that lies scattered between a few blocks in use, while the program sleeps and
 * calls nothing: the resident set before the frees, after them, and at every second of the sleep. */
#include "block.h"
#include "moment.h"
#include "random.h"
#include "report.h"
#include "resident.h"
#include "store.h"

enum { SECONDS_MOST = 3600 };
static uint64_t blocks = 4000000, size = 160, keep_per_mille = 5, seconds = 12;

static const struct parameter parameters[] = {
    {"blocks", COUNT, &blocks, 1, 1u << 30, NULL, "allocated before the frees"},
    {"size", BYTES, &size, BLOCK_LEAST, 1 << 30, NULL, "of a block"},
    {"keep-per-mille", COUNT, &keep_per_mille, 0, 1000, NULL, "of the blocks, scattered, stay allocated"},
    {"seconds", COUNT, &seconds, 0, SECONDS_MOST, NULL, "of sleep, with one look at the resident set in each"},
    {"idle", COUNT, &seconds, 0, SECONDS_MOST, NULL, "the same, under the name it has in every program"},
};
static const struct program program = {"idle-return", "What is given back while the program sleeps.", parameters,
                                       sizeof parameters / sizeof *parameters};

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    void **table = store_take(blocks * sizeof *table);
    uint32_t *order = store_take(blocks * sizeof *order);
    struct random random;
    random_seed(&random, 4);
    random_order(&random, order, blocks);
    const uint64_t kept = blocks * keep_per_mille / 1000, freed = blocks - kept;
    uint32_t *owners = store_take((kept + 1) * sizeof *owners);
    void **survivors = store_take((kept + 1) * sizeof *survivors);
    static uint64_t samples[SECONDS_MOST];
    struct measurement result = {.operations = blocks + freed};

    const uint64_t start = moment_ns();
    for (uint64_t i = 0; i < blocks; i++)
        table[i] = block_take(&measured, size, i);
    const uint64_t filled = moment_ns();
    const uint64_t resident_before = resident_kib();
    const uint64_t going = moment_ns();
    for (uint64_t i = 0; i < freed; i++)
        result.checksum = checksum_add(result.checksum, block_give(&measured, table[order[i]], size, order[i]));
    const uint64_t gone = moment_ns();
    result.seconds = seconds_between(start, filled) + seconds_between(going, gone);

    for (uint64_t i = 0; i < kept; i++) {
        owners[i] = order[freed + i];
        survivors[i] = table[owners[i]];
    }
    store_return(table, blocks * sizeof *table);
    store_return(order, blocks * sizeof *order);
    const uint64_t resident_after = resident_kib(), asleep = moment_ns();
    for (uint64_t second = 0; second < seconds; second++) {
        sleep_until(asleep + (second + 1) * 1000000000u);
        samples[second] = resident_kib();
    }
    for (uint64_t i = 0; i < kept; i++)
        result.checksum = checksum_add(result.checksum, block_give(&measured, survivors[i], size, owners[i]));

    report_open(&program);
    report_measurement(result);
    report_no_floor();
    report_count("live_kib_before", blocks * size / 1024);
    report_count("live_kib_after", kept * size / 1024);
    report_count("rss_kib_before", resident_before);
    report_count("rss_kib_after", resident_after);
    report_counts("rss_kib_idle", samples, seconds);
    report_close();
    return 0;
}
