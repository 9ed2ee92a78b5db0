/* Heaps: whose blocks are counted where, what the depots keep, which heap a thread gets, what is left at the end. */
#include "heap_inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"
#include "keeper.h"
#include "looks.h"
#include "options.h"
#include "os.h"
#include "pattern.h"
#include "scenario.h"
#include "street.h"
#include "street_walk.h"

enum { MAGAZINES_MOST = 64, BLOCKS_MOST = 512, DEPOT_BYTES = 1 << 20, DEPOT_SHARE = 2, SETTLE_MS = 250 };

/* The model: full magazines and single blocks that a thread would hold. */
static struct {
    struct {
        void **top;
        unsigned class;
    } magazine[MAGAZINES_MOST];
    struct {
        void *address;
        unsigned class;
    } block[BLOCKS_MOST];
    size_t magazines, blocks;
    size_t of_class[CLASS_COUNT];
    uint64_t random;
} model;

static void start(void) {
    EXPECT(heap_start(), "no reservation");
    option_set(OPTION_RETAIN_MS, 86400 * 1000);
}

/* The heap of one more thread. */
static struct heap *join(void) {
    struct heap *heap;
    heap_join(&heap);
    return heap;
}

/* What the threads hold is in use, class by class; slabs hold that, what is free, what lies in depots, and the rests
 * behind their last blocks. */
static void check_figures(void) {
    struct heap_figures figures;
    size_t of_class[CLASS_COUNT];
    size_t in_use = 0;
    heap_figures(&figures, of_class);
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        EXPECT(of_class[class] == model.of_class[class], "class %u: %zu blocks in use instead of %zu", class,
               of_class[class], model.of_class[class]);
        in_use += model.of_class[class] * class_bytes[class];
    }
    EXPECT(figures.in_use == in_use, "%zu bytes in use instead of %zu", figures.in_use, in_use);
    size_t sum = figures.in_use + figures.free + figures.depots;
    EXPECT(sum <= figures.slabs && figures.slabs - sum <= figures.slabs / 16, "%zu in slabs of %zu bytes", sum,
           figures.slabs);
    EXPECT(figures.depots <= figures.heaps * (size_t)DEPOT_BYTES + figures.slabs / DEPOT_SHARE, "%zu in depots",
           figures.depots);
    struct arena_figures arena;
    arena_figures(&arena);
    EXPECT(arena.used == figures.slabs, "%zu used, %zu in slabs, %zu of bookkeeping", arena.used, figures.slabs,
           figures.bookkeeping);
}

static bool take_magazine(struct heap *heap, unsigned class, unsigned capacity) {
    void **empty = heap_spare(heap, capacity);
    EXPECT(empty != NULL, "no magazine");
    void **top = heap_exchange_empty(heap, class, empty, capacity);
    if (magazine_is_empty(top)) {
        heap_return_spare(heap, top);
        return false;
    }
    EXPECT(magazine_is_full(top), "%u of %u blocks", magazine_count(top), magazine_capacity(magazine_of(top)));
    model.of_class[class] += magazine_count(top);
    model.magazine[model.magazines].top = top;
    model.magazine[model.magazines++].class = class;
    return true;
}

static void give_magazine(struct heap *heap, size_t index, bool flush) {
    void **top = model.magazine[index].top;
    unsigned class = model.magazine[index].class;
    model.of_class[class] -= magazine_count(top);
    model.magazine[index] = model.magazine[--model.magazines];
    if (flush) {
        heap_flush(heap, class, top);
        return;
    }
    unsigned capacity = 1 + (unsigned)pattern_below(&model.random, MAGAZINE_MOST);
    top = heap_exchange_full(heap, class, top, capacity, (enum trade)pattern_below(&model.random, 3));
    EXPECT(magazine_is_empty(top) && magazine_capacity(magazine_of(top)) == capacity, "%u blocks of %u, not 0 of %u",
           magazine_count(top), magazine_capacity(magazine_of(top)), capacity);
    heap_return_spare(heap, top);
}

/* What threads do that take here and free there: blocks of one class change magazines, whichever heap they are of. */
static void mix_with_others(size_t index) {
    for (size_t other = 0; other < model.magazines; other++) {
        if (other == index || model.magazine[other].class != model.magazine[index].class) {
            continue;
        }
        void **one = model.magazine[index].top, **two = model.magazine[other].top;
        for (; !magazine_is_empty(one) && !magazine_is_empty(two); one--, two--) {
            if (pattern_below(&model.random, 2) == 0) {
                void *block = *one;
                *one = *two;
                *two = block;
            }
        }
    }
}

