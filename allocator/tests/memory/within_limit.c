/* limit_mib is kept: an allocation that would go beyond it returns NULL and ENOMEM, after what is free has gone back, and the program goes on. The
 * library's count for the limit equals its other figures, and the kernel counts no more. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "cases.h"
#include "entry.h"
#include "expect.h"
#include "figures.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

enum { MIB = 1 << 20, MOST = 1 << 18 };

/* Beside what is counted: the library's own books, code, stacks. */
enum { BESIDE_KIB = 8 * 1024 };

static void *blocks[MOST];
static size_t resident_before, limit;

static void *write_all(void *block, size_t size) { return block == NULL ? NULL : memset(block, 1, size); }

static void expect_within(const char *when) {
    size_t held = figure("held"), more = resident_more_kib(resident_kib(), resident_before);
    EXPECT(held <= limit, "%s: %zu bytes are held", when, held);
    EXPECT(more <= limit / 1024 + BESIDE_KIB, "%s: %zu KiB are in memory", when, more);
}

/* All that the parts hold, if nobody else works. */
static void expect_counted(const char *when) {
    size_t parts = figure("slabs") - figure("clean") + figure("large") + figure("retained"), held = figure("held");
    EXPECT(held == parts, "%s: held are %zu bytes, the parts %zu", when, held, parts);
}

/* Blocks of that size until there are no more; returns how many. */
static size_t fill(size_t from, size_t size) {
    size_t count = from;
    while (count < MOST && (errno = 0, blocks[count] = unseen(write_all(malloc(size), size))) != NULL) {
        count++;
    }
    EXPECT(count < MOST, "blocks of %zu bytes have no end", size);
    EXPECT(errno == ENOMEM, "errno is %d", errno);
    expect_within("full");
    expect_counted("full");
    return count - from;
}

static void empty(size_t from, size_t count) {
    for (size_t i = from; i < from + count; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

/* As good as all of the limit, again and again, and by one size after the other: what others have left goes back first. */
static void every_size(void) {
    static const size_t sizes[] = {16, 100, 1000, 5000, 40000, 200000, 300000, 3000000};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t size = sizes[i];
            if (limit / size >= MOST) {
                continue;
            }
            size_t count = fill(0, size);
            EXPECT(count * size > limit / 8 * 5, "of %zu bytes only %zu blocks", size, count);
            empty(0, count);
        }
    }
    EXPECT(figure("limit_met") > 0 && figure("limit_refused") >= 2, "it was met %zu times and refused %zu",
           figure("limit_met"), figure("limit_refused"));
}

/* Free pages between small blocks in use are as good as any. */
static void between_blocks(void) {
    enum { SIZE = 1000, APART = 64 };
    size_t count = fill(0, SIZE);
    for (size_t i = 0; i < count; i++) {
        if (i % APART != 0) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    size_t large = limit / 2;
    char *block = unseen(write_all(malloc(large), large));
    EXPECT(block != NULL, "no block of half of the limit, and a sixtieth of it is in use");
    expect_within("beside small blocks");
    free(block);
    size_t others = fill(count, 3 * SIZE);
    EXPECT(others * 3 * SIZE > limit / 8 * 5, "only %zu blocks of another size", others);
    empty(0, count + others);
}

static bool is_zero(const char *block, size_t size) { return block[0] == 0 && memcmp(block, block + 1, size - 1) == 0; }

/* Free blocks on pages that others keep in memory cost nothing: the limit does not refuse them, in whatever slab they lie. */
static void beside_blocks_in_use(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t size = 64; size <= 1024; size *= 4) {
        size_t count = limit / 2 / size, beside = 0, got = 0;
        for (size_t i = 0; i < count; i++) {
            blocks[i] = write_all(malloc(size), size);
            EXPECT(blocks[i] != NULL, "no block %zu", i);
        }
        for (size_t i = count; i-- > 0;) { /* every other page, and of the slabs that came last every other block */
            uintptr_t address = (uintptr_t)blocks[i];
            bool on_free_page = address / page % 2 != 0, has_neighbour = i >= count / 4 * 3 && address / size % 2 != 0;
            if (on_free_page || has_neighbour) {
                empty(i, 1);
                beside += !on_free_page;
            }
        }
        (void)freestone_purge();
        size_t others = fill(count, page);
        for (size_t i = 0; i < count && got < beside; i++) {
            if (blocks[i] == NULL && (blocks[i] = unseen(calloc(1, size))) != NULL) {
                EXPECT(is_zero(blocks[i], size), "calloc gave a block of %zu bytes that is not zero", size);
                got++;
            }
        }
        EXPECT(got >= beside / 16 * 15, "%zu of %zu free blocks of %zu bytes", got, beside, size);
        expect_within("full of small blocks");
        expect_counted("full of small blocks");
        empty(0, count + others);
    }
}

