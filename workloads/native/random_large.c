/* A few slots of many megabytes each: a random one is replaced and wholly written, over and over. */
#include "block.h"
#include "moment.h"
#include "random.h"
#include "report.h"
#include "store.h"

#include <string.h>

static uint64_t slots = 20, least = 5 << 20, most = 25 << 20, iterations = 150;

static const struct parameter parameters[] = {
    {"slots", COUNT, &slots, 1, 1 << 20, NULL, "blocks alive at a time"},
    {"least", BYTES, &least, 4096, UINT64_C(1) << 40, NULL, "size of a block"},
    {"most", BYTES, &most, 4096, UINT64_C(1) << 40, NULL, "size of a block; a multiple of 4096 or rounded down to one"},
    {"iterations", COUNT, &iterations, 1, 1e9, NULL, "replacements"},
};
static const struct program program = {"random-large",
                                       "Blocks of many megabytes, replaced at random and wholly written.", parameters,
                                       sizeof parameters / sizeof *parameters};

/* Drawn before the clock: what each iteration does. */
struct step {
    uint32_t slot, pages;
};

struct slot {
    unsigned char *block;
    size_t bytes;
    uint64_t owner;
};

/* `shrink`: blocks are that many times smaller, for the floor. */
ALWAYS_INLINE struct measurement run(const struct allocator *a, const struct step *steps, struct slot *table,
                                     size_t shrink) {
    struct measurement result = {0};
    const uint64_t from = moment_ns();
    for (uint64_t i = 0; i < iterations; i++) {
        struct slot *slot = &table[steps[i].slot];
        if (slot->block != NULL) {
            result.checksum = checksum_add(result.checksum, block_give(a, slot->block, slot->bytes, slot->owner));
            result.operations++;
        }
        const size_t bytes = (size_t)steps[i].pages * 4096 / shrink;
        *slot = (struct slot){take(a, bytes), bytes, i};
        memset(slot->block, (int)(i & 0xFF), bytes);
        block_sign(slot->block, bytes, i);
        result.operations++;
    }
    for (uint64_t i = 0; i < slots; i++) {
        if (table[i].block != NULL) {
            result.checksum =
                checksum_add(result.checksum, block_give(a, table[i].block, table[i].bytes, table[i].owner));
            result.operations++;
        }
        table[i].block = NULL;
    }
    result.seconds = seconds_between(from, moment_ns());
    return result;
}

static __attribute__((noinline)) struct measurement run_measured(const struct step *steps, struct slot *table) {
    return run(&measured, steps, table, 1);
}
static __attribute__((noinline)) struct measurement run_floor(const struct step *steps, struct slot *table,
                                                              size_t shrink) {
    return run(&null_allocator, steps, table, shrink);
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (least > most)
        program_refuse("--least is above --most");
    struct step *steps = store_take(iterations * sizeof *steps);
    struct slot *table = store_take(slots * sizeof *table);
    struct random random;
    random_seed(&random, 3);
    for (uint64_t i = 0; i < iterations; i++)
        steps[i] = (struct step){random_below(&random, slots), random_between(&random, least / 4096, most / 4096)};
    const struct measurement result = run_measured(steps, table);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor()) {
        const size_t pool = null_pool_for(slots * most, 0, 1);
        const size_t shrink = most / pool + 1;
        null_open(pool);
        report_floor(run_floor(steps, table, shrink), 1 / (double)shrink);
        null_close();
    } else {
        report_no_floor();
    }
    report_real("ms_per_replacement", result.seconds * 1e3 / (double)iterations);
    report_close();
    return 0;
}
