/* Many short-lived threads, each of which allocates some hundred blocks, frees half of them, allocates those again, and
 * ends; a few blocks outlive it and are freed by the thread that created it. */
#include "block.h"
#include "crew.h"
#include "random.h"
#include "report.h"
#include "store.h"

enum { DRAWS = 1 << 12 };

static uint64_t threads = 1, lives = 6000, blocks = 300, keep = 30, least = 16, most = 1024;

static const struct parameter parameters[] = {
    {"threads", COUNT, &threads, 1, CREW_MOST, NULL, "creators; each has one short-lived thread at a time"},
    {"lives", COUNT, &lives, 1, 1e9, NULL, "short-lived threads of all creators together"},
    {"blocks", COUNT, &blocks, 2, 1u << 28, NULL, "that a thread has at a time"},
    {"keep", COUNT, &keep, 0, 1u << 28, NULL, "of them are freed by the creator"},
    {"least", BYTES, &least, BLOCK_LEAST, 1 << 30, NULL, "size of a block"},
    {"most", BYTES, &most, BLOCK_LEAST, 1 << 30, NULL, "size of a block"},
};
static const struct program program = {"thread-churn", "Short-lived threads that allocate.", parameters,
                                       sizeof parameters / sizeof *parameters};

struct creator {
    void **table; /* of the one living thread */
    uint64_t life, checksum;
    struct null_pool pool;
    bool floor;
};

static struct creator *creators;
static uint32_t *sizes, *order;
static uint64_t lives_each;

ALWAYS_INLINE size_t size_of(uint64_t life, uint64_t at) { return sizes[(life * 131 + at) % DRAWS]; }

ALWAYS_INLINE void allocate(const struct allocator *a, struct creator *c, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        c->table[order[i]] = block_take(a, size_of(c->life, order[i]), order[i]);
}

ALWAYS_INLINE void release(const struct allocator *a, struct creator *c, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) {
        const uint32_t at = order[i];
        c->checksum = checksum_add(c->checksum, block_give(a, c->table[at], size_of(c->life, at), at));
    }
}

/* The last `keep` of the order are left over. */
ALWAYS_INLINE void live(const struct allocator *a, struct creator *c) {
    allocate(a, c, blocks);
    release(a, c, 0, blocks / 2);
    allocate(a, c, blocks / 2);
    release(a, c, 0, blocks - keep);
}

static void *run_life(void *argument) {
    struct creator *c = argument;
    if (c->floor) {
        null_take_over(c->pool);
        live(&null_allocator, c);
        c->pool = null_hand_over();
    } else {
        live(&measured, c);
    }
    return NULL;
}

ALWAYS_INLINE void create(const struct allocator *a, struct creator *c) {
    c->checksum = 0;
    c->pool = null_hand_over();
    for (c->life = 0; c->life < lives_each; c->life++) {
        crew_life(run_life, c);
        release(a, c, blocks - keep, blocks);
    }
    null_take_over(c->pool);
}

static void create_measured(size_t member, void *unused) {
    (void)unused;
    creators[member].floor = false;
    create(&measured, &creators[member]);
}

static void create_floor(size_t member, void *unused) {
    (void)unused;
    creators[member].floor = true;
    create(&null_allocator, &creators[member]);
}

static struct measurement run(void (*work)(size_t, void *), uint64_t count, size_t null_pool) {
    lives_each = count;
    const double seconds = crew_run((struct crew){threads, work, NULL, null_pool});
    struct measurement result = {2 * threads * count * (blocks + blocks / 2), seconds, 0};
    for (uint64_t i = 0; i < threads; i++)
        result.checksum += creators[i].checksum;
    return result;
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (least > most)
        program_refuse("--least is above --most");
    if (keep > blocks)
        program_refuse("--keep is above --blocks");
    sizes = store_take(DRAWS * sizeof *sizes);
    order = store_take(blocks * sizeof *order);
    struct random random;
    random_seed(&random, 7);
    random_sizes(&random, sizes, DRAWS, least, most);
    random_order(&random, order, blocks);
    creators = store_take(threads * sizeof *creators);
    for (uint64_t i = 0; i < threads; i++)
        creators[i].table = store_take(blocks * sizeof *creators[i].table);
    const uint64_t each = lives / threads == 0 ? 1 : lives / threads;
    const struct measurement result = run(create_measured, each, 0);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor()) {
        const size_t pool = null_pool_for(blocks * most, most, threads);
        report_floor_of(run(create_floor, each / 2 == 0 ? 1 : each / 2, pool), result);
    } else {
        report_no_floor();
    }
    report_real("us_per_life", result.seconds * 1e6 / (double)(threads * each));
    report_close();
    return 0;
}
