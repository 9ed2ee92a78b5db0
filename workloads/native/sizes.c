/* The cost of one block by its size, doubling from 8 bytes: malloc with free, the same with a word of each page written,
 * and calloc with free. Lists, one entry per size. */
#include "block.h"
#include "moment.h"
#include "report.h"

enum { SIZES_MOST = 40, PAGE_BYTES = 4096 };

static uint64_t least = 8, most = 256 << 20, pairs = 200000, pages = 50000;

static const struct parameter parameters[] = {
    {"least", BYTES, &least, BLOCK_LEAST, UINT64_C(1) << 40, NULL, "the first size"},
    {"most", BYTES, &most, BLOCK_LEAST, UINT64_C(1) << 40, NULL, "the last size is at most this"},
    {"pairs", COUNT, &pairs, 1, 1e12, NULL, "of malloc and free for each size, fewer where pages run out"},
    {"pages", COUNT, &pages, 1, 1e12, NULL, "of 4 KiB each size may touch; a block is touched once at least"},
};
static const struct program program = {"sizes", "The cost of one block by its size.", parameters,
                                       sizeof parameters / sizeof *parameters};

enum way { PLAIN, TOUCHED, ZEROED };

/* Seconds for `count` blocks, one alive at a time. */
ALWAYS_INLINE double loop(const struct allocator *a, size_t size, uint64_t count, enum way way, uint64_t *checksum) {
    const uint64_t from = moment_ns();
    for (uint64_t i = 0; i < count; i++) {
        unsigned char *block = way == ZEROED ? a->calloc(1, size) : a->malloc(size);
        if (UNLIKELY(block == NULL))
            out_of_memory(size);
        if (way == ZEROED && UNLIKELY(block_get(block) != 0 || block_get(block_end(block, size)) != 0))
            a->not_zero(block, size);
        if (way != PLAIN)
            block_sign(block, size, i);
        for (size_t at = PAGE_BYTES; way == TOUCHED && at + 2 * sizeof(uint64_t) <= size; at += PAGE_BYTES)
            block_put(block + at, i);
        if (way != PLAIN)
            *checksum = checksum_add(*checksum, block_check(a, block, size, i));
        a->free(block);
    }
    return seconds_between(from, moment_ns());
}

static __attribute__((noinline)) double loop_plain(size_t size, uint64_t count, uint64_t *checksum) {
    return loop(&measured, size, count, PLAIN, checksum);
}
static __attribute__((noinline)) double loop_touched(size_t size, uint64_t count, uint64_t *checksum) {
    return loop(&measured, size, count, TOUCHED, checksum);
}
static __attribute__((noinline)) double loop_zeroed(size_t size, uint64_t count, uint64_t *checksum) {
    return loop(&measured, size, count, ZEROED, checksum);
}
static __attribute__((noinline)) double loop_floor(size_t size, uint64_t count, uint64_t *checksum) {
    return loop(&null_allocator, size, count, PLAIN, checksum);
}

struct curve {
    uint64_t sizes[SIZES_MOST];
    double plain_ns[SIZES_MOST], touched_ns[SIZES_MOST], zeroed_ns[SIZES_MOST];
    size_t count;
};

/* How many blocks of a size are touched or zeroed: bounded by the pages, so that no size takes for ever. */
static uint64_t bounded(size_t size) {
    const uint64_t each = size / PAGE_BYTES + 1, count = pages / each;
    return count < 1 ? 1 : count < pairs ? count : pairs;
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (least > most)
        program_refuse("--least is above --most");
    static struct curve curve;
    struct measurement result = {0}, floor = {0};
    for (uint64_t size = least; size <= most && curve.count < SIZES_MOST; size *= 2) {
        const size_t n = curve.count++;
        const uint64_t few = bounded(size), plain = size > 1 << 20 && few * 16 < pairs ? few * 16 : pairs;
        const double seconds[] = {loop_plain(size, plain, &result.checksum), loop_touched(size, few, &result.checksum),
                                  loop_zeroed(size, few, &result.checksum)};
        curve.sizes[n] = size;
        curve.plain_ns[n] = seconds[0] * 1e9 / (double)plain;
        curve.touched_ns[n] = seconds[1] * 1e9 / (double)few;
        curve.zeroed_ns[n] = seconds[2] * 1e9 / (double)few;
        result.seconds += seconds[0] + seconds[1] + seconds[2];
        result.operations += 2 * (plain + 2 * few);
    }

    report_open(&program);
    report_measurement(result);
    if (program_has_floor()) {
        /* Of the pair alone, whatever the size: the null allocator does not look at it. */
        null_open(null_pool_for(0, BLOCK_LEAST, 1));
        floor.operations = 2 * pairs;
        floor.seconds = loop_floor(BLOCK_LEAST, pairs, &floor.checksum);
        null_close();
        report_floor_of(floor, result);
    } else {
        report_no_floor();
    }
    report_counts("sizes", curve.sizes, curve.count);
    report_reals("malloc_ns", curve.plain_ns, curve.count);
    report_reals("touch_ns", curve.touched_ns, curve.count);
    report_reals("calloc_ns", curve.zeroed_ns, curve.count);
    report_close();
    return 0;
}