static void give_some_blocks(void) {
    void *batch[BLOCKS_MOST];
    unsigned count = 0;
    for (size_t i = 0; i < model.blocks;) {
        if (pattern_below(&model.random, 2) == 0) {
            batch[count++] = model.block[i].address;
            model.of_class[model.block[i].class]--;
            model.block[i] = model.block[--model.blocks];
        } else {
            i++;
        }
    }
    heap_give(batch, count);
}

/* -- figures --------------------------------------------------------------------------------------------------- */

static void figures_add_up(void) {
    start();
    option_set(OPTION_HEAPS, 3);
    struct heap *heap[3];
    for (int i = 0; i < 3; i++) {
        heap[i] = join();
    }
    model.random = 5;
    for (int round = 0; round < 20000; round++) {
        unsigned class = (unsigned)pattern_below(&model.random, CLASS_COUNT);
        struct heap *one = heap[pattern_below(&model.random, 3)];
        switch (pattern_below(&model.random, 5)) {
        case 0:
        case 1:
            if (model.magazines < MAGAZINES_MOST) {
                unsigned most = class_bytes[class] > 8192 ? 4 : MAGAZINE_MOST;
                EXPECT(take_magazine(one, class, 1 + (unsigned)pattern_below(&model.random, most)), "no memory");
            }
            break;
        case 2:
            if (model.magazines > 0) {
                size_t index = pattern_below(&model.random, model.magazines);
                mix_with_others(index);
                give_magazine(one, index, pattern_below(&model.random, 3) == 0);
            }
            break;
        case 3:
            if (model.blocks < BLOCKS_MOST) {
                void *block = heap_take_one(one, class, &(struct zeros){0, 0});
                EXPECT(block != NULL, "no memory");
                model.block[model.blocks].address = block;
                model.block[model.blocks++].class = class;
                model.of_class[class]++;
            }
            break;
        default:
            if (pattern_below(&model.random, 8) == 0) {
                give_some_blocks();
            } else if (pattern_below(&model.random, 16) == 0) {
                look_trim();
            }
            break;
        }
        if (round % 16 == 0) {
            check_figures();
        }
    }
    check_figures();
    street_check(true);
    while (model.magazines > 0) {
        give_magazine(heap[0], 0, false);
    }
    while (model.blocks > 0) {
        give_some_blocks();
    }
    look_trim();
    check_figures();
    struct heap_figures figures;
    heap_figures(&figures, NULL);
    EXPECT(figures.slabs == 0 && figures.free == 0 && figures.depots == 0 && figures.in_use == 0,
           "%zu bytes of slabs are left", figures.slabs);
}

/* -- depots ---------------------------------------------------------------------------------------------------- */

static struct heap_figures figures_now(void) {
    struct heap_figures figures;
    heap_figures(&figures, NULL);
    return figures;
}

/* A full magazine goes from hand to hand unopened, the last one first. */
static void depot_passes_magazines_on(void) {
    void **full[2];
    void *block[2][16];
    start();
    struct heap *heap = join();
    for (int i = 0; i < 2; i++) {
        full[i] = heap_exchange_empty(heap, 3, heap_spare(heap, 16), 16);
        memcpy(block[i], full[i] - 15, sizeof block[i]);
    }
    for (int i = 0; i < 2; i++) {
        heap_return_spare(heap, heap_exchange_full(heap, 3, full[i], 32, GIVES_AND_TAKES));
        EXPECT(figures_now().depots == (size_t)(i + 1) * 16 * class_bytes[3], "%zu bytes in the depot",
               figures_now().depots);
    }
    for (int i = 2; i-- > 0;) {
        void **top = heap_exchange_empty(heap, 3, heap_spare(heap, 120), 120);
        EXPECT(magazine_of(top) == magazine_of(full[i]) && magazine_count(top) == 16 &&
                   memcmp(top - 15, block[i], sizeof block[i]) == 0,
               "magazine %d is another one", i);
    }
    EXPECT(figures_now().depots == 0, "%zu bytes in the depot", figures_now().depots);
}

/* An exchange drains but a few of the magazines that are due; this the rest. */
static void drain_what_is_due(struct heap *heap) {
    lock_take(&heap->lock);
    while (depot_drain(heap, 1)) {
    }
    heap_leave_quietly(heap);
}

