/* Millions of live blocks of random size, freed in random order and allocated again: what the order of frees does to
 * the order of addresses. Nanoseconds per call in each phase:
 *
 *   fill        allocate all
 *   free        free all, in random order
 *   reallocate  allocate all again, from the memory the frees left
 *   refill      free a random half, then fill it again
 *   traverse    read every block in the order of allocation */
#include "block.h"
#include "moment.h"
#include "random.h"
#include "report.h"
#include "store.h"

static uint64_t blocks = 2000000, least = 16, most = 256;

static const struct parameter parameters[] = {
    {"blocks", COUNT, &blocks, 2, 1u << 30, NULL, "live at a time"},
    {"least", BYTES, &least, BLOCK_LEAST, 1 << 30, NULL, "size of a block"},
    {"most", BYTES, &most, BLOCK_LEAST, 1 << 30, NULL, "size of a block"},
};
static const struct program program = {"big-random", "Many live blocks of random size, freed in random order.",
                                       parameters, sizeof parameters / sizeof *parameters};

enum phase { FILL, FREE, REALLOCATE, REFILL, TRAVERSE, PHASES };
static const char *const phase_keys[] = {"fill_ns", "free_ns", "reallocate_ns", "refill_ns", "traverse_ns"};

struct heap {
    size_t count;
    unsigned char **blocks;
    uint32_t *sizes; /* as drawn; each generation of blocks takes them from another place on */
    uint32_t *order;
};

struct outcome {
    struct measurement whole;
    double phase_seconds[PHASES];
};

/* The size of a block in its first, second or third generation: as random as the others and nothing more to store. */
ALWAYS_INLINE uint32_t size_of(const struct heap *h, size_t at, size_t generation) {
    size_t place = at + generation * (h->count / 3);
    if (place >= h->count)
        place -= h->count;
    return h->sizes[place];
}

ALWAYS_INLINE void fill(const struct allocator *a, const struct heap *h, size_t generation) {
    for (size_t i = 0; i < h->count; i++)
        h->blocks[i] = block_take(a, size_of(h, i, generation), i);
}

ALWAYS_INLINE uint64_t release(const struct allocator *a, const struct heap *h, size_t count, size_t generation) {
    uint64_t checksum = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t at = h->order[i];
        checksum = checksum_add(checksum, block_give(a, h->blocks[at], size_of(h, at, generation), at));
    }
    return checksum;
}

/* The half that was refilled is of the third generation, the rest of the second. */
ALWAYS_INLINE void refill(const struct allocator *a, const struct heap *h) {
    for (size_t i = 0; i < h->count / 2; i++) {
        const size_t at = h->order[i];
        h->blocks[at] = block_take(a, size_of(h, at, 2), at);
    }
}

ALWAYS_INLINE uint64_t traverse(const struct heap *h) {
    uint64_t sum = 0;
    for (size_t i = 0; i < h->count; i++)
        sum += block_get(h->blocks[i]);
    return sum;
}

ALWAYS_INLINE struct outcome run(const struct allocator *a, const struct heap *h) {
    struct outcome outcome = {0};
    uint64_t at[PHASES + 1], checksum;
    at[FILL] = moment_ns();
    fill(a, h, 0);
    at[FREE] = moment_ns();
    checksum = release(a, h, h->count, 0);
    at[REALLOCATE] = moment_ns();
    fill(a, h, 1);
    at[REFILL] = moment_ns();
    checksum += release(a, h, h->count / 2, 1);
    refill(a, h);
    at[TRAVERSE] = moment_ns();
    checksum += traverse(h);
    at[PHASES] = moment_ns();
    for (size_t i = 0; i < h->count; i++) {
        const size_t block = h->order[i], generation = i < h->count / 2 ? 2 : 1;
        (void)block_give(a, h->blocks[block], size_of(h, block, generation), block);
    }
    for (int phase = 0; phase < PHASES; phase++)
        outcome.phase_seconds[phase] = seconds_between(at[phase], at[phase + 1]);
    outcome.whole =
        (struct measurement){3 * h->count + 2 * (h->count / 2), seconds_between(at[0], at[PHASES]), checksum};
    return outcome;
}

/* In functions of their own, so that each is compiled once and by itself. */
static __attribute__((noinline)) struct outcome run_measured(const struct heap *h) { return run(&measured, h); }
static __attribute__((noinline)) struct outcome run_floor(const struct heap *h) { return run(&null_allocator, h); }

static void draw(struct heap *h, size_t count) {
    struct random random;
    random_seed(&random, 2);
    h->count = count;
    random_order(&random, h->order, count);
    random_sizes(&random, h->sizes, count, least, most);
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (least > most)
        program_refuse("--least is above --most");
    struct heap heap = {.blocks = store_take(blocks * sizeof *heap.blocks),
                        .sizes = store_take(blocks * sizeof *heap.sizes),
                        .order = store_take(blocks * sizeof *heap.order)};
    draw(&heap, blocks);
    const struct outcome outcome = run_measured(&heap);

    report_open(&program);
    report_measurement(outcome.whole);
    if (program_has_floor()) {
        draw(&heap, blocks < 1000 ? blocks : blocks / 8 + 100);
        null_open(null_pool_for(heap.count * most, most, 1));
        report_floor_of(run_floor(&heap).whole, outcome.whole);
        null_close();
    } else {
        report_no_floor();
    }
    for (int phase = 0; phase < PHASES; phase++) {
        const size_t calls = phase == REFILL ? blocks / 2 * 2 : blocks;
        report_real(phase_keys[phase], outcome.phase_seconds[phase] * 1e9 / (double)calls);
    }
    report_close();
    return 0;
}
