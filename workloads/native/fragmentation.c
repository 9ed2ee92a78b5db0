/* A long run whose sizes drift: each phase frees most but not all of the blocks there are, at random, and fills up with
 * blocks of other sizes. What the survivors hold on to is the resident set beside the live bytes, phase by phase. */
#include "block.h"
#include "moment.h"
#include "random.h"
#include "report.h"
#include "resident.h"
#include "store.h"

enum { PHASES_MOST = 1000, NUMBER_BITS = 22, DRAWS = 1 << 14, RATIO = 2 };
_Static_assert(PHASES_MOST <= 1 << (32 - NUMBER_BITS), "a phase and a number make 32 bits");

static uint64_t phases = 20, live = 24 << 20, free_percent = 90, least = 16, most = 8192;
static double drift = 1.5;

static const struct parameter parameters[] = {
    {"phases", COUNT, &phases, 1, PHASES_MOST, NULL, "of frees and mallocs"},
    {"live", BYTES, &live, 1 << 16, UINT64_C(1) << 40, NULL, "asked for at the end of each phase"},
    {"free-percent", COUNT, &free_percent, 1, 100, NULL, "of the blocks are freed at the start of a phase"},
    {"least", BYTES, &least, BLOCK_LEAST, 1 << 24, NULL, "sizes of the first phase are from this to twice this"},
    {"most", BYTES, &most, BLOCK_LEAST, 1 << 24, NULL,
     "where a phase's sizes would pass this, they start at --least again"},
    {"drift", REAL, &drift, 1, 1000, NULL, "factor between the sizes of two phases"},
};
static const struct program program = {"fragmentation", "Sizes that drift while some of the old blocks stay.",
                                       parameters, sizeof parameters / sizeof *parameters};

/* An owner is the phase and the number within it, from which the size follows. */
struct heap {
    void **blocks;
    uint32_t *owners;
    uint64_t count, live_bytes, room;
};

struct outcome {
    struct measurement whole;
    uint64_t live_kib[PHASES_MOST], resident_kib[PHASES_MOST];
    double ns_per_call[PHASES_MOST];
};

static uint32_t *draws; /* fractions of RATIO - 1, in 2^-32 */
static uint64_t bases[PHASES_MOST];

static uint32_t owner_of(uint64_t phase, uint64_t number) {
    return (uint32_t)(phase << NUMBER_BITS | (number & ((1 << NUMBER_BITS) - 1)));
}

static size_t size_of(uint32_t owner) {
    const uint64_t base = bases[owner >> NUMBER_BITS];
    return base + (size_t)(base * (RATIO - 1) * draws[owner % DRAWS] >> 32);
}

/* Off the clock: bring the blocks into the order of which the last will be freed. */
static void shuffle(struct random *random, struct heap *heap) {
    for (uint64_t i = heap->count; i-- > 1;) {
        const uint64_t j = random_below(random, i + 1);
        const uint32_t owner = heap->owners[i];
        void *block = heap->blocks[i];
        heap->blocks[i] = heap->blocks[j];
        heap->owners[i] = heap->owners[j];
        heap->blocks[j] = block;
        heap->owners[j] = owner;
    }
}

ALWAYS_INLINE uint64_t shrink(const struct allocator *a, struct heap *heap, uint64_t to) {
    uint64_t checksum = 0;
    while (heap->count > to) {
        const uint32_t owner = heap->owners[--heap->count];
        const size_t size = size_of(owner);
        checksum = checksum_add(checksum, block_give(a, heap->blocks[heap->count], size, owner));
        heap->live_bytes -= size;
    }
    return checksum;
}

ALWAYS_INLINE void grow(const struct allocator *a, struct heap *heap, uint64_t phase, uint64_t to_bytes) {
    for (uint64_t number = 0; heap->live_bytes < to_bytes && heap->count < heap->room; number++) {
        const uint32_t owner = owner_of(phase, number);
        const size_t size = size_of(owner);
        heap->blocks[heap->count] = block_take(a, size, owner);
        heap->owners[heap->count++] = owner;
        heap->live_bytes += size;
    }
}

ALWAYS_INLINE void run(const struct allocator *a, struct heap *heap, uint64_t to_bytes, struct outcome *outcome) {
    struct random random;
    random_seed(&random, 10);
    *outcome = (struct outcome){0};
    for (uint64_t phase = 0; phase < phases; phase++) {
        shuffle(&random, heap);
        const uint64_t before = heap->count, kept = before - before * free_percent / 100;
        const uint64_t from = moment_ns();
        outcome->whole.checksum += shrink(a, heap, kept);
        grow(a, heap, phase, to_bytes);
        const double seconds = seconds_between(from, moment_ns());
        const uint64_t calls = before - kept + heap->count - kept;
        outcome->whole.operations += calls;
        outcome->whole.seconds += seconds;
        outcome->ns_per_call[phase] = calls == 0 ? 0 : seconds * 1e9 / (double)calls;
        outcome->live_kib[phase] = heap->live_bytes / 1024;
        outcome->resident_kib[phase] = resident_kib();
    }
    outcome->whole.checksum += shrink(a, heap, 0);
}

static __attribute__((noinline)) void run_measured(struct heap *heap, struct outcome *outcome) {
    run(&measured, heap, live, outcome);
}
static __attribute__((noinline)) void run_floor(struct heap *heap, uint64_t to_bytes, struct outcome *outcome) {
    run(&null_allocator, heap, to_bytes, outcome);
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (most < RATIO * least)
        program_refuse("--most must be at least twice --least");
    draws = store_take(DRAWS * sizeof *draws);
    struct random random;
    random_seed(&random, 9);
    for (size_t i = 0; i < DRAWS; i++)
        draws[i] = (uint32_t)random_next(&random);
    double base = (double)least;
    for (uint64_t phase = 0; phase < phases; phase++) {
        bases[phase] = (uint64_t)base;
        base *= drift;
        if (base * RATIO > (double)most)
            base = (double)least;
    }
    struct heap heap = {.room = live / least + 1};
    heap.blocks = store_take(heap.room * sizeof *heap.blocks);
    heap.owners = store_take(heap.room * sizeof *heap.owners);
    static struct outcome outcome, floor;
    run_measured(&heap, &outcome);

    report_open(&program);
    report_measurement(outcome.whole);
    if (program_has_floor()) {
        null_open(null_pool_for(live / 8, most, 1));
        run_floor(&heap, live / 8, &floor);
        null_close();
        report_floor_of(floor.whole, outcome.whole);
    } else {
        report_no_floor();
    }
    report_reals("ns_per_call", outcome.ns_per_call, phases);
    report_counts("live_kib", outcome.live_kib, phases);
    report_counts("rss_kib", outcome.resident_kib, phases);
    report_close();
    return 0;
}