/* A magazine goes into the depot as long as its class's bound and the heap's allow, and not beyond; the heap's follows
 * the slabs there are at that moment. What lay there while 4 MiB of blocks were exchanged goes first. */
static void depots_are_bounded(void) {
    enum {
        CLASSES = 6,
        OF_EACH = 1300 * 1024,
        CAPACITY = 100,
        MOST = OF_EACH / CAPACITY / 16,
        TRAFFIC = 4 * 1024 * 1024
    };
    static void **full[CLASSES][MOST];
    static size_t lain[CLASSES]; /* of the class's in the depot, since the last time at least */
    static size_t of_class[CLASSES];
    start();
    struct heap *heap = join();
    size_t depots = 0, traffic = 0;
    for (unsigned class = 0; class < CLASSES; class++) {
        for (unsigned i = 0; i < OF_EACH / CAPACITY / class_bytes[class]; i++) {
            full[class][i] = heap_exchange_empty(heap, class, heap_spare(heap, CAPACITY), CAPACITY);
            EXPECT(magazine_count(full[class][i]) == CAPACITY, "no memory");
            traffic += CAPACITY * (size_t)class_bytes[class];
            traffic = traffic > TRAFFIC ? 0 : traffic;
        }
    }
    unsigned refused_by_class = 0, refused_by_heap = 0, drained = 0;
    for (unsigned class = 0; class < CLASSES; class++) {
        size_t magazine = CAPACITY * (size_t)class_bytes[class];
        for (unsigned i = 0; i < OF_EACH / CAPACITY / class_bytes[class]; i++) {
            size_t slabs = figures_now().slabs; /* before the magazine's own are given back */
            heap_return_spare(heap, heap_exchange_full(heap, class, full[class][i], CAPACITY, GIVES_AND_TAKES));
            traffic += magazine;
            drain_what_is_due(heap);
            size_t seen = figures_now().depots;
            bool class_full = false, heap_full = false;
            for (bool drains = traffic > TRAFFIC;; drains = true) { /* also when slabs become few: see settle */
                if (drains) {
                    traffic = traffic > TRAFFIC ? 0 : traffic;
                    drained++;
                    for (unsigned c = 0; c < CLASSES; c++) {
                        of_class[c] -= lain[c];
                        depots -= lain[c];
                        lain[c] = of_class[c];
                    }
                }
                class_full = of_class[class] + magazine > DEPOT_BYTES;
                heap_full = depots + magazine > DEPOT_BYTES + slabs / DEPOT_SHARE;
                size_t kept = class_full || heap_full ? 0 : magazine;
                if (seen == depots + kept) {
                    of_class[class] += kept;
                    depots += kept;
                    break;
                }
                EXPECT(!drains, "class %u: %zu bytes in depots instead of %zu", class, seen, depots + kept);
            }
            refused_by_class += class_full;
            refused_by_heap += heap_full;
        }
    }
    EXPECT(drained > 0, "never drained");
    EXPECT(refused_by_class > 0 && refused_by_heap > 0, "a bound was not reached");
}

/* What nobody asks for goes back to the slabs after two looks at the clock, a while apart, at the latest. */
static void depots_decay(void) {
    start();
    struct heap *heap = join();
    void **full[8];
    for (int i = 0; i < 8; i++) {
        full[i] = heap_exchange_empty(heap, 4, heap_spare(heap, 50), 50);
    }
    for (int i = 0; i < 8; i++) {
        heap_return_spare(heap, heap_exchange_full(heap, 4, full[i], 50, GIVES_AND_TAKES));
    }
    EXPECT(figures_now().depots > 0, "nothing in the depot");
    for (int look = 0; look < 4; look++) {
        usleep((SETTLE_MS + 20) * 1000);
        for (int event = 0; event < 64; event++) { /* of another class */
            void **top = heap_exchange_empty(heap, 9, heap_spare(heap, 4), 4);
            heap_flush(heap, 9, top);
        }
    }
    EXPECT(figures_now().depots == 0, "%zu bytes are still in the depots", figures_now().depots);
}

/* -- slabs ----------------------------------------------------------------------------------------------------- */

