/* At limit_mib a request is refused only if no memory is free: what lies free in spans, in pages of slabs and in caches goes back first, whatever other
 * threads and forks do in the meantime.
 *
 *   at_limit CASE      the limit is in force already */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "cases.h"
#include "entry.h"
#include "expect.h"
#include "figures.h"
#include "serving.h"

enum { MIB = 1 << 20, PIECES_MOST = 1 << 18, BLOCKS_MOST = 1 << 12 };

static void *pieces[PIECES_MOST], *blocks[BLOCKS_MOST];
static size_t limit, page;

/* Small blocks over so many bytes, all of them written. */
static size_t take_pieces(size_t bytes, size_t size) {
    size_t count = bytes / size;
    EXPECT(count <= PIECES_MOST, "%zu blocks", count);
    for (size_t i = 0; i < count; i++) {
        pieces[i] = unseen(malloc(size));
        EXPECT(pieces[i] != NULL, "block %zu of %zu is refused", i, count);
        memset(pieces[i], 1, size);
    }
    return count;
}

/* Frees those whose number divided by `step` leaves less than `less`. */
static void free_pieces(size_t count, size_t step, size_t less) {
    for (size_t i = 0; i < count; i++) {
        if (i % step < less) {
            free(pieces[i]);
            pieces[i] = NULL;
        }
    }
}

/* As many blocks of the size as there are. */
static size_t fill(size_t size) {
    size_t count = 0;
    while (count < BLOCKS_MOST && (blocks[count] = unseen(malloc(size))) != NULL) {
        count++;
    }
    EXPECT(count < BLOCKS_MOST, "blocks of %zu bytes have no end", size);
    return count;
}

static void empty(size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
}

/* Nothing that could go back is left, but for the pages at the edges of what is in use. */
static void expect_nothing_free(const char *when) {
    size_t returned = freestone_purge();
    EXPECT(returned < MIB / 2, "%s: a block was refused, and %zu KiB were free", when, returned / 1024);
}

/* Every other page of most of the heap is free, and no span. Returns the small blocks, and the large ones that fill the rest. */
static size_t leave_pages(size_t *large) {
    size_t count = take_pieces(limit / 8 * 7, page);
    *large = fill(MIB);
    free_pieces(count, 2, 1);
    return count;
}

/* Large blocks are made of free pages of slabs, to the last. */
static void whole_slices(void) {
    size_t large;
    (void)leave_pages(&large);
    size_t had = fill(MIB);
    EXPECT(had * MIB > limit / 4, "%zu blocks of a mebibyte", had);
    expect_nothing_free("large blocks");
}

/* What comes free behind the place up to which slabs were looked through is found too. */
static void behind_the_hand(void) {
    size_t count = take_pieces(limit / 8 * 7, page);
    (void)fill(MIB);
    free_pieces(count, 4, 2);
    EXPECT(unseen(malloc(5 * MIB)) != NULL, "5 MiB are refused where much is free");
    for (size_t i = 0; i < count / 10; i++) {
        if (i % 4 == 2) {
            free(pieces[i]);
        }
    }
    (void)fill(MIB);
    expect_nothing_free("behind the hand");
}

/* Small blocks on pages that the kernel has back need room too: free spans make it. */
static void purged_pages(void) {
    size_t size = page / 2, count = take_pieces(limit / 8 * 5, size);
    free_pieces(count, 32, 31);
    (void)freestone_purge();
    size_t large = fill(MIB);
    EXPECT(large > 10, "%zu blocks", large);
    for (int i = 0; i < 10; i++) {
        free(blocks[--large]);
    }
    size_t got = 0;
    for (void *block; (block = unseen(malloc(size))) != NULL; got++) {
        memset(block, 1, size);
    }
    EXPECT(got * size > 8 * MIB, "10 MiB were freed, and %zu blocks of %zu bytes are had", got, size);
    EXPECT(figure("retained") == 0, "%zu bytes are retained", figure("retained"));
}

/* -- threads ------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 20 };

static pthread_barrier_t barrier;
static atomic_size_t refused;
static atomic_bool stops;

static void *need_one(void *unused) {
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        void *block = unseen(malloc(limit / 100 * 32 / THREADS));
        atomic_fetch_add(&refused, block == NULL);
        pthread_barrier_wait(&barrier);
        free(block);
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

/* Threads that need large blocks at the same time all have them, if there is memory for all. */
static void at_once(void) {
    pthread_t thread[THREADS];
    EXPECT(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0, "no barrier");
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, need_one, NULL) == 0, "no thread");
    }
    for (int round = 0; round < ROUNDS; round++) {
        size_t count = take_pieces(limit / 100 * 78, page), large = fill(MIB);
        free_pieces(count, 2, 1);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        free_pieces(count, 1, 1);
        empty(large);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    EXPECT(refused == 0, "%zu of %d were refused where memory was free for all", (size_t)refused, THREADS * ROUNDS);
}

