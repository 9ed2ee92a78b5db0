/* Passive false sharing, an idea of Berger's (Hoard, 2000): the main thread allocates one small block for each thread, one
 * beside the other, and hands them out. Each thread frees its own and goes on with blocks of its own: an allocator that
 * gives it that memory again has put two threads into one cache line. */
#include "crew.h"
#include "false_sharing.h"
#include "report.h"
#include "store.h"

static uint64_t threads = 2, iterations = 40000, repetitions = 1000, size = 8;

static const struct parameter parameters[] = {
    {"threads", COUNT, &threads, 1, CREW_MOST, NULL, "that write at the same time"},
    {"iterations", COUNT, &iterations, 1, 1e12, NULL, "of malloc, write, free, of all threads together"},
    {"repetitions", COUNT, &repetitions, 1, 1e12, NULL, "of writing every byte of a block"},
    {"size", BYTES, &size, BLOCK_LEAST, 1 << 20, NULL, "of a block"},
};
static const struct program program = {"cache-scratch", "Passive false sharing.", parameters,
                                       sizeof parameters / sizeof *parameters};

struct writer {
    void *inherited; /* from the main thread */
    uint64_t checksum;
    unsigned char apart[128]; /* the harness itself must not share lines */
};

static struct writer *writers;
static uint64_t iterations_each;

ALWAYS_INLINE void work(const struct allocator *a, size_t member) {
    uint64_t checksum = block_give(a, writers[member].inherited, size, member);
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

static struct measurement run(void (*member)(size_t, void *), uint64_t count, size_t null_pool) {
    iterations_each = count;
    const double seconds = crew_run((struct crew){threads, member, NULL, null_pool});
    struct measurement result = {2 * threads * count + threads, seconds, 0};
    for (uint64_t i = 0; i < threads; i++)
        result.checksum += writers[i].checksum;
    return result;
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    writers = store_take(threads * sizeof *writers);
    const uint64_t each = iterations / threads == 0 ? 1 : iterations / threads;
    allocate_for_all(&measured);
    const struct measurement result = run(work_measured, each, 0);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor()) {
        const size_t pool = null_pool_for(0, size, threads);
        null_open(null_pool_for(threads * size, size, 1));
        allocate_for_all(&null_allocator);
        report_floor_of(run(work_floor, each / 8 == 0 ? 1 : each / 8, pool), result);
    } else {
        report_no_floor();
    }
    report_real("ns_per_write", result.seconds * 1e9 / (double)(each * threads * repetitions * size));
    report_close();
    return 0;
}
