/* In the manner of sh8bench: blocks of random size and random lifetime, freed by whichever thread comes upon them. Every
 * thread puts each new block into a random place of a table that all threads share, and frees the one it finds there. */
#include "block.h"
#include "crew.h"
#include "random.h"
#include "report.h"
#include "store.h"

#include <stdatomic.h>

enum { DRAWS = 1 << 14, OWNER = sizeof(uint64_t) };

static uint64_t threads = 2, places = 20000, least = 24, most = 1000, operations = 12000000;

static const struct parameter parameters[] = {
    {"threads", COUNT, &threads, 1, CREW_MOST, NULL, "over one table"},
    {"places", COUNT, &places, 1, 1u << 30, NULL, "of the table: as many blocks are alive"},
    {"least", BYTES, &least, 24, 1 << 30, NULL, "size of a block"},
    {"most", BYTES, &most, 24, 1 << 30, NULL, "size of a block"},
    {"operations", COUNT, &operations, 2, 1e15, NULL, "mallocs and frees of all threads"},
};
static const struct program program = {"mixed-sh8", "Random sizes and lifetimes across threads.", parameters,
                                       sizeof parameters / sizeof *parameters};

struct draw {
    uint32_t place, size;
};

struct worker {
    uint64_t checksum;
    unsigned char apart[128];
};

/* A block's address with the low bits of its owner's number in place of the four that malloc leaves zero: a block given
 * away twice does not pass for its second owner's. Exchanged as a whole: who takes a block out sees what its owner wrote
 * into it (acquire and release). */
typedef _Atomic uintptr_t place;
enum { LOW_BITS = 15 };

static place *table;
static struct draw *draws;
static struct worker *workers;
static uint64_t blocks_each;

/* A block says itself whose it is, behind its first mark: the finder knows no more than the low bits. */
ALWAYS_INLINE uintptr_t put_together(const struct allocator *a, uint64_t owner) {
    const size_t size = draws[owner % DRAWS].size;
    unsigned char *block = take(a, size);
    block_put(block, block_mark(owner, 0));
    block_put(block + OWNER, owner);
    block_put(block_end(block, size), block_mark(owner, size));
    return (uintptr_t)block | (owner & LOW_BITS);
}

ALWAYS_INLINE uint64_t take_apart(const struct allocator *a, uintptr_t found) {
    unsigned char *block = (unsigned char *)(found & ~(uintptr_t)LOW_BITS);
    const uint64_t owner = block_get(block + OWNER);
    const size_t size = draws[owner % DRAWS].size;
    const uint64_t mark = block_mark(owner, size);
    const bool whose = ((owner ^ found) & LOW_BITS) == 0 && block_get(block) == block_mark(owner, 0);
    /* Where the end is, only the true owner tells. */
    if (UNLIKELY(!whose || block_get(block_end(block, size)) != mark))
        a->lost(block, size, owner);
    a->free(block);
    return mark;
}

ALWAYS_INLINE void work(const struct allocator *a, size_t member) {
    uint64_t checksum = 0; /* a sum: which thread frees which block is chance */
    const uint64_t from = blocks_each * member;
    for (uint64_t owner = from; owner < from + blocks_each; owner++) {
        const uintptr_t mine = put_together(a, owner);
        const uintptr_t found =
            atomic_exchange_explicit(&table[draws[owner % DRAWS].place], mine, memory_order_acq_rel);
        if (found != 0)
            checksum += take_apart(a, found);
    }
    workers[member].checksum = checksum;
}

static void work_measured(size_t member, void *unused) {
    (void)unused;
    work(&measured, member);
}

static void work_floor(size_t member, void *unused) {
    (void)unused;
    work(&null_allocator, member);
}

/* What is left when all have ended; on the clock it would be one thread's work. The null allocator's pools are gone by
 * then. */
static uint64_t empty_table(const struct allocator *a) {
    uint64_t checksum = 0;
    for (uint64_t i = 0; i < places; i++) {
        const uintptr_t found = atomic_exchange_explicit(&table[i], 0, memory_order_relaxed);
        if (found != 0 && a == &measured)
            checksum += take_apart(a, found);
    }
    return checksum;
}

static struct measurement run(const struct allocator *a, void (*member)(size_t, void *), uint64_t count,
                              size_t null_pool) {
    blocks_each = count;
    const double seconds = crew_run((struct crew){threads, member, NULL, null_pool});
    struct measurement result = {2 * threads * count, seconds, empty_table(a)};
    for (uint64_t i = 0; i < threads; i++)
        result.checksum += workers[i].checksum;
    return result;
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (least > most)
        program_refuse("--least is above --most");
    table = store_take(places * sizeof *table);
    draws = store_take(DRAWS * sizeof *draws);
    workers = store_take(threads * sizeof *workers);
    struct random random;
    random_seed(&random, 11);
    for (size_t i = 0; i < DRAWS; i++)
        draws[i] = (struct draw){random_below(&random, places), random_between(&random, least, most)};
    const uint64_t each = operations / 2 / threads == 0 ? 1 : operations / 2 / threads;
    const struct measurement result = run(&measured, work_measured, each, 0);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor()) {
        const size_t pool = null_pool_for(places * most / 2 / threads, most, threads);
        report_floor_of(run(&null_allocator, work_floor, each / 8 == 0 ? 1 : each / 8, pool), result);
    } else {
        report_no_floor();
    }
    report_real("ns_per_pair", result.seconds * 2e9 / (double)result.operations);
    report_close();
    return 0;
}