/* Of four slabs with free blocks the one with the fewest is drawn from. */
static void fullest_slab_first(void) {
    enum { CLASS = 19, BLOCKS = 64, SLABS = 4 }; /* 1024 bytes */
    void *block[SLABS][BLOCKS];
    start();
    struct heap *heap = join();
    EXPECT(class_blocks(CLASS) == BLOCKS, "%u blocks", class_blocks(CLASS));
    for (int slab = 0; slab < SLABS; slab++) {
        for (int i = 0; i < BLOCKS; i++) {
            block[slab][i] = heap_take_one(heap, CLASS, &(struct zeros){0, 0});
        }
    }
    static const int free_in[SLABS] = {9, 4, 2, 7};
    for (int slab = 0; slab < SLABS; slab++) {
        heap_give(block[slab], (unsigned)free_in[slab]);
    }
    static const int order[] = {2, 2, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 0};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        void *taken = heap_take_one(heap, CLASS, &(struct zeros){0, 0});
        EXPECT(arena_slice(taken) == arena_slice(block[order[i]][BLOCKS - 1]), "take %zu is not from slab %d", i,
               order[i]);
    }
}

/* A class's last empty slab is kept while it is a single slice, so that hovering around it costs nothing. */
static void last_slab_is_kept(void) {
    start();
    struct heap *heap = join();
    void *block = heap_take_one(heap, 0, &(struct zeros){0, 0});
    heap_give(&block, 1);
    EXPECT(figures_now().slabs == SLICE_BYTES, "%zu bytes of slabs", figures_now().slabs);
    block = heap_take_one(heap, CLASS_COUNT - 1, &(struct zeros){0, 0});
    heap_give(&block, 1);
    EXPECT(figures_now().slabs == SLICE_BYTES, "the larger slab is kept: %zu bytes of slabs", figures_now().slabs);
    look_trim();
    EXPECT(figures_now().slabs == 0, "%zu bytes of slabs", figures_now().slabs);
}

/* -- which heap ------------------------------------------------------------------------------------------------ */

static void least_loaded_lowest_first(void) {
    enum { HEAPS = 6, THREADS = 60 };
    unsigned threads[HEAPS] = {0}, heaps = 1;
    struct heap *of_thread[THREADS];
    uint64_t random = 6;
    size_t count = 0;
    start();
    option_set(OPTION_HEAPS, HEAPS);
    for (int round = 0; round < 5000; round++) {
        if (count == THREADS || (count > 0 && pattern_below(&random, 2) == 0)) {
            size_t index = pattern_below(&random, count);
            threads[heap_number(of_thread[index])]--;
            heap_leave(&of_thread[index]);
            of_thread[index] = of_thread[--count];
            continue;
        }
        unsigned least = 0;
        for (unsigned i = 1; i < heaps; i++) {
            least = threads[i] < threads[least] ? i : least;
        }
        if (threads[least] > 0 && heaps < HEAPS) {
            least = heaps++;
        }
        struct heap *chosen = join();
        unsigned number = heap_number(chosen);
        EXPECT(number == least, "heap %u instead of %u", number, least);
        EXPECT(heap_numbered(number) == chosen, "heap %u is another one", number);
        EXPECT(heap_for(chosen, CLASS_COUNT - 1) == chosen, "heap %u was asked for, and leans on another", number);
        threads[number]++;
        of_thread[count++] = chosen;
    }
    EXPECT(figures_now().heaps == HEAPS, "%u heaps", figures_now().heaps);
}

/* Threads that go on spread over the heaps that others have left, one at a time, and then stay. */
static void those_that_stay_spread(void) {
    enum { HEAPS = 5, THREADS = 40 };
    uint64_t random = 11;
    start();
    option_set(OPTION_HEAPS, HEAPS);
    for (int round = 0; round < 200; round++) {
        struct heap *of_thread[THREADS];
        unsigned threads[HEAPS] = {0};
        for (size_t i = 0; i < THREADS; i++) {
            of_thread[i] = join();
        }
        size_t count = 0;
        for (size_t i = 0; i < THREADS; i++) {
            if (pattern_below(&random, 3) == 0) {
                of_thread[count++] = of_thread[i];
            } else {
                heap_leave(&of_thread[i]);
            }
        }
        for (int moved = 1; moved > 0;) {
            moved = 0;
            for (size_t i = 0; i < count; i++) {
                struct heap *before = of_thread[i];
                bool moves = heap_move(&of_thread[i]);
                EXPECT(moves == (of_thread[i] != before), "it does not say whether the thread has moved");
                moved += moves;
            }
            EXPECT(moved < THREADS, "all of them move for ever");
        }
        for (size_t i = 0; i < count; i++) {
            threads[heap_number(of_thread[i])]++;
        }
        unsigned least = THREADS, most = 0;
        for (size_t i = 0; i < HEAPS; i++) {
            least = threads[i] < least ? threads[i] : least;
            most = threads[i] > most ? threads[i] : most;
        }
        EXPECT(most <= least + 1, "%u threads on one heap, %u on another", most, least);
        for (size_t i = 0; i < count; i++) {
            heap_leave(&of_thread[i]);
        }
    }
}

