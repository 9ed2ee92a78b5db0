/* Every single call of malloc and of free timed, in four kinds of program: one that replaces blocks of mixed sizes, one that
 * serves requests, one that fills and drops memory in phases with pauses, one whose threads live shortly. malloc is told alone
 * and with the first write of its block: latency.h says why. */
#define _GNU_SOURCE
#include "block.h"
#include "crew.h"
#include "latency.h"
#include "random.h"
#include "report.h"
#include "store.h"

#include <math.h>
#include <stdatomic.h>

enum {
    DRAWS = 1 << 14,
    TURN_STEP = 0x1E3779B9, /* of 2^32, as slots are drawn: no fraction of few turns */
    PAGE_BYTES = 4096,
    REQUEST_LEAST = 8,
    REQUEST_MOST = 40,
    REQUESTS_TO_A_SWAP = 4
};
enum { MIXED, SERVER, PHASES, CHURN };

static const char *const kinds[] = {"mixed", "server", "phases", "churn", NULL};
static uint64_t kind = MIXED, threads = 1, blocks = 10000, least = 16, most = 32 << 10, operations = 4000000,
                pause_ms = 200;

static const struct parameter parameters[] = {
    {"kind", CHOICE, &kind, 0, 0, kinds, "of program"},
    {"threads", COUNT, &threads, 1, CREW_MOST, NULL, "at a time; of churn the creators"},
    {"blocks", COUNT, &blocks, 2, 1u << 28, NULL, "alive in a thread; of server those that all threads share"},
    {"least", BYTES, &least, BLOCK_LEAST, 1 << 30, NULL, "size of a block"},
    {"most", BYTES, &most, BLOCK_LEAST, 1 << 30, NULL, "size of a block; of two doublings each is as likely"},
    {"operations", COUNT, &operations, 2, 1e12, NULL, "mallocs and frees of all threads, about"},
    {"pause-ms", COUNT, &pause_ms, 0, 60000, NULL, "in phases, when half of the memory is freed and when all is"},
};
static const struct program program = {"tails", "How long each call takes, up to the longest.", parameters,
                                       sizeof parameters / sizeof *parameters};

/* Drawn before the clock; every thread goes through them from a place of its own on. As `draws` has it a slot is a share of
 * all, in parts of 2^32. */
struct draw {
    uint32_t slot, size;
};

struct thread {
    struct latency latency;
    void **table;
    uint64_t life, checksum; /* a sum: the order of the threads does not count */
};

static struct draw *draws;
static struct thread *every;
static uint64_t operations_each;
/* Of server: each place has a size of its own and is its block's owner. Release and acquire: who takes a block out reads
 * the marks that another thread wrote. */
static _Atomic(void *) *places;

/* Each turn of the draws goes to other places: in the same ones over and over, 19 of 100 among 10,000 would never be drawn. */
static struct draw drawn(const struct thread *me, uint64_t number) {
    const uint64_t at = (uint64_t)(me - every) * 997 + number;
    struct draw draw = draws[at % DRAWS];
    draw.slot = (uint32_t)((uint32_t)(draw.slot + at / DRAWS * TURN_STEP) * blocks >> 32);
    return draw;
}

static size_t size_of(const struct thread *me, uint64_t number) { return drawn(me, number).size; }

static void give(struct thread *me, void *block, size_t size, uint64_t owner) {
    me->checksum += block_give(&timed, block, size, owner);
}

/* --- mixed: a random block is replaced by one of another size --- */

static void mixed(struct thread *me) {
    uint32_t *sizes = store_take(blocks * sizeof *sizes);
    for (uint64_t i = 0; i < blocks; i++) {
        sizes[i] = (uint32_t)size_of(me, i);
        me->table[i] = block_take(&timed, sizes[i], i);
    }
    for (uint64_t i = 0; i + blocks < operations_each / 2; i++) {
        const struct draw draw = drawn(me, i);
        give(me, me->table[draw.slot], sizes[draw.slot], draw.slot);
        sizes[draw.slot] = draw.size;
        me->table[draw.slot] = block_take(&timed, draw.size, draw.slot);
    }
    for (uint64_t i = 0; i < blocks; i++)
        give(me, me->table[i], sizes[i], i);
    store_return(sizes, blocks * sizeof *sizes);
}

/* --- server: blocks live as long as a request; at times one replaces a block that all threads share --- */

static size_t size_at(uint64_t place) { return draws[place % DRAWS].size; }

static void swap(struct thread *me, uint64_t place) {
    void *fresh = block_take(&timed, size_at(place), place);
    give(me, atomic_exchange_explicit(&places[place], fresh, memory_order_acq_rel), size_at(place), place);
}

