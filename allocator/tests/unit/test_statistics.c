/* freestone_stats_read and mallinfo2, asked while threads run: their parts are read one after the other, and whatever
 * comes or goes in between, no figure becomes what cannot be. At rest they follow each block. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "allocate.h"
#include "freestone.h"
#include "looks.h"
#include "options.h"
#include "pattern.h"
#include "resident.h"
#include "scenario.h"

static void *take(size_t size) {
    void *block = allocate_slow(size);
    EXPECT(block != NULL, "no memory");
    return block;
}

static struct freestone_stats stats_now(void) {
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    return stats;
}

static atomic_bool stop;

/* Slabs that come and go all the time, of several slices each; and spans and mappings. */
static void *churn(void *argument) {
    enum { BLOCKS = 64 };
    static const size_t sizes[] = {200000, 16, 100000, (size_t)1 << 20, (size_t)129 << 20};
    void *block[BLOCKS];
    for (size_t round = 0; !atomic_load(&stop); round++) {
        size_t size = sizes[round % 5];
        size_t count = size > CLASS_LARGEST ? 1 : BLOCKS;
        for (size_t i = 0; i < count; i++) {
            block[i] = take(size);
        }
        for (size_t i = 0; i < count; i++) {
            release_slow(block[i], MADE_BY_MALLOC);
        }
        thread_cache_flush();
        look_trim();
    }
    return argument;
}

/* All the threads' blocks are far below the bound, a figure that wrapped is far above. */
static void never_wrap(void) {
    enum { THREADS = 3 };
    const size_t most = (size_t)1 << 32;
    pthread_t thread[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, churn, NULL) == 0, "no thread");
    }
    for (int i = 0; i < (SCENARIO_SANITIZED ? 5000 : 50000); i++) {
        struct freestone_stats s = stats_now();
        EXPECT(s.in_use <= most && s.large <= s.in_use && s.slabs <= most && s.free_blocks <= most &&
                   s.retained <= most,
               "in use %zu, large %zu, slabs %zu, free %zu, retained %zu", s.in_use, s.large, s.slabs, s.free_blocks,
               s.retained);
        EXPECT(s.mapped <= s.large, "%zu bytes mapped of %zu large ones", s.mapped, s.large);
        struct mallinfo2 info = mallinfo2();
        EXPECT(info.arena <= most && info.uordblks <= most && info.hblkhd <= most && info.fordblks <= most &&
                   info.hblks <= THREADS,
               "arena %zu, uordblks %zu, hblkhd %zu, fordblks %zu, hblks %zu", info.arena, info.uordblks, info.hblkhd,
               info.fordblks, info.hblks);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
}

/* What one block changes, at rest: its own bytes, where it belongs. */
static void follow_each_block(void) {
    static const struct {
        size_t size, counted, mappings;
    } blocks[] = {
        /* a page less a byte: wherever in their first page they start, they end in the last one */
        {((size_t)1 << 20) - 4095, (size_t)1 << 20, 0},
        {((size_t)10 << 20) - 4095, (size_t)10 << 20, 0},
        {((size_t)129 << 20) - 4095, (size_t)129 << 20, 1},
    };
    release_slow(take(1), MADE_BY_MALLOC);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        struct freestone_stats before = stats_now();
        struct mallinfo2 info_before = mallinfo2();
        void *block = take(blocks[i].size);
        struct freestone_stats with = stats_now();
        struct mallinfo2 info = mallinfo2();
        size_t mapped = blocks[i].mappings * blocks[i].counted;
        EXPECT(with.in_use == before.in_use + blocks[i].counted && with.large == before.large + blocks[i].counted,
               "%zu bytes: in use from %zu to %zu", blocks[i].size, before.in_use, with.in_use);
        EXPECT(with.mappings == before.mappings + blocks[i].mappings && with.mapped == before.mapped + mapped,
               "%zu bytes: %zu mappings of %zu bytes", blocks[i].size, with.mappings, with.mapped);
        EXPECT(info.hblks == with.mappings && info.hblkhd == with.mapped &&
                   info.uordblks + info.hblkhd == info_before.uordblks + info_before.hblkhd + blocks[i].counted,
               "%zu bytes: mallinfo2 says %zu in %zu mappings, %zu in the arena", blocks[i].size, info.hblkhd,
               info.hblks, info.uordblks);
        release_slow(block, MADE_BY_MALLOC);
        EXPECT(stats_now().in_use == before.in_use, "%zu bytes freed are in use", blocks[i].size);
    }
}

/* The size in the element of malloc_info that begins so. */
static size_t size_by_info(const char *element) {
    char *text = NULL;
    size_t length = 0, size = 0;
    FILE *out = open_memstream(&text, &length);
    EXPECT(out != NULL && malloc_info(0, out) == 0 && fclose(out) == 0, "no malloc_info");
    const char *at = strstr(text, element);
    EXPECT(at != NULL && sscanf(at + strlen(element), " size=\"%zu\"", &size) == 1, "it says %s", text);
    free(text);
    return size;
}