/* However many threads: two for each CPU, of which one serves all classes. */
static void bounded_by_cpus(void) {
    start();
    for (int i = 0; i < 3000; i++) {
        (void)join();
    }
    unsigned heaps = figures_now().heaps;
    unsigned cpus = os_cpus();
    EXPECT(heaps == bits_min(2 * (size_t)cpus, 1024), "%u heaps on %u CPUs", heaps, cpus);
    for (unsigned number = 0; number < heaps; number++) {
        struct heap *heap = heap_numbered(number);
        for (unsigned class = 0; class < CLASS_COUNT; class++) {
            unsigned at = class < LINE_CLASSES ? number : number % cpus;
            EXPECT(heap_for(heap, class) == heap_numbered(at), "class %u of heap %u is served by heap %u", class,
                   number, heap_number(heap_for(heap, class)));
        }
    }
}

/* -- bookkeeping ----------------------------------------------------------------------------------------------- */

static void bookkeeping_is_used_again(void) {
    start();
    struct heap *heap = join();
    char *before = street_bookkeeping(1);
    char *after = street_bookkeeping(MAGAZINE_BYTES + 1);
    EXPECT((uintptr_t)before % MAGAZINE_BYTES == 0 && (uintptr_t)after % MAGAZINE_BYTES == 0, "%p and %p",
           (void *)before, (void *)after);
    EXPECT(after >= before + MAGAZINE_BYTES || before >= after + 2 * MAGAZINE_BYTES, "they overlap");
    size_t bytes = 0;
    for (int round = 0; round < 20; round++) {
        void **top[40];
        for (int i = 0; i < 40; i++) {
            top[i] = heap_spare(heap, 1 + (unsigned)i);
            EXPECT(top[i] != NULL && magazine_is_empty(top[i]) &&
                       magazine_capacity(magazine_of(top[i])) == 1u + (unsigned)i,
                   "spare %d", i);
        }
        for (int i = 0; i < 40; i++) {
            heap_return_spare(heap, top[i]);
        }
        bytes = round == 0 ? figures_now().bookkeeping : bytes;
        EXPECT(figures_now().bookkeeping == bytes, "%zu bytes of bookkeeping in round %d", figures_now().bookkeeping,
               round);
    }
}

/* -- little room ----------------------------------------------------------------------------------------------- */

/* Out of memory, an exchange returns what there was, then an empty magazine; what is given is found again. */
static void out_of_memory(void) {
    if (SCENARIO_SANITIZED) {
        return;
    }
    const struct rlimit limit = {(size_t)48 << 20, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "no limit can be set");
    start();
    struct heap *heap = join();
    static const unsigned classes[] = {CLASS_COUNT - 1, 40, 0};
    size_t had[3] = {0};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            static void *taken[3000000];
            size_t count = 0;
            void *block;
            while ((block = heap_take_one(heap, classes[i], &(struct zeros){0, 0})) != NULL) {
                EXPECT(count < sizeof taken / sizeof *taken, "the limit does not bite");
                taken[count++] = block;
            }
            had[i] = round == 0 ? count : had[i];
            EXPECT(count > 0 && count >= had[i] - had[i] / 16, "class %u: %zu blocks in round %d, %zu before",
                   classes[i], count, round, had[i]);
            void **top = heap_spare(heap, 10);
            if (top != NULL) {
                top = heap_exchange_empty(heap, classes[i], top, 10);
                EXPECT(magazine_is_empty(top) && magazine_capacity(magazine_of(top)) == 10, "%u blocks out of nothing",
                       magazine_count(top));
                heap_give(&taken[count - 3], 3); /* fewer than it has room for: it is full at that many */
                top = heap_exchange_empty(heap, classes[i], top, 10);
                EXPECT(magazine_count(top) == 3 && magazine_is_full(top), "%u blocks of 3", magazine_count(top));
                heap_flush(heap, classes[i], top);
                count -= 3;
            }
            for (size_t at = 0; at < count; at += 512) {
                heap_give(&taken[at], (unsigned)bits_min(512, count - at));
            }
            look_trim();
        }
    }
    street_check(true);
}

