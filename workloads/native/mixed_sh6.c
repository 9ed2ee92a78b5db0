/* In the manner of sh6bench: runs of blocks of one size after the other from a table in which small sizes are many. Of each
 * run one quarter is freed at once in the order of allocation and one quarter in reverse; the half in between lives until
 * several runs later, and goes in order or in reverse in turn. */
#include "block.h"
#include "crew.h"
#include "report.h"
#include "store.h"

/* bytes; a fixed table, steep towards the small */
static const uint16_t sizes[] = {16, 24, 32, 40, 48,  64,  16,  32,  24,  72,  88,  128, 48,  16,  160,
                                 32, 24, 64, 96, 200, 256, 32,  16,  40,  320, 56,  448, 24,  640, 64,
                                 16, 48, 32, 80, 896, 24,  112, 128, 992, 16,  144, 32,  176, 512, 48};
enum { SIZES = sizeof sizes / sizeof *sizes };

static uint64_t threads = 1, run_length = 400, window = 16, operations = 20000000;

static const struct parameter parameters[] = {
    {"threads", COUNT, &threads, 1, CREW_MOST, NULL, "each with its own runs"},
    {"run", COUNT, &run_length, 4, 1 << 24, NULL, "blocks of one size in a row"},
    {"window", COUNT, &window, 1, 1 << 16, NULL, "runs until the half that stays is freed"},
    {"operations", COUNT, &operations, 2, 1e15, NULL, "mallocs and frees of all threads, rounded to whole runs"},
};
static const struct program program = {"mixed-sh6", "Runs of blocks of many sizes, freed in order and in reverse.",
                                       parameters, sizeof parameters / sizeof *parameters};

struct worker {
    void **blocks; /* `window` runs, used in turn */
    uint64_t checksum;
};

static struct worker *workers;
static uint64_t runs_each;

ALWAYS_INLINE void in_order(const struct allocator *a, struct worker *w, void **run, size_t size, uint64_t from,
                            uint64_t to) {
    for (uint64_t i = from; i < to; i++)
        w->checksum = checksum_add(w->checksum, block_give(a, run[i], size, i));
}

ALWAYS_INLINE void in_reverse(const struct allocator *a, struct worker *w, void **run, size_t size, uint64_t from,
                              uint64_t to) {
    for (uint64_t i = to; i-- > from;)
        w->checksum = checksum_add(w->checksum, block_give(a, run[i], size, i));
}

/* The half of a run that was left. */
ALWAYS_INLINE void retire(const struct allocator *a, struct worker *w, uint64_t number) {
    void **run = w->blocks + number % window * run_length;
    const size_t size = sizes[number % SIZES];
    if (number % 2 == 0)
        in_order(a, w, run, size, run_length / 4, run_length - run_length / 4);
    else
        in_reverse(a, w, run, size, run_length / 4, run_length - run_length / 4);
}

ALWAYS_INLINE void work(const struct allocator *a, size_t member) {
    struct worker *w = &workers[member];
    w->checksum = 0;
    for (uint64_t number = 0; number < runs_each; number++) {
        void **run = w->blocks + number % window * run_length;
        if (number >= window)
            retire(a, w, number - window);
        const size_t size = sizes[number % SIZES];
        for (uint64_t i = 0; i < run_length; i++)
            run[i] = block_take(a, size, i);
        in_order(a, w, run, size, 0, run_length / 4);
        in_reverse(a, w, run, size, run_length - run_length / 4, run_length);
    }
    for (uint64_t number = runs_each < window ? 0 : runs_each - window; number < runs_each; number++)
        retire(a, w, number);
}

static void work_measured(size_t member, void *unused) {
    (void)unused;
    work(&measured, member);
}

static void work_floor(size_t member, void *unused) {
    (void)unused;
    work(&null_allocator, member);
}

static struct measurement run(void (*member)(size_t, void *), uint64_t count, size_t null_pool) {
    runs_each = count;
    const double seconds = crew_run((struct crew){threads, member, NULL, null_pool});
    struct measurement result = {2 * threads * count * run_length, seconds, 0};
    for (uint64_t i = 0; i < threads; i++)
        result.checksum += workers[i].checksum;
    return result;
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    workers = store_take(threads * sizeof *workers);
    for (uint64_t i = 0; i < threads; i++)
        workers[i].blocks = store_take(window * run_length * sizeof *workers[i].blocks);
    const uint64_t all = operations / 2 / run_length / threads, each = all == 0 ? 1 : all;
    const struct measurement result = run(work_measured, each, 0);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor())
        report_floor_of(
            run(work_floor, each / 8 == 0 ? 1 : each / 8, null_pool_for(window * run_length * 64, 1024, threads)),
            result);
    else
        report_no_floor();
    report_real("ns_per_pair", result.seconds * 2e9 / (double)result.operations);
    report_close();
    return 0;
}
