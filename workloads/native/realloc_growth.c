/* Blocks that grow by realloc, by a factor or by a step, as buffers and vectors do; the new part of each is wholly
 * written. With several blocks they grow in turn, so that each finds another one behind it. */
#include "block.h"
#include "moment.h"
#include "report.h"
#include "store.h"

#include <string.h>

enum { BLOCKS_MOST = 1 << 20 };

static uint64_t from = 100 << 10, to = 100 << 20, step = 0, blocks = 1, rounds = 4;
static double factor = 1.125;

static const struct parameter parameters[] = {
    {"from", BYTES, &from, BLOCK_LEAST, UINT64_C(1) << 40, NULL, "size at first"},
    {"to", BYTES, &to, BLOCK_LEAST, UINT64_C(1) << 40, NULL, "size that ends the growth"},
    {"factor", REAL, &factor, 1.000001, 1000, NULL, "from one size to the next"},
    {"step", BYTES, &step, 0, UINT64_C(1) << 40, NULL, "from one size to the next instead of --factor; 0 for --factor"},
    {"blocks", COUNT, &blocks, 1, BLOCKS_MOST, NULL, "that grow in turn"},
    {"rounds", COUNT, &rounds, 1, 1e12, NULL, "of growing them and freeing them"},
};
static const struct program program = {"realloc-growth", "Blocks that grow by realloc.", parameters,
                                       sizeof parameters / sizeof *parameters};

/* What one run does; the floor grows smaller blocks by the same factor or step. */
struct growth {
    size_t from, to;
    uint64_t rounds;
};

static void **table;

static size_t next_size(size_t size, size_t end) {
    const size_t grown = step != 0 ? size + step : (size_t)((double)size * factor);
    const size_t larger = grown > size ? grown : size + 1; /* a factor on a few bytes may round to nothing */
    return larger < end ? larger : end;
}

ALWAYS_INLINE void extend(const struct allocator *a, uint64_t owner, size_t size, size_t larger) {
    (void)block_check(a, table[owner], size, owner);
    void *block = a->realloc(table[owner], larger);
    if (UNLIKELY(block == NULL))
        out_of_memory(larger);
    table[owner] = block;
    (void)block_check(a, block, size, owner); /* the contents came along */
    memset((unsigned char *)block + size, (int)(owner & 0xFF), larger - size);
    block_sign(block, larger, owner);
}

ALWAYS_INLINE struct measurement run(const struct allocator *a, struct growth growth) {
    struct measurement result = {0};
    const uint64_t start = moment_ns();
    for (uint64_t round = 0; round < growth.rounds; round++) {
        size_t size = growth.from;
        for (uint64_t i = 0; i < blocks; i++) {
            table[i] = take(a, size);
            memset(table[i], (int)(i & 0xFF), size);
            block_sign(table[i], size, i);
        }
        result.operations += blocks;
        while (size < growth.to) {
            const size_t larger = next_size(size, growth.to);
            for (uint64_t i = 0; i < blocks; i++)
                extend(a, i, size, larger);
            size = larger;
            result.operations += blocks;
        }
        for (uint64_t i = 0; i < blocks; i++)
            result.checksum = checksum_add(result.checksum, block_give(a, table[i], size, i));
        result.operations += blocks;
    }
    result.seconds = seconds_between(start, moment_ns());
    return result;
}

static __attribute__((noinline)) struct measurement run_measured(struct growth growth) {
    return run(&measured, growth);
}
static __attribute__((noinline)) struct measurement run_floor(struct growth growth) {
    return run(&null_allocator, growth);
}

/* Blocks that do not fit the null allocator's pool are cut, and the floor told by bytes written instead of by calls. */
static void report_scaled_floor(struct measurement result) {
    const size_t pool = null_pool_for(2 * to, 0, 1), most = pool / 2;
    const bool fits = to <= most;
    const double cut = fits ? 1 : (double)most / (double)to;
    struct growth growth = {(size_t)((double)from * cut), (size_t)((double)to * cut), rounds < 8 ? rounds : rounds / 8};
    if (growth.from < BLOCK_LEAST)
        growth.from = BLOCK_LEAST;
    null_open(pool);
    const struct measurement floor = run_floor(growth);
    null_close();
    if (fits)
        report_floor_of(floor, result);
    else
        report_floor(floor, cut * (double)growth.rounds / (double)rounds);
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (from > to)
        program_refuse("--from is above --to");
    table = store_take(blocks * sizeof *table);
    const struct measurement result = run_measured((struct growth){from, to, rounds});

    report_open(&program);
    report_measurement(result);
    if (program_has_floor())
        report_scaled_floor(result);
    else
        report_no_floor();
    report_real("ns_per_call", result.seconds * 1e9 / (double)result.operations);
    report_close();
    return 0;
}