/* -- misuse ---------------------------------------------------------------------------------------------------- */

static void give_as_single(const void *argument) {
    void *block = *(void *const *)argument;
    heap_give(&block, 1);
}

static void flush_magazine(const void *argument) { heap_flush(heap_numbered(0), 19, *(void **const *)argument); }

/* A block whose slab has gone since it was freed was freed twice, whether it comes alone or in a magazine. */
static void stops_at_blocks_of_slabs_gone(void) {
    enum { CLASS = 19, BLOCKS = 64 };
    void *block[2 * BLOCKS];
    char line[256];
    start();
    struct heap *heap = join();
    for (int i = 0; i < 2 * BLOCKS; i++) {
        block[i] = heap_take_one(heap, CLASS, &(struct zeros){0, 0});
    }
    void *one = block[BLOCKS + 1];
    void **top = heap_spare(heap, 4);
    *++top = one;
    void *others[BLOCKS];
    memcpy(others, block, sizeof others);
    heap_give(others, 1); /* two slabs with free blocks: neither is the class's only one */
    memcpy(others, block + BLOCKS, sizeof others);
    heap_give(others, BLOCKS);
    EXPECT(street_tag(arena_slice(one)) == TAG_NONE, "the slab has not gone");
    snprintf(line, sizeof line, "double free: pointer %p, size class 1024 bytes", one);
    scenario_stops(flush_magazine, &top, line);
    snprintf(line, sizeof line, "double free: pointer %p, span 65536 bytes", one);
    scenario_stops(give_as_single, &one, line);
}

/* -- keeping --------------------------------------------------------------------------------------------------- */

static size_t keep_until_quiet(void) {
    size_t bytes = 0;
    bool more = true;
    for (int look = 0; more; look++) {
        EXPECT(look < 10, "there is more to return after %d looks without a call in between", look);
        bytes += look_keep(&more);
    }
    return bytes;
}

static void expect_no_wish(const char *when) {
    EXPECT(!keeper_is_wished(), "%s, the heap wishes for its keeper", when);
}

/* A heap wishes for its keeper when 4 MiB have come to lie free since the keeper last looked, and not before. */
static void wishes_for_its_keeper(void) {
    enum { CLASS = 19, BATCH = 64, BYTES = BATCH * 1024, WORTH = 4 << 20, TURNS = WORTH / BYTES };
    static void *block[3 * TURNS][BATCH];
    start();
    struct heap *heap = join();
    for (int i = 0; i < 3 * TURNS; i++) {
        for (int b = 0; b < BATCH; b++) {
            block[i][b] = heap_take_one(heap, CLASS, &(struct zeros){0, 0});
            EXPECT(block[i][b] != NULL, "no memory");
            memset(block[i][b], 1, 1024);
        }
    }
    int freed = 0;
    for (int turn = 0; turn < 2; turn++) {
        expect_no_wish("before anything was freed");
        size_t bytes = 0;
        while (!keeper_is_wished()) {
            EXPECT(bytes < (size_t)WORTH * 3 / 2, "%zu bytes are free and nobody is asked to return them", bytes);
            heap_give(block[freed++], BATCH - 1); /* one stays: the slab does */
            bytes += BYTES - 1024;
        }
        EXPECT(bytes >= WORTH / 8 * 7, "%zu bytes are free, and the keeper is wished for", bytes);
        atomic_store(&keeper_wished, 0);
        size_t returned = keep_until_quiet();
        EXPECT(returned >= bytes / 10 * 9 && returned <= bytes + bytes / 10, "%zu of %zu bytes were returned", returned,
               bytes);
    }
}

/* Blocks of another heap that come back through this one, and are taken again there, lie free nowhere. */
static void others_blocks_are_nothing_to_wish_for(void) {
    enum { CLASS = 19, BLOCKS = 100, TURNS = 2 * ((4 << 20) / (BLOCKS * 1024)) };
    start();
    option_set(OPTION_HEAPS, 2);
    struct heap *one = join(), *other = join();
    EXPECT(one != other, "one heap for two threads");
    for (int turn = 0; turn < TURNS; turn++) {
        void **top = heap_exchange_empty(other, CLASS, heap_spare(other, BLOCKS), BLOCKS);
        EXPECT(magazine_count(top) == BLOCKS, "no memory");
        heap_flush(one, CLASS, top);
        expect_no_wish("what was freed has been taken again");
    }
}