/* Pages of free blocks that the kernel has back are told, until they are used again. */
static void clean_pages_are_told(void) {
    enum { BLOCKS = 20000, SIZE = 1000, KEPT_EACH = 64 };
    static void *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = take(SIZE);
        memset(block[i], 1, SIZE);
    }
    size_t resident = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % KEPT_EACH != 0) {
            release_slow(block[i], MADE_BY_MALLOC);
        }
    }
    (void)freestone_purge();
    struct freestone_stats s = stats_now();
    size_t back = (resident - resident_kib()) << 10;
    EXPECT(s.clean > BLOCKS * SIZE / 2 && s.clean <= s.free_blocks && s.clean <= s.slabs,
           "%zu bytes of %zu free ones in slabs of %zu are clean", s.clean, s.free_blocks, s.slabs);
    EXPECT(SCENARIO_SANITIZED || (s.clean < back + back / 8 && back < s.clean + s.clean / 8),
           "%zu bytes are clean, the kernel has %zu back", s.clean, back);
    size_t current = size_by_info("<system type=\"current\"");
    EXPECT(current == mallinfo2().arena, "malloc_info says %zu, mallinfo2 %zu", current, mallinfo2().arena);
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = i % KEPT_EACH != 0 ? take(SIZE) : block[i];
    }
    EXPECT(stats_now().clean < s.clean / 8, "%zu bytes are clean, %zu before", stats_now().clean, s.clean);
    for (size_t i = 0; i < BLOCKS; i++) {
        release_slow(block[i], MADE_BY_MALLOC);
    }
}

/* Of slabs that empty after most of their pages have gone back, what is left is retained, and purging gives back no more than that. */
static void nothing_is_retained_twice(void) {
    enum { BLOCKS = 40000, SIZE = 1000, KEPT_EACH = 64, SLACK = 1 << 20 };
    static void *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = take(SIZE);
        memset(block[i], 1, SIZE);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % KEPT_EACH != 0) {
            release_slow(block[i], MADE_BY_MALLOC);
        }
    }
    (void)freestone_purge();
    for (size_t i = 0; i < BLOCKS; i += KEPT_EACH) {
        release_slow(block[i], MADE_BY_MALLOC);
    }
    struct freestone_stats s = stats_now();
    EXPECT(s.retained < BLOCKS * SIZE / 8, "%zu bytes are retained", s.retained);
    EXPECT(mallinfo2().keepcost == s.retained, "mallinfo2 says %zu of %zu", mallinfo2().keepcost, s.retained);
    size_t resident = resident_kib();
    size_t purged = freestone_purge();
    size_t back = (resident - resident_kib()) << 10;
    EXPECT(SCENARIO_SANITIZED || (purged < back + SLACK && back < purged + SLACK),
           "%zu bytes are said to be purged, the kernel has %zu back", purged, back);
    EXPECT(stats_now().purged == s.purged + purged, "%zu bytes were purged before, %zu now, that is %zu in all",
           s.purged, purged, stats_now().purged);
}

static void json_agrees(void) {
    char text[1024], short_text[10];
    release_slow(take(1), MADE_BY_MALLOC);
    int length = freestone_stats_json(text, sizeof text);
    EXPECT(length > 0 && (size_t)length == strlen(text), "%d characters: %s", length, text);
    int most = freestone_stats_json(NULL, 0);
    EXPECT(most >= length && freestone_stats_json(short_text, sizeof short_text) == most &&
               freestone_stats_json(text, (size_t)length) == most,
           "%d characters of %d fit", most, length);
    EXPECT(freestone_stats_json(text, (size_t)length + 1) == length, "what just fits is cut");
    EXPECT(strncmp(text, short_text, 9) == 0 && short_text[9] == '\0', "it says '%s'", short_text);
    struct freestone_stats s = stats_now();
    const struct {
        const char *key;
        size_t value;
    } fields[] = {
        {"reserved", s.reserved}, {"extent", s.extent}, {"in_use", s.in_use},
        {"large", s.large},       {"slabs", s.slabs},   {"free_blocks", s.free_blocks},
        {"retained", s.retained}, {"purged", s.purged}, {"bookkeeping", s.bookkeeping},
        {"mappings", s.mappings}, {"mapped", s.mapped}, {"heaps", s.heaps},
        {"clean", s.clean},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "\"%s\": %zu", fields[i].key, fields[i].value);
        EXPECT(strstr(text, wanted) != NULL, "%s is not in %s", wanted, text);
    }
}