static void *fork_on(void *unused) {
    while (!stops) {
        pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        EXPECT(child > 0 && waitpid(child, NULL, 0) == child, "errno %d", errno);
    }
    return unused;
}

/* Free spans are given back for others also where somebody forks. */
static void beside_forks(void) {
    enum { LARGE = 300000, SMALL = 200000, SMALLS = 20, FORK_ROUNDS = 200 };
    pthread_t forker;
    EXPECT(pthread_create(&forker, NULL, fork_on, NULL) == 0, "no thread");
    for (int round = 0; round < FORK_ROUNDS; round++) {
        size_t count = fill(LARGE);
        for (size_t i = 0; i < count; i += 2) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
        void *small[SMALLS];
        for (int i = 0; i < SMALLS; i++) {
            small[i] = unseen(malloc(SMALL));
            EXPECT(small[i] != NULL, "half of the heap is free, and block %d of round %d is refused", i, round);
        }
        for (int i = 0; i < SMALLS; i++) {
            free(small[i]);
        }
        empty(count);
    }
    stops = true;
    pthread_join(forker, NULL);
}

static atomic_bool returned;

static void *need_much(void *unused) {
    void *block = unseen(malloc(limit / 16 * 7));
    atomic_store(&returned, true);
    EXPECT(block != NULL, "it is refused where half of the heap is free");
    free(block);
    return unused;
}

/* A fork does not wait until a long request has all of its memory: one of them is done first. No keeper purges meanwhile. */
static void while_making_room(void) {
    enum { TRIES = 40 };
    bool seen = false;
    for (int tries = 0; !seen && tries < TRIES; tries++) {
        pthread_t thread;
        size_t large, count = leave_pages(&large), clean = figure("clean"), met = figure("limit_met");
        returned = false;
        EXPECT(pthread_create(&thread, NULL, need_much, NULL) == 0, "no thread");
        while (!returned && (figure("limit_met") == met || figure("clean") < clean + 16 * page)) {
        }
        pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        size_t purged = figure("clean"); /* by then; the fork has told nobody when it was done */
        EXPECT(child > 0 && waitpid(child, NULL, 0) == child, "errno %d", errno);
        pthread_join(thread, NULL);
        seen = figure("clean") > purged + 16 * page;
        free_pieces(count, 1, 1);
        empty(large);
    }
    EXPECT(seen, "%d forks waited for a call", TRIES);
}

/* -- figures ------------------------------------------------------------------------------------------------- */

static size_t refusals(void) {
    static size_t before;
    size_t now = figure("limit_refused"), since = now - before;
    before = now;
    return since;
}

/* Each request that fails is counted once, whichever function it came by; one that succeeds in the end is not. */
static void counted(void) {
    enum { TIMES = 10, SMALL = 20000, LARGE = 2000000 };
    size_t count = fill(SMALL);
    while (unseen(malloc(16)) != NULL) {
    }
    (void)refusals();
    for (int i = 0; i < TIMES; i++) {
        EXPECT(unseen(malloc(SMALL)) == NULL, "malloc");
        EXPECT(unseen(malloc(LARGE)) == NULL, "malloc of a large one");
        EXPECT(unseen(calloc(1, SMALL)) == NULL, "calloc");
        EXPECT(unseen(calloc(1, LARGE)) == NULL, "calloc of a large one");
        EXPECT(unseen(realloc(blocks[0], 3 * SMALL)) == NULL, "realloc");
        EXPECT(unseen(realloc(blocks[0], LARGE)) == NULL, "realloc to a large one");
        EXPECT(unseen(aligned_alloc(256, SMALL)) == NULL, "aligned_alloc");
        EXPECT(unseen(aligned_alloc(4096, LARGE)) == NULL, "aligned_alloc of a large one");
    }
    size_t since = refusals();
    EXPECT(since == 8 * TIMES, "%d were refused, %zu are counted", 8 * TIMES, since);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = unseen(realloc(blocks[i], SMALL / 2));
        EXPECT(blocks[i] != NULL, "a block cannot shrink");
    }
    since = refusals();
    EXPECT(since == 0, "nothing was refused, %zu are counted", since);
}

int main(int count, char **argument) {
    require_serving();
    static const struct test_case cases[] = {{"whole_slices", whole_slices},
                                             {"behind_the_hand", behind_the_hand},
                                             {"purged_pages", purged_pages},
                                             {"at_once", at_once},
                                             {"beside_forks", beside_forks},
                                             {"while_making_room", while_making_room},
                                             {"counted", counted}};
    limit = figure("limit");
    page = (size_t)sysconf(_SC_PAGESIZE);
    EXPECT(limit > 0, "there is no limit");
    run_case(cases, sizeof cases / sizeof *cases, count, argument);
    return 0;
}
