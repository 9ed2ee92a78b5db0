/* Like the server of Larson and Krishnan ("Memory Allocation for Long-Running Server Applications", 1998): each thread
 * replaces random blocks of an array, and after some replacements leaves the array to a new thread, which so frees what
 * another one allocated. */
#include "block.h"
#include "crew.h"
#include "random.h"
#include "report.h"
#include "store.h"

#include <pthread.h>

enum { DRAWS = 1 << 14 };

static uint64_t threads = 1, blocks = 1000, least = 16, most = 512, operations = 40000000, hand_over = 100000;

static const struct parameter parameters[] = {
    {"threads", COUNT, &threads, 1, CREW_MOST, NULL, "arrays, each with one thread at a time"},
    {"blocks", COUNT, &blocks, 1, 1u << 28, NULL, "in each array"},
    {"least", BYTES, &least, BLOCK_LEAST, 1 << 30, NULL, "size of a block"},
    {"most", BYTES, &most, BLOCK_LEAST, 1 << 30, NULL, "size of a block"},
    {"operations", COUNT, &operations, 2, 1e15, NULL, "mallocs and frees of all threads, without filling the arrays"},
    {"hand-over", COUNT, &hand_over, 1, 1e12, NULL, "replacements a thread makes before the next one goes on"},
};
static const struct program program = {"server", "Random replacements in arrays that go from thread to thread.",
                                       parameters, sizeof parameters / sizeof *parameters};

/* Drawn before the clock; every array goes through them from a place of its own on. */
struct draw {
    uint32_t slot, size;
};

struct slot {
    void *block;
    uint64_t owner;
    size_t size;
};

struct array {
    struct slot *slots;
    uint64_t done, checksum;
    struct null_pool pool; /* of the floor: goes with the array */
    bool floor;
};

static struct draw *draws;
static struct array *arrays;
static uint64_t replacements; /* in each array */

ALWAYS_INLINE void replace(const struct allocator *a, struct array *array, uint64_t count, uint64_t place) {
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t owner = array->done++;
        const struct draw draw = draws[(place + owner) % DRAWS];
        struct slot *slot = &array->slots[draw.slot];
        array->checksum = checksum_add(array->checksum, block_give(a, slot->block, slot->size, slot->owner));
        *slot = (struct slot){block_take(a, draw.size, owner), owner, draw.size};
    }
}

ALWAYS_INLINE void generation(const struct allocator *a, struct array *array) {
    const uint64_t left = replacements - array->done;
    replace(a, array, left < hand_over ? left : hand_over, (uint64_t)(array - arrays) * 997);
}

static void *run_generation(void *argument) {
    struct array *array = argument;
    if (array->floor) {
        null_take_over(array->pool);
        generation(&null_allocator, array);
        array->pool = null_hand_over();
    } else {
        generation(&measured, array);
    }
    return NULL;
}

ALWAYS_INLINE void fill(const struct allocator *a, struct array *array) {
    for (uint64_t i = 0; i < blocks; i++) {
        const size_t size = draws[i % DRAWS].size;
        array->slots[i] = (struct slot){block_take(a, size, i), i, size};
    }
}

ALWAYS_INLINE void empty(const struct allocator *a, struct array *array) {
    for (uint64_t i = 0; i < blocks; i++) {
        const struct slot slot = array->slots[i];
        array->checksum = checksum_add(array->checksum, block_give(a, slot.block, slot.size, slot.owner));
    }
}

ALWAYS_INLINE void serve(const struct allocator *a, size_t member) {
    struct array *array = &arrays[member];
    array->done = array->checksum = 0;
    fill(a, array);
    array->pool = null_hand_over();
    while (array->done < replacements)
        crew_life(run_generation, array);
    null_take_over(array->pool);
    empty(a, array);
}

static void serve_measured(size_t member, void *unused) {
    (void)unused;
    arrays[member].floor = false;
    serve(&measured, member);
}

static void serve_floor(size_t member, void *unused) {
    (void)unused;
    arrays[member].floor = true;
    serve(&null_allocator, member);
}

static struct measurement run(void (*work)(size_t, void *), uint64_t count, size_t null_pool) {
    replacements = count;
    const double seconds = crew_run((struct crew){threads, work, NULL, null_pool});
    struct measurement result = {2 * threads * (count + blocks), seconds, 0};
    for (uint64_t i = 0; i < threads; i++)
        result.checksum += arrays[i].checksum;
    return result;
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (least > most)
        program_refuse("--least is above --most");
    draws = store_take(DRAWS * sizeof *draws);
    struct random random;
    random_seed(&random, 6);
    for (size_t i = 0; i < DRAWS; i++)
        draws[i] = (struct draw){random_below(&random, blocks), random_between(&random, least, most)};
    arrays = store_take(threads * sizeof *arrays);
    for (uint64_t i = 0; i < threads; i++)
        arrays[i].slots = store_take(blocks * sizeof *arrays[i].slots);
    const uint64_t each = operations / 2 / threads == 0 ? 1 : operations / 2 / threads;
    const struct measurement result = run(serve_measured, each, 0);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor()) {
        const size_t pool = null_pool_for(blocks * (least + most) / 2, most, threads);
        report_floor_of(run(serve_floor, each / 8 == 0 ? 1 : each / 8, pool), result);
    } else {
        report_no_floor();
    }
    report_real("ns_per_replacement", result.seconds * 1e9 / (double)(threads * each));
    report_close();
    return 0;
}