/* Two million blocks of 16 to 256 bytes: tags, descriptors, bitmaps, magazines and caches are less than 2 % of what they hold. */
static void metadata_is_small(void) {
    enum { BLOCKS = SCENARIO_SANITIZED ? 400000 : 2000000 };
    static void *block[BLOCKS];
    uint64_t random = 6;
    for (size_t i = 0, next = 125000; i < BLOCKS; i++) {
        block[i] = take(16 + pattern_below(&random, 241));
        if (i + 1 == next) { /* from 18 MB on, whatever the tables have doubled to */
            struct freestone_stats s = stats_now();
            printf("metadata: %zu of %zu bytes in use, %.2f %%\n", s.bookkeeping, s.in_use,
                   100.0 * (double)s.bookkeeping / (double)s.in_use);
            EXPECT(s.bookkeeping * 50 < s.in_use, "%zu bytes of bookkeeping for %zu in use", s.bookkeeping, s.in_use);
            next += next / 3;
        }
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        release_slow(block[i], MADE_BY_MALLOC);
    }
}

/* mallinfo's fields are ints: what does not fit shows as the largest. */
static void mallinfo_is_clipped(void) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    void *block = allocate_slow((size_t)5 << 30);
    if (block == NULL) {
        return; /* a machine with less, or a limit */
    }
    struct mallinfo info = mallinfo();
    EXPECT(info.hblkhd == INT32_MAX && info.hblks == 1, "5 GiB are %d bytes in %d mappings", info.hblkhd, info.hblks);
    release_slow(block, MADE_BY_MALLOC);
    EXPECT(mallinfo().hblkhd == 0, "%d bytes are mapped", mallinfo().hblkhd);
#pragma GCC diagnostic pop
}

/* What docs/reference/options.md promises of mallopt. */
static void mallopt_sets_options(void) {
    EXPECT(mallopt(M_TRIM_THRESHOLD, 5 << 20) == 1 && option_value(OPTION_RETAIN_MIB) == 5, "5 MiB: %u",
           option_value(OPTION_RETAIN_MIB));
    EXPECT(mallopt(M_TRIM_THRESHOLD, 100) == 1 && option_value(OPTION_RETAIN_MIB) == 0, "100 bytes: %u",
           option_value(OPTION_RETAIN_MIB));
    option_set(OPTION_RETAIN_MS, 77);
    option_set(OPTION_KEEPER, KEEPER_ALWAYS);
    for (int i = 0; i < 2; i++) {
        EXPECT(mallopt(M_TRIM_THRESHOLD, -1) == 1 && option_value(OPTION_RETAIN_MIB) == RETAIN_ALL_MIB &&
                   option_value(OPTION_RETAIN_MS) == RETAIN_FOR_EVER && option_value(OPTION_KEEPER) == 0,
               "-1: %u MiB, %u ms, keeper %u", option_value(OPTION_RETAIN_MIB), option_value(OPTION_RETAIN_MS),
               option_value(OPTION_KEEPER));
    }
    EXPECT(mallopt(M_TRIM_THRESHOLD, 1 << 20) == 1 && option_value(OPTION_RETAIN_MIB) == 1 &&
               option_value(OPTION_RETAIN_MS) == 77 && option_value(OPTION_KEEPER) == KEEPER_ALWAYS,
           "1 MiB after -1: %u MiB, %u ms, keeper %u", option_value(OPTION_RETAIN_MIB), option_value(OPTION_RETAIN_MS),
           option_value(OPTION_KEEPER));
    EXPECT(mallopt(M_ARENA_MAX, 3) == 1 && option_value(OPTION_HEAPS) == 3, "3 arenas: %u", option_value(OPTION_HEAPS));
    EXPECT(mallopt(M_ARENA_MAX, 0) == 1 && option_value(OPTION_HEAPS) == 0, "0 arenas: %u", option_value(OPTION_HEAPS));
    EXPECT(mallopt(M_ARENA_MAX, -1) == 1 && option_value(OPTION_HEAPS) == 0, "-1: %u", option_value(OPTION_HEAPS));
    EXPECT(mallopt(M_MMAP_THRESHOLD, 1) == 1 && mallopt(M_TOP_PAD, 1) == 1 && mallopt(M_MMAP_MAX, 1) == 1,
           "a knob of parts that are not here is refused");
    EXPECT(mallopt(12345, 1) == 1, "an unknown knob is refused; glibc takes it");
}

static const struct scenario scenarios[] = {
    {"never_wrap", never_wrap},
    {"follow_each_block", follow_each_block},
    {"clean_pages_are_told", clean_pages_are_told},
    {"nothing_is_retained_twice", nothing_is_retained_twice},
    {"json_agrees", json_agrees},
    {"metadata_is_small", metadata_is_small},
    {"mallinfo_is_clipped", mallinfo_is_clipped},
    {"mallopt_sets_options", mallopt_sets_options},
};

SCENARIO_MAIN(scenarios)