static void server(struct thread *me) {
    void *of_request[REQUEST_MOST];
    uint64_t number = 0;
    for (uint64_t request = 0; 2 * number < operations_each; request++) {
        const uint64_t first = number, count = REQUEST_LEAST + request * 7 % (REQUEST_MOST - REQUEST_LEAST + 1);
        for (uint64_t i = 0; i < count; i++)
            of_request[i] = block_take(&timed, size_of(me, first + i), i);
        if (request % REQUESTS_TO_A_SWAP == 0)
            swap(me, drawn(me, number).slot);
        for (uint64_t i = count; i-- > 0;)
            give(me, of_request[i], size_of(me, first + i), i);
        number += count;
    }
}

/* --- phases: memory is filled, half of it dropped, then all, each with a pause --- */

static void write_pages(void *block, size_t size) {
    for (size_t at = PAGE_BYTES; at + 2 * sizeof(uint64_t) <= size; at += PAGE_BYTES)
        block_put((unsigned char *)block + at, at);
}

static void phases(struct thread *me) {
    const uint64_t count = operations_each / 2 / blocks == 0 ? 1 : operations_each / 2 / blocks;
    for (uint64_t phase = 0; phase < count; phase++) {
        for (uint64_t i = 0; i < blocks; i++) {
            me->table[i] = block_take(&timed, size_of(me, i), i);
            write_pages(me->table[i], size_of(me, i));
        }
        for (uint64_t i = 0; i < blocks; i++) {
            if (i == blocks / 2)
                sleep_until(moment_ns() + pause_ms * 1000000u);
            give(me, me->table[i], size_of(me, i), i);
        }
        sleep_until(moment_ns() + pause_ms * 1000000u);
    }
}

/* --- churn: a short-lived thread allocates, frees half, allocates again; what it leaves its creator frees --- */

static void take_some(struct thread *me, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++)
        me->table[i] = block_take(&timed, size_of(me, me->life + i), i);
}

static void give_some(struct thread *me, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++)
        give(me, me->table[i], size_of(me, me->life + i), i);
}

static void *life(void *argument) {
    struct thread *me = argument;
    latency_into(&me->latency); /* the creator waits and times nothing */
    take_some(me, 0, blocks);
    give_some(me, 0, blocks / 2);
    take_some(me, 0, blocks / 2);
    give_some(me, 0, blocks - blocks / 10);
    return NULL;
}

static void churn(struct thread *me) {
    const uint64_t count = operations_each / 3 / blocks == 0 ? 1 : operations_each / 3 / blocks;
    for (me->life = 0; me->life < count; me->life++) {
        crew_life(life, me);
        give_some(me, blocks - blocks / 10, blocks);
    }
}

/* --- all of them --- */

static void work(size_t member, void *unused) {
    (void)unused;
    static void (*const works[])(struct thread *) = {mixed, server, phases, churn};
    latency_into(&every[member].latency);
    works[kind](&every[member]);
}

/* Sizes whose logarithms are spread evenly: many are small, as programs have it, and some are large. */
static void draw_all(void) {
    struct random random;
    random_seed(&random, 17);
    for (size_t i = 0; i < DRAWS; i++) {
        const double share = (double)random_below(&random, 1u << 24) / (1u << 24);
        const double size = (double)least * pow((double)most / (double)least, share);
        draws[i] = (struct draw){random_below(&random, 1ull << 32), (uint32_t)size};
    }
}

static void open_places(void) {
    latency_into(&every[0].latency);
    places = store_take(blocks * sizeof *places);
    for (uint64_t i = 0; i < blocks; i++)
        atomic_init(&places[i], block_take(&timed, size_at(i), i));
}

static void close_places(void) {
    for (uint64_t i = 0; i < blocks; i++)
        give(&every[0], atomic_load_explicit(&places[i], memory_order_acquire), size_at(i), i);
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (least > most)
        program_refuse("--least is above --most");
    operations_each = operations / threads;
    draws = store_take(DRAWS * sizeof *draws);
    draw_all();
    every = store_take(threads * sizeof *every);
    for (uint64_t i = 0; kind != SERVER && i < threads; i++)
        every[i].table = store_take(blocks * sizeof *every[i].table);
    struct latency *all = store_take(sizeof *all);
    latency_open(all);
    if (kind == SERVER)
        open_places();
    struct measurement result = {.seconds = crew_run((struct crew){threads, work, NULL, 0})};
    if (kind == SERVER)
        close_places();
    for (uint64_t i = 0; i < threads; i++) {
        latency_add(all, &every[i].latency);
        result.checksum += every[i].checksum;
    }
    result.operations = latency_calls(&all->of[LATENCY_MALLOC]) + latency_calls(&all->of[LATENCY_FREE]);

    report_open(&program);
    report_measurement(result);
    report_no_floor();
    latency_report(all);
    report_close();
    return 0;
}