static void expect_refused(void *block, const char *what) {
    EXPECT(block == NULL && errno == ENOMEM, "%s: %p, errno %d", what, block, errno);
    errno = 0;
}

/* Each entry point is refused what is beyond, and nothing of what was there is lost. */
static void entry_points(void) {
    size_t size = limit / 8 * 6, beyond = limit / 8 * 3;
    char *held = unseen(malloc(size));
    EXPECT(held != NULL, "no block of three quarters of the limit");
    memset(held, 7, size);
    void *block = held;
    errno = 0;
    expect_refused(unseen(malloc(beyond)), "malloc");
    expect_refused(unseen(malloc(limit + 1)), "malloc of more than all");
    expect_refused(unseen(calloc(beyond, 1)), "calloc");
    expect_refused(unseen(aligned_alloc(4096, beyond)), "aligned_alloc");
    expect_refused(unseen(realloc(held, size + beyond)), "realloc");
    EXPECT(posix_memalign(&block, 4096, beyond) == ENOMEM && block == held, "posix_memalign: errno %d", errno);
    EXPECT(held[0] == 7 && held[size - 1] == 7, "realloc has changed the block");
    expect_counted("after refusals");
    free(held);
    block = unseen(malloc(beyond));
    EXPECT(block != NULL, "nothing after what was held is free");
    block = realloc(block, size);
    EXPECT(block != NULL, "it cannot grow to three quarters of the limit");
    block = realloc(block, 1000);
    EXPECT(block != NULL, "it cannot shrink");
    free(block);
    expect_counted("after growing");
}

/* A mapping of its own, which the kernel moves. */
static void mappings(void) {
    size_t size = (size_t)200 * MIB;
    EXPECT(limit > size + size / 4 && limit < 2 * size, "the limit suits this test");
    char *block = unseen(malloc(size));
    EXPECT(block != NULL && figure("mappings") == 1, "no mapping");
    errno = 0;
    expect_refused(unseen(malloc(size)), "another");
    expect_refused(unseen(realloc(block, 2 * size)), "realloc");
    block = realloc(block, size + size / 4);
    EXPECT(block != NULL, "it cannot grow within the limit");
    expect_counted("grown");
    block = realloc(block, size);
    EXPECT(block != NULL, "it cannot shrink");
    expect_counted("shrunk");
    char *beside = unseen(malloc(size / 4));
    EXPECT(beside != NULL, "what it left is not to be had");
    free(block);
    block = beside;
    for (size_t now = size / 4; now < size; now += size / 8) { /* out of the heap's addresses, perhaps */
        block = realloc(block, now);
        EXPECT(block != NULL, "it does not grow to %zu", now);
        expect_counted("growing");
    }
    free(block);
}

static _Atomic bool ends;

static void *watch(void *unused) {
    (void)unused;
    while (!ends) {
        expect_within("among threads");
    }
    return NULL;
}

