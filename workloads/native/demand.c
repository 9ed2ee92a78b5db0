/* Programs whose demand changes in kind: what the heap keeps of one kind of block does not fit the next one. The figures are the
 * live bytes and the resident set, at the peak, after the work, and after a sleep in which some blocks are still alive.
 *
 *   phases    each phase takes --live bytes in blocks of one size, then frees all but one in --keep, at random
 *   sawtooth  the live bytes rise to --live and fall to a quarter, sizes and frees at random
 *   growth    --blocks arrays grow at random by 64 to 264 bytes, through realloc, up to --live bytes
 *   cache     a table of --live bytes: a new entry for each oldest one, sizes drift from --least to --most
 *   replace   --blocks slots, each freed and taken anew at random, sizes from --least to --most, all as likely in each power of two
 *
 * A block is written once in each 1 KiB, and its first and last word are checked when it is freed. */
#include "block.h"
#include "crew.h"
#include "moment.h"
#include "random.h"
#include "report.h"
#include "resident.h"
#include "store.h"

#include <math.h>

enum kind { PHASES, SAWTOOTH, GROWTH, CACHE, REPLACE };
static const char *const kinds[] = {"phases", "sawtooth", "growth", "cache", "replace", NULL};
enum { TOUCH = 1024, STEP_LEAST = 64, STEP_MOST = 264, SECONDS_MOST = 3600 };

static uint64_t kind = PHASES, live = 100 << 20, phases = 6, keep = 10, blocks = 10000, least = 24, most = 4800;
static uint64_t operations = 2000000, threads = 1, idle;

static const struct parameter parameters[] = {
    {"kind", CHOICE, &kind, 0, 0, kinds, "of demand"},
    {"live", BYTES, &live, 1 << 16, UINT64_C(1) << 40, NULL, "bytes of all threads together"},
    {"phases", COUNT, &phases, 1, 1000, NULL, "of different sizes (phases), of filling and freeing (sawtooth)"},
    {"keep", COUNT, &keep, 1, 1e6, NULL, "one block in so many outlives its phase"},
    {"blocks", COUNT, &blocks, 1, 1 << 24, NULL, "arrays (growth) or slots (replace) of all threads together"},
    {"least", BYTES, &least, BLOCK_LEAST, 1 << 30, NULL, "size of a block"},
    {"most", BYTES, &most, BLOCK_LEAST, 1 << 30, NULL, "size of a block"},
    {"operations", COUNT, &operations, 1, 1e12, NULL, "of all threads together (cache, replace)"},
    {"threads", COUNT, &threads, 1, CREW_MOST, NULL, "each with its share of all of it (cache, replace)"},
    {"idle", COUNT, &idle, 0, SECONDS_MOST, NULL, "seconds of sleep after the work, before the last blocks are freed"},
};
static const struct program program = {"demand", "Demand for memory that changes in kind: what stays resident.",
                                       parameters, sizeof parameters / sizeof *parameters};

/* One thread's blocks: a ring in the kind `cache`, else a list. A block's owner is its place. */
struct share {
    void **blocks;
    uint32_t *sizes;
    uint64_t room, first, count, bytes, peak;
    uint64_t operations, checksum;
    struct random random;
};

static struct share *shares;

static void touch(void *block, size_t from, size_t to, uint64_t owner) {
    for (size_t at = from; at < to; at += TOUCH)
        ((volatile unsigned char *)block)[at] = (unsigned char)at;
    block_sign(block, to, owner);
}

static void put(struct share *s, uint64_t place, size_t size) {
    s->blocks[place] = take(&measured, size);
    touch(s->blocks[place], 0, size, place);
    s->sizes[place] = (uint32_t)size;
    s->bytes += size;
    s->peak = s->bytes > s->peak ? s->bytes : s->peak;
    s->operations++;
}

static void drop(struct share *s, uint64_t place) {
    s->checksum = checksum_add(s->checksum, block_give(&measured, s->blocks[place], s->sizes[place], place));
    s->blocks[place] = NULL;
    s->bytes -= s->sizes[place];
    s->operations++;
}

/* From `least` to `most` as `part` goes from 0 to 1, by equal factors. */
static double between(double part) { return (double)least * pow((double)most / (double)least, part); }

static size_t any_size(struct random *random) {
    const double part = (double)random_below(random, UINT64_C(1) << 32) * 0x1p-32;
    return (size_t)between(part);
}

/* Frees of the blocks from `from` on, in random order, down to `count` of them. Their places change, so each is signed anew. */
static void thin(struct share *s, uint64_t from, uint64_t count) {
    while (s->count - from > count) {
        const uint64_t place = from + random_below(&s->random, s->count - from), last = --s->count;
        drop(s, place);
        if (place != last) {
            (void)block_check(&measured, s->blocks[last], s->sizes[last], last);
            s->blocks[place] = s->blocks[last];
            s->sizes[place] = s->sizes[last];
            block_sign(s->blocks[place], s->sizes[place], place);
        }
    }
}

static void run_phases(struct share *s) {
    for (uint64_t phase = 0; phase < phases; phase++) {
        const size_t size = (size_t)between(phases == 1 ? 0 : (double)phase / (double)(phases - 1));
        const uint64_t from = s->count;
        for (uint64_t taken = 0; taken < live; taken += size)
            put(s, s->count++, size);
        thin(s, from, (s->count - from) / keep);
    }
}

