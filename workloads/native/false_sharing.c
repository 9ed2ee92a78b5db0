#include "false_sharing.h"

#include "block.h"
#include "crew.h"
#include "program.h"
#include "report.h"
#include "store.h"

static uint64_t threads = 2, iterations = 40000, repetitions = 1000, size = 8;

static const struct parameter parameters[] = {
    {"threads", COUNT, &threads, 1, CREW_MOST, NULL, "that write at the same time"},
    {"iterations", COUNT, &iterations, 1, 1e12, NULL, "of malloc, write, free, of all threads together"},
    {"repetitions", COUNT, &repetitions, 1, 1e12, NULL, "of writing every byte of a block"},
    {"size", BYTES, &size, BLOCK_LEAST, 1 << 20, NULL, "of a block"},
};

struct writer {
    void *inherited; /* from the main thread; NULL where it hands nothing out */
    uint64_t checksum;
    unsigned char apart[128]; /* the harness itself must not share lines */
};

static struct writer *writers;
static uint64_t iterations_each;

/* Returns a checksum of what the writes left; a block's bytes count from zero. */
ALWAYS_INLINE uint64_t write_often(const struct allocator *a, uint64_t iterations, uint64_t repetitions, size_t bytes) {
    uint64_t checksum = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        volatile unsigned char *block = take(a, bytes);
        for (size_t at = 0; at < bytes; at++)
            block[at] = 0;
        for (uint64_t repetition = 0; repetition < repetitions; repetition++)
            for (size_t at = 0; at < bytes; at++)
                block[at]++;
        const unsigned char expected = (unsigned char)(repetitions & 0xFF);
        if (UNLIKELY(block[0] != expected || block[bytes - 1] != expected))
            a->lost((const void *)block, bytes, i);
        checksum = checksum_add(checksum, expected);
        a->free((void *)block);
    }
    return checksum;
}

ALWAYS_INLINE void work(const struct allocator *a, size_t member) {
    uint64_t checksum = 0;
    if (writers[member].inherited != NULL)
        checksum = block_give(a, writers[member].inherited, size, member);
    checksum += write_often(a, iterations_each, repetitions, size);
    writers[member].checksum = checksum;
}

static void work_measured(size_t member, void *unused) {
    (void)unused;
    work(&measured, member);
}

static void work_floor(size_t member, void *unused) {
    (void)unused;
    work(&null_allocator, member);
}

static void allocate_for_all(const struct allocator *a) {
    for (uint64_t i = 0; i < threads; i++)
        writers[i].inherited = block_take(a, size, i);
}

static struct measurement run(void (*member)(size_t, void *), uint64_t count, bool hands_out, size_t null_pool) {
    iterations_each = count;
    const double seconds = crew_run((struct crew){threads, member, NULL, null_pool});
    struct measurement result = {2 * threads * count + (hands_out ? threads : 0), seconds, 0};
    for (uint64_t i = 0; i < threads; i++)
        result.checksum += writers[i].checksum;
    return result;
}

int false_sharing(const char *name, const char *purpose, bool hands_out, int argc, char **argv) {
    const struct program program = {name, purpose, parameters, sizeof parameters / sizeof *parameters};
    program_read(&program, argc, argv);
    writers = store_take(threads * sizeof *writers);
    const uint64_t each = iterations / threads == 0 ? 1 : iterations / threads;
    if (hands_out)
        allocate_for_all(&measured);
    const struct measurement result = run(work_measured, each, hands_out, 0);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor()) {
        const size_t pool = null_pool_for(0, size, threads);
        if (hands_out) {
            null_open(null_pool_for(threads * size, size, 1));
            allocate_for_all(&null_allocator);
        }
        report_floor_of(run(work_floor, each / 8 == 0 ? 1 : each / 8, hands_out, pool), result);
    } else {
        report_no_floor();
    }
    report_real("ns_per_write", result.seconds * 1e9 / (double)(each * threads * repetitions * size));
    report_close();
    return 0;
}