/* Blocks come and go at the limit. */
static void *work(void *number) {
    enum { TABLE = 400, STEPS = 6000 };
    uint64_t random = (uintptr_t)number;
    void **table = calloc(TABLE, sizeof *table);
    size_t refused = 0;
    for (size_t i = 0; table != NULL && i < STEPS; i++) {
        size_t at = pattern_below(&random, TABLE), bits = 4 + pattern_below(&random, 17);
        size_t size = 1 + pattern_below(&random, (size_t)1 << bits);
        free(table[at]);
        table[at] = unseen(write_all(malloc(size), size));
        refused += table[at] == NULL;
    }
    for (size_t at = 0; table != NULL && at < TABLE; at++) {
        free(table[at]);
    }
    free(table);
    return (void *)refused; /* NOLINT(performance-no-int-to-ptr) */
}

static void threads(void) {
    enum { WORKERS = 4 };
    pthread_t watcher, workers[WORKERS];
    EXPECT(pthread_create(&watcher, NULL, watch, NULL) == 0, "no thread");
    for (uintptr_t i = 0; i < WORKERS; i++) {
        EXPECT(pthread_create(&workers[i], NULL, work, (void *)(i + 1)) == 0,
               "no thread"); /* NOLINT(performance-no-int-to-ptr) */
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i], NULL);
    }
    ends = true;
    pthread_join(watcher, NULL);
    EXPECT(figure("limit_met") > 0, "the limit was never near");
    freestone_purge();
    expect_counted("in the end");
}

/* The program itself says how much. */
static void changed(void) {
    enum { SIZE = 100000 };
    size_t count = fill(0, SIZE);
    limit *= 2;
    char text[64];
    snprintf(text, sizeof text, "limit_mib=%zu,retain_mib=1", limit / MIB);
    EXPECT(freestone_set_options(text) == 0, "the limit cannot be changed");
    size_t more = fill(count, SIZE);
    EXPECT(more > count / 8 * 7, "twice the limit has room for %zu blocks and %zu", count, more);
    static const char *const wrong[] = {
        "limit_mib=x",        "limit_mib", "heaps=2",     "harden=0", "limit_mib=1,retain_mib=",
        "limit_mib=99999999", "=1",        "limit_mib=1 "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        errno = 0;
        EXPECT(freestone_set_options(wrong[i]) == -1 && errno == EINVAL, "'%s' was taken", wrong[i]);
    }
    errno = 0;
    EXPECT(freestone_set_options(NULL) == -1 && errno == EINVAL, "NULL was taken");
    EXPECT(figure("limit") == limit, "it is %zu", figure("limit"));
    limit /= 2;
    snprintf(text, sizeof text, "limit_mib=%zu", limit / MIB);
    EXPECT(freestone_set_options(text) == 0, "the limit cannot be lowered");
    expect_refused(unseen(malloc(MIB)), "beyond the lowered limit");
    empty(0, count + more / 8 * 7);
    void *block = unseen(malloc(MIB));
    EXPECT(block != NULL, "nothing within the lowered limit");
    free(block);
    EXPECT(freestone_set_options("limit_mib=0") == 0 && figure("limit") == 0, "it cannot be taken away");
    block = unseen(malloc(4 * limit));
    EXPECT(block != NULL, "there is a limit still");
    free(block);
    empty(count + more / 8 * 7, more - more / 8 * 7);
}