/* Once everything is returned there is nothing to wish for, although what lies behind a slab's last block has gone with
 * it and was never counted as free. */
static void nothing_left_is_nothing_to_wish_for(void) {
    enum { SLABS = 8 };
    static void *block[SLABS * 4096];
    start();
    struct heap *heap = join();
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        uint32_t each = class_blocks(class);
        for (uint32_t i = 0; i < SLABS * each; i++) {
            block[i] = heap_take_one(heap, class, &(struct zeros){0, 0});
            EXPECT(block[i] != NULL, "no memory");
        }
        for (uint32_t slab = 0; slab < SLABS; slab++) {
            void *last[1] = {block[(slab + 1) * each - 1]};
            heap_give(last, 1);
        }
        (void)keep_until_quiet();
        atomic_store(&keeper_wished, 0);
        void *one[1] = {block[0]};
        heap_give(one, 1);
        char when[64];
        snprintf(when, sizeof when, "with one block free in each slab of class %u", class);
        expect_no_wish(when);
        for (uint32_t slab = 0; slab < SLABS; slab++) {
            heap_give(&block[slab * each + (slab == 0)], each - 1 - (slab == 0));
        }
        look_trim();
        atomic_store(&keeper_wished, 0);
    }
}

/* What lies in depots is drained first, and then it is free like the rest. */
static void keeper_drains_depots(void) {
    start();
    struct heap *heap = join();
    void **full[8];
    for (int i = 0; i < 8; i++) {
        full[i] = heap_exchange_empty(heap, 4, heap_spare(heap, 50), 50);
    }
    for (int i = 0; i < 8; i++) {
        heap_return_spare(heap, heap_exchange_full(heap, 4, full[i], 50, GIVES_AND_TAKES));
    }
    bool more;
    (void)look_keep(&more);
    EXPECT(more, "a full depot is nothing to look for again");
    (void)keep_until_quiet();
    EXPECT(figures_now().depots == 0, "%zu bytes are still in the depots", figures_now().depots);
}

/* -- many threads ---------------------------------------------------------------------------------------------- */

enum { THREADS = 8, SLOTS = 256 };

static _Atomic(void *) slots[SLOTS];

/* Blocks change hands through slots; whoever takes one out frees it, whichever heap it is of. */
static void *run_thread(void *argument) {
    struct heap *heap = join();
    uint64_t random = (uint64_t)(uintptr_t)argument;
    void *batch[64];
    unsigned count = 0;
    for (int round = 0; round < (SCENARIO_SANITIZED ? 3000 : 30000); round++) {
        unsigned class = (unsigned)pattern_below(&random, 30);
        if (pattern_below(&random, 3) == 0) {
            void **top = heap_exchange_empty(heap, class, heap_spare(heap, 20), 20);
            if (pattern_below(&random, 2) == 0) {
                heap_flush(heap, class, top);
            } else {
                heap_return_spare(heap, heap_exchange_full(heap, class, top, 20, GIVES_AND_TAKES));
            }
            continue;
        }
        uint64_t *block = heap_take_one(heap, class, &(struct zeros){0, 0});
        EXPECT(block != NULL, "no memory");
        *block = (uint64_t)(uintptr_t)block;
        block = atomic_exchange(&slots[pattern_below(&random, SLOTS)], block);
        if (block != NULL) {
            EXPECT(*block == (uint64_t)(uintptr_t)block, "a block has changed in its slot");
            *block = 0;
            batch[count++] = block;
        }
        if (count == 64) {
            heap_give(batch, count);
            count = 0;
        }
        if (pattern_below(&random, 4096) == 0) {
            look_trim();
        }
    }
    heap_give(batch, count);
    heap_leave(&heap);
    return NULL;
}

static void with_many_threads(void) {
    pthread_t thread[THREADS];
    start();
    option_set(OPTION_HEAPS, 3);
    for (uintptr_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, run_thread, (void *)(i + 1)) == 0, "no thread");
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        void *block = slots[i];
        if (block != NULL) {
            heap_give(&block, 1);
        }
    }
    EXPECT(figures_now().in_use == 0, "%zu bytes are in use", figures_now().in_use);
    look_trim();
    EXPECT(figures_now().slabs == 0, "%zu bytes of slabs are left", figures_now().slabs);
    check_figures();
    street_check(true);
}