static void run_sawtooth(struct share *s) {
    for (uint64_t phase = 0; phase < phases; phase++) {
        while (s->bytes < live)
            put(s, s->count++, any_size(&s->random));
        thin(s, 0, s->count / 4);
    }
}

static void run_growth(struct share *s) {
    for (; s->count < blocks; s->count++)
        put(s, s->count, least);
    while (s->bytes < live) {
        const uint64_t place = random_below(&s->random, blocks);
        const size_t before = s->sizes[place], size = before + random_between(&s->random, STEP_LEAST, STEP_MOST);
        (void)block_check(&measured, s->blocks[place], before, place);
        void *block = measured.realloc(s->blocks[place], size);
        if (block == NULL)
            out_of_memory(size);
        touch(block, before, size, place);
        s->blocks[place] = block;
        s->sizes[place] = (uint32_t)size;
        s->bytes += size - before;
        s->operations++;
    }
    s->peak = s->bytes;
}

static void drop_oldest(struct share *s) {
    drop(s, s->first);
    s->first = (s->first + 1) % s->room;
    s->count--;
}

static void run_cache(struct share *s) {
    const uint64_t turns = operations / threads, limit = live / threads;
    uint64_t next = 0;
    for (uint64_t turn = 0; turn < turns; turn++) {
        const double base = between((double)turn / (double)turns) / 2;
        const size_t size = BLOCK_LEAST + (size_t)base + random_below(&s->random, (uint64_t)base + 1);
        while (s->count > 0 && (s->bytes + size > limit || s->count == s->room)) {
            drop_oldest(s);
        }
        put(s, next, size);
        next = (next + 1) % s->room;
        s->count++;
        /* A hit: the entry goes to the end, and another one is the oldest. */
        const uint64_t hit = (s->first + random_below(&s->random, s->count)) % s->room,
                       last = (next + s->room - 1) % s->room;
        if (hit != last) {
            (void)block_check(&measured, s->blocks[hit], s->sizes[hit], hit);
            (void)block_check(&measured, s->blocks[last], s->sizes[last], last);
            void *block = s->blocks[hit];
            const uint32_t bytes = s->sizes[hit];
            s->blocks[hit] = s->blocks[last];
            s->sizes[hit] = s->sizes[last];
            s->blocks[last] = block;
            s->sizes[last] = bytes;
            block_sign(s->blocks[hit], s->sizes[hit], hit);
            block_sign(s->blocks[last], s->sizes[last], last);
        }
    }
}

static void run_replace(struct share *s) {
    const uint64_t slots = blocks / threads;
    for (; s->count < slots; s->count++)
        put(s, s->count, any_size(&s->random));
    for (uint64_t turn = 0; turn < operations / threads; turn++) {
        const uint64_t place = random_below(&s->random, slots);
        drop(s, place);
        put(s, place, any_size(&s->random));
    }
    for (uint64_t place = 0; place < slots; place += 2) { /* half of it goes before the sleep */
        drop(s, place);
    }
}

static void work(size_t member, void *context) {
    (void)context;
    static void (*const runs[])(struct share *) = {run_phases, run_sawtooth, run_growth, run_cache, run_replace};
    runs[kind](&shares[member]);
}

/* Nine tenths of a cache's bytes are freed before the sleep; the other kinds have thinned out by then, or keep all. */
static void finish(struct share *s) {
    if (kind == CACHE)
        while (s->count > 0 && s->bytes > live / threads / 10)
            drop_oldest(s);
}

static uint64_t room_for(void) {
    switch (kind) {
    case PHASES:
        return live / least + live / keep * phases / least + phases * 2;
    case SAWTOOTH:
    case CACHE:
        return live / threads / least + 2;
    default:
        return blocks;
    }
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (most < least)
        program_refuse("--most must be at least --least");
    if (threads > 1 && kind != CACHE && kind != REPLACE)
        program_refuse("--threads is for the kinds cache and replace");
    shares = store_take(threads * sizeof *shares);
    for (uint64_t i = 0; i < threads; i++) {
        struct share *s = &shares[i];
        s->room = room_for();
        s->blocks = store_take(s->room * sizeof *s->blocks);
        s->sizes = store_take(s->room * sizeof *s->sizes);
        random_seed(&s->random, 17 + i);
    }
    struct measurement result = {0};
    result.seconds = crew_run((struct crew){.threads = threads, .work = work});
    uint64_t peak = 0, left = 0;
    const uint64_t resident_after = resident_kib(), asleep = moment_ns();
    for (uint64_t i = 0; i < threads; i++)
        finish(&shares[i]);
    for (uint64_t i = 0; i < threads; i++) {
        peak += shares[i].peak;
        left += shares[i].bytes;
    }
    sleep_until(asleep + idle * 1000000000u);
    const uint64_t resident_idle = resident_kib();
    for (uint64_t i = 0; i < threads; i++) {
        struct share *s = &shares[i];
        for (uint64_t n = 0; n < s->count || (kind == REPLACE && n < s->room); n++) {
            const uint64_t place = (s->first + n) % s->room;
            if (s->blocks[place] != NULL)
                drop(s, place);
        }
        result.operations += s->operations;
        result.checksum = checksum_add(result.checksum, s->checksum);
    }

    report_open(&program);
    report_measurement(result);
    report_no_floor();
    report_count("live_kib_peak", peak / 1024);
    report_count("live_kib_idle", left / 1024);
    report_count("rss_kib_after", resident_after);
    if (idle != 0)
        report_count("rss_kib_idle", resident_idle);
    report_close();
    return 0;
}