/* Beyond a limit that was lowered nothing free stays: what is there goes back at once, and what comes free later beside the program. */
static void lowered(void) {
    enum { SIZE = 300000, TRIES = 2000 };
    size_t piece = (size_t)sysconf(_SC_PAGESIZE);
    size_t live = limit / 2 / SIZE, freed = limit / 4 / SIZE, small = limit / 8 / piece;
    for (size_t i = 0; i < live + freed; i++) {
        blocks[i] = write_all(malloc(SIZE), SIZE);
        EXPECT(blocks[i] != NULL, "no block %zu", i);
    }
    void **pieces = blocks + live + freed;
    for (size_t i = 0; i < small; i++) {
        pieces[i] = write_all(malloc(piece), piece);
        EXPECT(pieces[i] != NULL, "no small block %zu", i);
    }
    empty(live, freed);
    for (size_t i = 0; i < small; i += 2) {
        free(pieces[i]);
        pieces[i] = NULL;
    }
    char text[64];
    snprintf(text, sizeof text, "limit_mib=%zu", limit / 4 / MIB);
    EXPECT(freestone_set_options(text) == 0, "the limit cannot be lowered");
    size_t retained = figure("retained"), held = figure("held"), in_use = figure("in_use");
    EXPECT(retained == 0 && held < in_use + limit / 64, "%zu bytes are held, %zu in use, %zu retained", held, in_use,
           retained);
    expect_refused(unseen(malloc(SIZE)), "beyond the lowered limit");
    empty(0, live);
    for (int tries = 0; figure("held") > limit / 4; tries++) {
        EXPECT(tries < TRIES, "%zu bytes are held", figure("held"));
        usleep(10000);
    }
    empty(live + freed, small);
}

/* Freed spans that a hardened process holds back cost nothing when their pages have gone back. */
static void held_back(void) {
    enum { SIZE = 300000, ROUNDS = 4 };
    for (int round = 0; round < ROUNDS; round++) {
        size_t count = 0;
        while (count < MOST && (blocks[count] = unseen(write_all(malloc(SIZE), SIZE))) != NULL) {
            count++;
        }
        EXPECT(count * SIZE > limit / 2, "round %d: %zu blocks", round, count);
        empty(0, count);
        (void)freestone_purge();
        size_t slabs = figure("slabs"), others = figure("large") + figure("retained"), held = figure("held");
        EXPECT(held <= slabs + others, "round %d: held are %zu bytes, slabs %zu, others %zu", round, held, slabs,
               others);
    }
}

/* Pages that nobody may touch, before and behind each block of a hardened process, cost nothing, whatever lay there before. */
static void between_guards(void) {
    static const size_t sizes[] = {1000, 20000, 40000, 60000, 130000, 300000, 66000};
    enum { ROUNDS = 2, SHRUNK = 100 };
    for (size_t i = 0; i < ROUNDS * sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i % (sizeof sizes / sizeof *sizes)], filled = 0;
        while (filled < MOST && (blocks[filled] = unseen(write_all(malloc(size), size))) != NULL) {
            filled++;
        }
        expect_within("full");
        EXPECT(filled * size > limit / 8 * 6, "of %zu bytes only %zu blocks", size, filled);
        void *shrunk = realloc(blocks[0], SHRUNK); /* where it is: there is no room for another */
        EXPECT(shrunk != NULL, "it cannot shrink");
        blocks[0] = shrunk;
        expect_within("one shrunk");
        empty(0, filled);
        expect_within("empty");
    }
    (void)freestone_purge();
    size_t slabs = figure("slabs"), held = figure("held"); /* what is held back counts if it can be touched */
    EXPECT(held <= slabs + limit / 8, "held are %zu bytes, slabs %zu", held, slabs);
}

int main(int count, char **argument) {
    require_serving();
    static const struct test_case cases[] = {{"every_size", every_size},
                                             {"between_blocks", between_blocks},
                                             {"beside_blocks_in_use", beside_blocks_in_use},
                                             {"entry_points", entry_points},
                                             {"mappings", mappings},
                                             {"threads", threads},
                                             {"changed", changed},
                                             {"held_back", held_back},
                                             {"between_guards", between_guards},
                                             {"lowered", lowered}};
    resident_before = resident_kib();
    limit = figure("limit");
    EXPECT(limit > 0, "there is no limit");
    run_case(cases, sizeof cases / sizeof *cases, count, argument);
    return 0;
}
