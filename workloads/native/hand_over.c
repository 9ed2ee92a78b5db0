/* Phases of short-lived threads with a pause after each. A thread takes rows of blocks of random sizes, frees a third of each,
 * scattered, and hands the rest over to the others in turn, which free it beside their own work; whoever has done all its rows
 * waits for the others, and frees what came meanwhile. */
#include "block.h"
#include "crew.h"
#include "moment.h"
#include "random.h"
#include "report.h"
#include "store.h"

#include <pthread.h>

enum { SIZES = 1 << 14, APART = 64 };

static uint64_t threads = 4, phases = 20, rows = 10, blocks = 500, least = 16, most = 16384, pause_ms = 20;

static const struct parameter parameters[] = {
    {"threads", COUNT, &threads, 2, CREW_MOST, NULL, "of a phase; each lives as long as that"},
    {"phases", COUNT, &phases, 1, 1e6, NULL, "one after the other"},
    {"rows", COUNT, &rows, 1, 1e6, NULL, "of a thread"},
    {"blocks", COUNT, &blocks, 1, 1 << 24, NULL, "in a row"},
    {"least", BYTES, &least, BLOCK_LEAST, 1 << 30, NULL, "size of a block"},
    {"most", BYTES, &most, BLOCK_LEAST, 1 << 30, NULL, "size of a block"},
    {"pause-ms", COUNT, &pause_ms, 0, 60000, NULL, "after each phase, off the clock"},
};
static const struct program program = {"hand-over", "Short-lived threads that free each other's blocks, in phases.",
                                       parameters, sizeof parameters / sizeof *parameters};

struct row {
    struct row *next; /* in somebody's box */
    uint64_t first; /* number of its first block; sizes and marks follow from it */
    void **blocks;
};

/* A line apart. */
struct box {
    _Alignas(APART) pthread_mutex_t lock; /* protects rows */
    struct row *rows;
    uint64_t checksum; /* its owner's; a sum: who frees what is chance */
};

static struct box *boxes;
static struct row *all_rows;
static uint32_t *sizes;
static uint64_t phase;
static pthread_barrier_t all_handed_over;

ALWAYS_INLINE uint32_t size_of(uint64_t number) { return sizes[number % SIZES]; }

static bool stays(uint64_t place) { return place * 7 % 3 != 0; }

ALWAYS_INLINE void give(const struct allocator *a, struct box *box, const struct row *row, bool staying) {
    for (uint64_t i = 0; i < blocks; i++)
        if (stays(i) == staying)
            box->checksum += block_give(a, row->blocks[i], size_of(row->first + i), row->first + i);
}

ALWAYS_INLINE void take_row(const struct allocator *a, struct row *row) {
    for (uint64_t i = 0; i < blocks; i++)
        row->blocks[i] = block_take(a, size_of(row->first + i), row->first + i);
}

static void hand_over(struct row *row, uint64_t to) {
    pthread_mutex_lock(&boxes[to].lock);
    row->next = boxes[to].rows;
    boxes[to].rows = row;
    pthread_mutex_unlock(&boxes[to].lock);
}

static struct row *handed_over(struct box *box) {
    pthread_mutex_lock(&box->lock);
    struct row *row = box->rows;
    box->rows = NULL;
    pthread_mutex_unlock(&box->lock);
    return row;
}

ALWAYS_INLINE void empty(const struct allocator *a, struct box *box) {
    for (const struct row *row = handed_over(box); row != NULL; row = row->next)
        give(a, box, row, true);
}

ALWAYS_INLINE void work(const struct allocator *a, size_t member) {
    struct box *box = &boxes[member];
    for (uint64_t i = 0; i < rows; i++) {
        struct row *row = &all_rows[member * rows + i];
        row->first = ((phase * threads + member) * rows + i) * blocks;
        take_row(a, row);
        give(a, box, row, false);
        hand_over(row, (member + 1 + i) % threads);
        empty(a, box);
    }
    pthread_barrier_wait(&all_handed_over);
    empty(a, box);
}

static void work_measured(size_t member, void *unused) {
    (void)unused;
    work(&measured, member);
}

static void work_floor(size_t member, void *unused) {
    (void)unused;
    work(&null_allocator, member);
}

static struct measurement run(void (*member)(size_t, void *), uint64_t count, size_t null_pool, bool pauses) {
    struct measurement result = {2 * count * threads * rows * blocks, 0, 0};
    for (uint64_t i = 0; i < threads; i++)
        boxes[i].checksum = 0;
    for (phase = 0; phase < count; phase++) {
        result.seconds += crew_run((struct crew){threads, member, NULL, null_pool});
        if (pauses)
            sleep_until(moment_ns() + pause_ms * 1000000);
    }
    for (uint64_t i = 0; i < threads; i++)
        result.checksum += boxes[i].checksum;
    return result;
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (least > most)
        program_refuse("--least is above --most");
    boxes = store_take(threads * sizeof *boxes);
    all_rows = store_take(threads * rows * sizeof *all_rows);
    for (uint64_t i = 0; i < threads; i++)
        pthread_mutex_init(&boxes[i].lock, NULL);
    for (uint64_t i = 0; i < threads * rows; i++)
        all_rows[i].blocks = store_take(blocks * sizeof *all_rows[i].blocks);
    pthread_barrier_init(&all_handed_over, NULL, (unsigned)threads);
    sizes = store_take(SIZES * sizeof *sizes);
    struct random random;
    random_seed(&random, 11);
    random_sizes(&random, sizes, SIZES, least, most);
    const struct measurement result = run(work_measured, phases, 0, true);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor())
        report_floor_of(
            run(work_floor, phases / 4 == 0 ? 1 : phases / 4, null_pool_for(blocks * most, most, threads), false),
            result);
    else
        report_no_floor();
    report_real("ns_per_pair", result.seconds * 2e9 / (double)result.operations);
    report_close();
    return 0;
}