enum { KEPT = 600 };

struct kept {
    void *address;
    unsigned class;
    uint64_t id;
};

static atomic_uint working;

/* Holds blocks whose every byte is known, in bursts with pauses between them: meanwhile slabs are quiet. */
static void *hold_blocks(void *argument) {
    struct heap *heap = join();
    static _Thread_local struct kept kept[KEPT];
    uint64_t random = (uint64_t)(uintptr_t)argument;
    for (int step = 0; step < (SCENARIO_SANITIZED ? 4000 : 40000); step++) {
        struct kept *one = &kept[pattern_below(&random, KEPT)];
        if (one->address != NULL) {
            size_t wrong = pattern_mismatch(one->address, class_bytes[one->class], one->id);
            EXPECT(wrong == SIZE_MAX, "byte %zu of a block of %u has changed", wrong, class_bytes[one->class]);
            heap_give(&one->address, 1);
            one->address = NULL;
        } else {
            one->class = (unsigned)pattern_below(&random, 36);
            struct zeros zeros;
            one->address = heap_take_one(heap, one->class, &zeros);
            EXPECT(one->address != NULL, "no memory");
            EXPECT(zeros.to <= class_bytes[one->class] &&
                       pattern_not_zero((char *)one->address + zeros.from, zeros.to - zeros.from) == SIZE_MAX,
                   "a block of %u is not zero", class_bytes[one->class]);
            one->id = pattern_random(&random);
            pattern_fill(one->address, 0, class_bytes[one->class], one->id);
        }
        if (step % 1000 == 0) {
            usleep(2000);
        }
    }
    for (size_t i = 0; i < KEPT; i++) {
        if (kept[i].address != NULL) {
            size_t wrong = pattern_mismatch(kept[i].address, class_bytes[kept[i].class], kept[i].id);
            EXPECT(wrong == SIZE_MAX, "byte %zu of a block of %u has changed", wrong, class_bytes[kept[i].class]);
            heap_give(&kept[i].address, 1);
        }
    }
    heap_leave(&heap);
    atomic_fetch_sub(&working, 1);
    return NULL;
}

/* Pages go back to the kernel while others take and free: no block in use loses a byte. */
static void kept_while_threads_work(void) {
    pthread_t thread[THREADS];
    size_t bytes = 0;
    start();
    option_set(OPTION_HEAPS, 3);
    atomic_store(&working, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, hold_blocks, (void *)(i + 1)) == 0, "no thread");
    }
    while (atomic_load(&working) > 0) {
        bool more;
        bytes += look_keep(&more);
        usleep(200);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    EXPECT(bytes > 0, "nothing was returned meanwhile");
    EXPECT(figures_now().in_use == 0, "%zu bytes are in use", figures_now().in_use);
    look_trim();
    EXPECT(figures_now().slabs == 0, "%zu bytes of slabs are left", figures_now().slabs);
    check_figures();
    street_check(true);
}

static const struct scenario scenarios[] = {
    {"figures_add_up", figures_add_up},
    {"depot_passes_magazines_on", depot_passes_magazines_on},
    {"depots_are_bounded", depots_are_bounded},
    {"depots_decay", depots_decay},
    {"fullest_slab_first", fullest_slab_first},
    {"last_slab_is_kept", last_slab_is_kept},
    {"least_loaded_lowest_first", least_loaded_lowest_first},
    {"those_that_stay_spread", those_that_stay_spread},
    {"bounded_by_cpus", bounded_by_cpus},
    {"bookkeeping_is_used_again", bookkeeping_is_used_again},
    {"out_of_memory", out_of_memory},
    {"stops_at_blocks_of_slabs_gone", stops_at_blocks_of_slabs_gone},
    {"wishes_for_its_keeper", wishes_for_its_keeper},
    {"others_blocks_are_nothing_to_wish_for", others_blocks_are_nothing_to_wish_for},
    {"nothing_left_is_nothing_to_wish_for", nothing_left_is_nothing_to_wish_for},
    {"keeper_drains_depots", keeper_drains_depots},
    {"with_many_threads", with_many_threads},
    {"kept_while_threads_work", kept_while_threads_work},
};

SCENARIO_MAIN(scenarios)
