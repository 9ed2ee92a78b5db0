/* The thread caches, through the paths that malloc and free take: what they hold back, what they pass on, what is left
 * when threads end, fork, or run out of memory. */
#include "allocate.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <sys/resource.h>

#include "arena.h"
#include "keeping.h"
#include "large.h"
#include "looks.h"
#include "options.h"
#include "os.h"
#include "pattern.h"
#include "refaults.h"
#include "resident.h"
#include "scenario.h"
#include "slab.h"
#include "street_walk.h"
#include "thread_inside.h"

/* The scenarios look on the heap's account while nobody changes it; those that are about the keeper call it themselves. */
__attribute__((constructor(200))) static void keep_the_keeper_away(void) { option_set(OPTION_KEEPER, 0); }

static void *take(size_t size) {
    void *block = allocate_fast(size);
    return block != NULL ? block : allocate_slow(size);
}

static void give(void *block) {
    if (!release_fast(block)) {
        release_slow(block, MADE_BY_MALLOC);
    }
}

static size_t class_size(size_t size) { return class_bytes[class_of(size)]; }

/* The thread's slot for blocks of its heap, whether it takes from there or not. */
static struct cache_class *own_magazines(unsigned class) {
    return &thread_view.cache->slots[slot_of(heap_number(thread_view.cache->heap), class)];
}

static atomic_bool stop;
static atomic_uint running;

static struct heap_figures figures_now(void) {
    struct heap_figures figures;
    heap_figures(&figures, NULL);
    return figures;
}

/* In use by the heaps' account, with the calling thread's cache emptied. */
static size_t in_use_outside_caches(void) {
    thread_cache_flush();
    return figures_now().in_use;
}

static void expect_nothing_left(void) {
    thread_cache_flush();
    look_trim();
    (void)arena_purge_all();
    struct heap_figures figures = figures_now();
    EXPECT(figures.in_use == 0 && figures.slabs == 0, "%zu bytes in use, %zu of slabs", figures.in_use, figures.slabs);
    struct arena_figures arena;
    arena_figures(&arena);
    EXPECT(arena.used == 0 && arena.dirty == 0, "%zu bytes used, %zu of bookkeeping, %zu dirty", arena.used,
           figures.bookkeeping, arena.dirty);
    street_check(true);
}

static void run_thread(void *(*run)(void *), void *argument) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, run, argument) == 0, "no thread");
    pthread_join(thread, NULL);
}

/* -- what heaps are given -------------------------------------------------------------------------------------- */

static _Atomic size_t looked_into; /* threads of a scenario count together */

/* A magazine that a heap has in its hands is in no slot of the thread that gave it: a signal handler may push and pop meanwhile, and
 * fork. */
static void expect_nowhere_loaded(void **top) {
    for (unsigned slot = 1; top != NULL && slot < SLOT_COUNT; slot++) {
        void **loaded = thread_view.cache->slots[slot].top;
        EXPECT(loaded == VOID_TOP || magazine_of(loaded) != magazine_of(top), "slot %u has it loaded", slot);
    }
    looked_into += top != NULL;
}

void **__real_heap_exchange_empty(struct heap *heap, unsigned class, void **empty, unsigned capacity);
void **__wrap_heap_exchange_empty(struct heap *heap, unsigned class, void **empty, unsigned capacity);
void **__wrap_heap_exchange_empty(struct heap *heap, unsigned class, void **empty, unsigned capacity) {
    expect_nowhere_loaded(empty);
    return __real_heap_exchange_empty(heap, class, empty, capacity);
}

void **__real_heap_exchange_used(struct heap *heap, unsigned class, void **empty, unsigned capacity);
void **__wrap_heap_exchange_used(struct heap *heap, unsigned class, void **empty, unsigned capacity);
void **__wrap_heap_exchange_used(struct heap *heap, unsigned class, void **empty, unsigned capacity) {
    expect_nowhere_loaded(empty);
    return __real_heap_exchange_used(heap, class, empty, capacity);
}

void **__real_heap_exchange_full(struct heap *heap, unsigned class, void **full, unsigned capacity, enum trade trade);
void **__wrap_heap_exchange_full(struct heap *heap, unsigned class, void **full, unsigned capacity, enum trade trade);
void **__wrap_heap_exchange_full(struct heap *heap, unsigned class, void **full, unsigned capacity, enum trade trade) {
    expect_nowhere_loaded(full);
    return __real_heap_exchange_full(heap, class, full, capacity, trade);
}

/* A fork waits a few seconds for who does not come out; here for a second. */
bool __real_gate_close(bool (*is_quiet)(void), uint32_t milliseconds);
bool __wrap_gate_close(bool (*is_quiet)(void), uint32_t milliseconds);

bool __wrap_gate_close(bool (*is_quiet)(void), uint32_t milliseconds) {
    return __real_gate_close(is_quiet, (uint32_t)bits_min(milliseconds, 1000));
}

/* Slabs rest for no look here: the scenarios call the keeper as often as they like. */
bool __wrap_refaults_are_due(const struct refaults *refaults, uint64_t now, uint64_t extra);
bool __wrap_refaults_are_due(const struct refaults *refaults, uint64_t now, uint64_t extra) {
    return (void)refaults, (void)now, (void)extra, true;
}

void __real_heap_flush(struct heap *heap, unsigned class, void **top);
void __wrap_heap_flush(struct heap *heap, unsigned class, void **top);
void __wrap_heap_flush(struct heap *heap, unsigned class, void **top) {
    expect_nowhere_loaded(top);
    __real_heap_flush(heap, class, top);
}

/* -- sizes ----------------------------------------------------------------------------------------------------- */

static void what_a_heap_has_is_not_loaded(void) {
    enum { BLOCKS = 3000 };
    static void *block[BLOCKS];
    uint64_t random = 7;
    for (int round = 0; round < (SCENARIO_SANITIZED ? 20 : 200); round++) {
        size_t bits = 4 + pattern_below(&random, 12), first = pattern_below(&random, BLOCKS);
        for (size_t i = 0; i < BLOCKS / 4; i++) {
            size_t b = (first + i) % BLOCKS, size = 1 + pattern_below(&random, (size_t)1 << bits);
            struct zeros zeros;
            give(block[b]);
            block[b] = pattern_below(&random, 8) == 0 ? thread_cache_take_zero(class_of(size), &zeros) : take(size);
        }
    }
    for (size_t b = 0; b < BLOCKS; b++) {
        give(block[b]);
    }
    expect_nothing_left();
    EXPECT(looked_into > 1000, "%zu magazines were given to heaps", looked_into);
}

static void every_size_to_a_mebibyte(void) {
    for (size_t size = 0; size <= 1 << 20; size += SCENARIO_SANITIZED ? 61 : 1) {
        char *block = take(size);
        EXPECT(block != NULL && (uintptr_t)block % 16 == 0, "%zu bytes at %p", size, (void *)block);
        size_t usable = usable_bytes(block);
        EXPECT(usable >= size && usable <= bits_max(16, size + size / 4 + SLICE_BYTES), "%zu bytes got %zu", size,
               usable);
        EXPECT(size > CLASS_LARGEST || usable == class_size(bits_max(size, 1)), "%zu bytes got %zu", size, usable);
        if (usable > 0) {
            block[0] = 1;
            block[usable - 1] = 1;
        }
        give(block);
    }
    expect_nothing_left();
}

static void every_alignment(void) {
    for (size_t alignment = 1; alignment <= (size_t)1 << 28; alignment *= 2) {
        void *held[8];
        static const size_t sizes[] = {1, 24, 129, 5000, 70000, 200000, 300000, 3000000};
        for (size_t i = 0; i < 8; i++) {
            held[i] = allocate_aligned(alignment, sizes[i], MADE_BY_MALLOC);
            EXPECT(held[i] != NULL && ((uintptr_t)held[i] & (alignment - 1)) == 0, "%zu bytes by %zu at %p", sizes[i],
                   alignment, held[i]);
            EXPECT(usable_bytes(held[i]) >= sizes[i], "%zu bytes got %zu", sizes[i], usable_bytes(held[i]));
            memset(held[i], (int)i, sizes[i]);
        }
        for (size_t i = 0; i < 8; i++) {
            EXPECT(*(char *)held[i] == (char)i && ((char *)held[i])[sizes[i] - 1] == (char)i, "blocks overlap");
            give(held[i]);
        }
    }
    expect_nothing_left();
}

/* -- what a cache holds ---------------------------------------------------------------------------------------- */

enum { HELD = 3000 };

struct held {
    void *address;
    size_t size;
};

/* A random walk of one thread; *held_bytes follows what it holds, by classes. */
static void walk(struct held *held, uint64_t *random, int steps, size_t *held_bytes) {
    for (int i = 0; i < steps; i++) {
        struct held *one = &held[pattern_below(random, HELD)];
        if (one->address != NULL) {
            size_t mismatch = pattern_mismatch(one->address, bits_min(one->size, 64), (uintptr_t)one->address);
            EXPECT(mismatch == SIZE_MAX, "byte %zu of a block of %zu has changed", mismatch, one->size);
            give(one->address);
            *held_bytes -= class_size(one->size);
            one->address = NULL;
        } else {
            one->size = 1 + (pattern_random(random) & 0x3ffff) % ((size_t)1 << (3 + pattern_below(random, 16)));
            one->address = take(one->size);
            EXPECT(one->address != NULL, "no memory");
            pattern_fill(one->address, 0, bits_min(one->size, 64), (uintptr_t)one->address);
            *held_bytes += class_size(one->size);
        }
    }
}

/* Two magazines a class, each of at most 64 KiB of blocks or two blocks. */
static size_t cache_most(void) {
    size_t sum = 0;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        size_t blocks = bits_min(bits_max(64 * 1024 / class_bytes[class], 1), MAGAZINE_MOST);
        sum += 2 * blocks * class_bytes[class];
    }
    return sum;
}

static void figures_follow_the_program(void) {
    static struct held held[HELD];
    uint64_t random = 7;
    size_t bytes = 0;
    for (int round = 0; round < 300; round++) {
        walk(held, &random, 2000, &bytes);
        size_t with_cache = figures_now().in_use;
        EXPECT(with_cache >= bytes && with_cache - bytes <= cache_most(),
               "%zu in use, %zu held: more than a cache holds", with_cache, bytes);
        if (round % 4 == 0) {
            EXPECT(in_use_outside_caches() == bytes, "%zu in use, %zu held", figures_now().in_use, bytes);
        }
    }
    for (size_t i = 0; i < HELD; i++) {
        if (held[i].address != NULL) {
            give(held[i].address);
        }
    }
    expect_nothing_left();
}

/* A magazine starts with 16 blocks and doubles with every visit to the heap, up to its class's most. */
static void magazines_grow(void) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        static void *held[2000];
        size_t most = bits_min(bits_max(64 * 1024 / class_bytes[class], 1), MAGAZINE_MOST);
        for (size_t i = 0; i < 600; i++) {
            held[i] = take(class_bytes[class]);
            EXPECT(held[i] != NULL, "no memory");
            struct cache_class *magazines = thread_magazines(class);
            EXPECT(i > 0 || magazines->capacity == bits_min(most, 16), "class %u starts at %u", class,
                   magazines->capacity);
            EXPECT(magazine_capacity(magazine_of(magazines->top)) <= most, "class %u: a magazine of %u", class,
                   magazine_capacity(magazine_of(magazines->top)));
        }
        EXPECT(thread_magazines(class)->capacity == most, "class %u grew to %u instead of %zu", class,
               thread_magazines(class)->capacity, most);
        for (size_t i = 0; i < 600; i++) {
            give(held[i]);
            struct cache_class *magazines = thread_magazines(class);
            EXPECT(magazines->previous == NULL || magazine_is_empty(magazines->previous) ||
                       magazine_is_full(magazines->previous),
                   "class %u: the previous magazine holds %u", class, magazine_count(magazines->previous));
        }
        thread_cache_flush();
    }
    expect_nothing_left();
}

/* Blocks come out of a fresh slab in the order of their addresses, and the last freed comes back first. */
static void order_of_blocks(void) {
    char *block[100];
    for (int i = 0; i < 100; i++) {
        block[i] = take(48);
        EXPECT(i == 0 || block[i] == block[i - 1] + 48, "block %d is not behind block %d", i, i - 1);
    }
    give(block[40]);
    give(block[10]);
    EXPECT(take(48) == block[10] && take(48) == block[40], "the last freed is not the first to come back");
}

/* -- other threads' blocks ------------------------------------------------------------------------------------- */

static struct {
    void **block;
    size_t count;
    size_t size;
    size_t most_left; /* of all, the most that were still undelivered after a free */
} handed;

static void *give_handed(void *argument) {
    size_t bytes = handed.count * class_size(handed.size);
    for (size_t i = 0; i < handed.count; i++) {
        give(handed.block[i]);
        bytes -= class_size(handed.size);
        size_t in_use = figures_now().in_use;
        handed.most_left = bits_max(handed.most_left, in_use - bytes);
    }
    return argument;
}

/* What a slot holds of which the thread only frees: one magazine, of 16 KiB at most; blocks of more than half of that are
 * not kept at all. */
static size_t given_most(size_t bytes) {
    return bytes > 8 * 1024 ? 0 : bits_min(MAGAZINE_MOST, 16 * 1024 / bytes) * bytes;
}

/* A thread that frees others' blocks and never allocates delivers them in batches, the rest when it ends. */
static void remote_blocks_are_delivered(void) {
    static void *block[1000];
    static const size_t sizes[] = {16, 100, 1024, 4096, 40000};
    option_set(OPTION_HEAPS, 2);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        handed.block = block;
        handed.count = 1000;
        handed.size = sizes[s];
        handed.most_left = 0;
        for (size_t i = 0; i < handed.count; i++) {
            block[i] = take(handed.size);
            EXPECT(block[i] != NULL, "no memory");
        }
        EXPECT(thread_view.cache->heap == heap_numbered(0), "the first thread has another heap");
        thread_cache_flush();
        run_thread(give_handed, NULL);
        size_t bound = given_most(class_size(handed.size));
        EXPECT(handed.most_left <= bound, "%zu bytes were undelivered, the bound is %zu", handed.most_left, bound);
        EXPECT(in_use_outside_caches() == 0, "%zu bytes are in use", figures_now().in_use);
    }
    expect_nothing_left();
}

static void *take_others(void *argument) {
    void **block = argument;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        give(take(class_bytes[class])); /* a class it uses */
        give(block[class]);
        void *again = take(class_bytes[class]);
        bool shares_lines = class_bytes[class] < 64;
        EXPECT((again == block[class]) == !shares_lines, "class %u: %p freed, %p handed out", class, block[class],
               again);
        give(again);
    }
    return NULL;
}

/* A block that another heap's thread has taken is handed out again where it was freed, unless it would share a cache line
 * with that thread's blocks. In the end every heap has its own. */
static void blocks_of_others_are_used_again(void) {
    void *block[CLASS_COUNT];
    option_set(OPTION_HEAPS, 2);
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        block[class] = take(class_bytes[class]);
        EXPECT(block[class] != NULL, "no memory");
    }
    run_thread(take_others, block);
    EXPECT(in_use_outside_caches() == 0, "%zu bytes are in use", figures_now().in_use);
    expect_nothing_left();
}

/* Bytes of blocks in a magazine. */
static size_t bytes_in(void **top, unsigned slot) {
    return top == NULL || magazine_is_empty(top) ? 0 : (size_t)magazine_count(top) * slot_bytes[slot];
}

/* What the calling thread's cache holds, and in how many of its slots. */
static size_t cached(unsigned *slots) {
    const struct thread_cache *cache = thread_view.cache;
    size_t bytes = 0;
    *slots = 0;
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        const struct cache_class *magazines = &cache->slots[slot];
        size_t here = bytes_in(magazines->top, slot) + bytes_in(magazines->previous, slot);
        EXPECT(magazines->taken || here <= given_most(slot_bytes[slot]), "%zu bytes are held in slot %u", here, slot);
        bytes += here;
        *slots += here > 0;
    }
    return bytes;
}

static void *give_few_and_go_on(void *argument) {
    enum { FEW_BLOCKS = 5, ROUND = 600, EXCHANGES = 2000 };
    static void *round[ROUND];
    void **block = argument;
    for (int i = 0; i < FEW_BLOCKS; i++) {
        give(block[i]);
    }
    unsigned slots;
    EXPECT(cached(&slots) == FEW_BLOCKS * class_size(300), "%zu bytes are held", cached(&slots));
    const struct cache_class *magazines = own_magazines(class_of(300));
    EXPECT(!magazines->taken && !magazine_is_empty(magazines->top), "the blocks are not in the slot");
    while (thread_view.cache->exchanges < EXCHANGES) {
        for (int i = 0; i < ROUND; i++) {
            round[i] = take(64);
        }
        for (int i = 0; i < ROUND; i++) {
            give(round[i]);
        }
    }
    EXPECT(magazine_is_empty(magazines->top), "a few blocks of others are still held");
    return NULL;
}

/* A few blocks of others, too few for a magazine, do not wait for ever with a thread that goes on with something else. */
static void few_blocks_are_delivered_in_time(void) {
    void *block[5];
    option_set(OPTION_HEAPS, 2);
    for (int i = 0; i < 5; i++) {
        block[i] = take(300);
    }
    run_thread(give_few_and_go_on, block);
    expect_nothing_left();
}

enum { TURN_CLASSES = 20, TURNS = 600 };
static void *in_turn[TURNS][TURN_CLASSES];

static void *give_in_turn(void *argument) {
    for (unsigned i = 0; i < TURNS; i++) {
        for (unsigned class = 0; class < TURN_CLASSES; class++) {
            give(in_turn[i][class]);
        }
    }
    *(unsigned *)argument = thread_view.cache->exchanges;
    return NULL;
}

/* Blocks of many classes that come in by turns are delivered by magazines, not one by one. */
static void deliveries_are_few(void) {
    unsigned exchanges = 0;
    option_set(OPTION_HEAPS, 2);
    for (unsigned i = 0; i < TURNS; i++) {
        for (unsigned class = 0; class < TURN_CLASSES; class++) {
            in_turn[i][class] = take(class_bytes[class]);
            EXPECT(in_turn[i][class] != NULL, "no memory");
        }
    }
    run_thread(give_in_turn, &exchanges);
    EXPECT(exchanges < TURNS * TURN_CLASSES / 10, "%u deliveries of %d blocks", exchanges, TURNS * TURN_CLASSES);
    expect_nothing_left();
}

/* Whoever wants zeros gets what was in use before, which is resident, as long as the thread or its heap has some. */
static void used_blocks_are_cleared_first(void) {
    enum { BLOCKS = 64 };
    void *block[BLOCKS];
    unsigned class = class_of(CLASS_FRESH);
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = take(CLASS_FRESH);
        EXPECT(block[i] != NULL, "no memory");
    }
    for (int i = 0; i < BLOCKS; i++) {
        give(block[i]);
    }
    size_t slabs = figures_now().slabs;
    for (int i = 0; i < BLOCKS; i++) {
        struct zeros zeros;
        block[i] = thread_cache_take_zero(class, &zeros);
        EXPECT(block[i] != NULL && zeros.to == 0, "block %d is a fresh one", i);
    }
    EXPECT(figures_now().slabs == slabs, "slabs went from %zu to %zu bytes", slabs, figures_now().slabs);
    for (int i = 0; i < BLOCKS; i++) {
        give(block[i]);
    }
    expect_nothing_left();
}

/* The same from bitmaps: a magazine of used blocks at a time, none of those that were never taken, and these one by one, known to
 * be zero. */
static void used_blocks_come_by_the_magazine(void) {
    enum { SIZE = 2 * CLASS_FRESH, BLOCKS = 32, TAKEN = 24, HELD = 3 }; /* of the slab's blocks; a magazine holds 8 */
    unsigned class = class_of(SIZE);
    void *block[BLOCKS];
    EXPECT(class_blocks(class) == BLOCKS, "a slab has %u blocks", class_blocks(class));
    for (int i = 0; i < TAKEN; i++) {
        block[i] = take(SIZE);
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], 0xff, SIZE);
    }
    for (int i = HELD; i < TAKEN; i++) {
        give(block[i]);
    }
    thread_cache_flush();
    block[HELD] = take(SIZE); /* so that a magazine is loaded */
    uint32_t exchanges = thread_view.cache->exchanges;
    for (int i = HELD + 1; i < BLOCKS; i++) {
        struct zeros zeros;
        block[i] = thread_cache_take_zero(class, &zeros);
        EXPECT(block[i] != NULL && zeros.to == (i >= TAKEN ? SIZE : 0), "block %d is %s", i,
               zeros.to != 0 ? "known to be zero" : "not");
        EXPECT(pattern_not_zero(block[i], zeros.to) == SIZE_MAX, "block %d is not zero", i);
    }
    exchanges = thread_view.cache->exchanges - exchanges;
    EXPECT(exchanges <= TAKEN / 8, "%u exchanges for %d blocks", exchanges, TAKEN - HELD);
    for (int i = 0; i < BLOCKS; i++) {
        give(block[i]);
    }
    expect_nothing_left();
}

/* Threads of as many heaps that have allocated and stay: whose blocks they are, others have to say. */
enum { OWNERS = 12, OF_CLASS = 40 };

static struct {
    void *block[OWNERS][CLASS_COUNT][OF_CLASS];
    pthread_barrier_t filled, emptied;
    bool is_in_use[OWNERS][CLASS_COUNT][OF_CLASS];
} owned;

static void *own_blocks(void *argument) {
    size_t self = (uintptr_t)argument;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        for (int i = 0; i < OF_CLASS; i++) {
            owned.block[self][class][i] = take(class_bytes[class]);
            EXPECT(owned.block[self][class][i] != NULL, "no memory");
            owned.is_in_use[self][class][i] = true;
        }
    }
    thread_cache_flush();
    pthread_barrier_wait(&owned.filled);
    pthread_barrier_wait(&owned.emptied);
    return NULL;
}

static size_t in_use; /* by the program */
static size_t most_held;
static unsigned most_slots;

static void give_owned(size_t owner, unsigned class, int i) {
    if (!owned.is_in_use[owner][class][i]) {
        return;
    }
    owned.is_in_use[owner][class][i] = false;
    give(owned.block[owner][class][i]);
    in_use -= class_bytes[class];
    unsigned slots;
    size_t held = cached(&slots);
    most_held = bits_max(most_held, held);
    most_slots = (unsigned)bits_max(most_slots, slots);
    static unsigned calls;
    if (++calls % 64 == 0) {
        EXPECT(figures_now().in_use == in_use + held, "%zu bytes in use instead of %zu and %zu held for others",
               figures_now().in_use, in_use, held);
    }
}

enum order { BY_OWNER, BY_CLASS, BY_TURNS, AT_RANDOM, ORDERS };

static void give_in_order(enum order order) {
    uint64_t random = 16;
    const size_t all = (size_t)OWNERS * CLASS_COUNT * OF_CLASS;
    for (size_t n = 0; n < all; n++) {
        switch (order) {
        case BY_OWNER:
            give_owned(n / (CLASS_COUNT * OF_CLASS), (unsigned)(n / OF_CLASS % CLASS_COUNT), (int)(n % OF_CLASS));
            break;
        case BY_CLASS:
            give_owned(n / OF_CLASS % OWNERS, (unsigned)(n / OF_CLASS / OWNERS), (int)(n % OF_CLASS));
            break;
        case BY_TURNS: /* another owner and class each time */
            give_owned(n % OWNERS, (unsigned)(n / OWNERS % CLASS_COUNT), (int)(n / OWNERS / CLASS_COUNT));
            break;
        default:
            give_owned(pattern_below(&random, OWNERS), (unsigned)pattern_below(&random, CLASS_COUNT),
                       (int)pattern_below(&random, OF_CLASS));
        }
    }
}

/* However the blocks of many heaps and all classes come in, each goes to its owner, and what is on its way is little. */
static void every_owner_gets_its_own(void) {
    option_set(OPTION_HEAPS, OWNERS + 1);
    give(take(1));
    for (int order = 0; order < ORDERS; order++) {
        pthread_t thread[OWNERS];
        most_held = most_slots = 0;
        EXPECT(pthread_barrier_init(&owned.filled, NULL, OWNERS + 1) == 0, "no barrier");
        EXPECT(pthread_barrier_init(&owned.emptied, NULL, OWNERS + 1) == 0, "no barrier");
        for (uintptr_t i = 0; i < OWNERS; i++) {
            EXPECT(pthread_create(&thread[i], NULL, own_blocks, (void *)i) == 0, "no thread");
        }
        pthread_barrier_wait(&owned.filled);
        thread_cache_flush();
        in_use = figures_now().in_use;
        EXPECT(figures_now().heaps == OWNERS + 1, "%u heaps", figures_now().heaps);
        give_in_order((enum order)order);
        give_in_order(BY_OWNER); /* what is left by chance */
        unsigned slots;
        EXPECT(in_use == 0 && in_use_outside_caches() == 0, "%zu bytes are in use", figures_now().in_use);
        EXPECT(cached(&slots) == 0, "%zu bytes are held after a flush", cached(&slots));
        EXPECT(most_slots > 10 && most_held > 1000, "%zu bytes in %u slots at most: nothing was put to the test",
               most_held, most_slots);
        pthread_barrier_wait(&owned.emptied);
        for (size_t i = 0; i < OWNERS; i++) {
            pthread_join(thread[i], NULL);
        }
    }
    expect_nothing_left();
}

static void *give_without_magazines(void *argument) {
    unsigned slots;
    give(take(1));
    thread_cache_flush();
    pthread_barrier_wait(&owned.filled);
    size_t before = figures_now().in_use;
    for (size_t i = 0; i < handed.count; i++) {
        give(handed.block[i]);
        EXPECT(cached(&slots) == 0, "%u slots have a magazine after block %zu, where there is no memory for any", slots,
               i);
        EXPECT(figures_now().in_use == before - (i + 1) * class_size(handed.size), "%zu bytes in use after block %zu",
               figures_now().in_use, i);
    }
    pthread_barrier_wait(&owned.emptied);
    return argument;
}

/* Where memory for a magazine cannot be had, blocks go to their owners one by one. */
static void remote_blocks_without_memory(void) {
    enum { COUNT = 100 }; /* less than a slab: none is given back, which would be memory */
    if (SCENARIO_SANITIZED) {
        return;
    }
    static void *block[COUNT];
    pthread_t thread;
    option_set(OPTION_HEAPS, 2);
    handed.block = block;
    handed.count = COUNT;
    handed.size = 500;
    for (size_t i = 0; i < COUNT; i++) {
        block[i] = take(handed.size);
        EXPECT(block[i] != NULL, "no memory");
    }
    thread_cache_flush();
    EXPECT(pthread_barrier_init(&owned.filled, NULL, 2) == 0 && pthread_barrier_init(&owned.emptied, NULL, 2) == 0,
           "no barrier");
    EXPECT(pthread_create(&thread, NULL, give_without_magazines, NULL) == 0, "no thread");
    while (figures_now().heaps < 2) {
        sched_yield();
    }
    usleep(20000); /* the thread waits for us by now */
    struct rlimit limit;
    EXPECT(getrlimit(RLIMIT_DATA, &limit) == 0, "no limit");
    EXPECT(setrlimit(RLIMIT_DATA, &(struct rlimit){1 << 20, limit.rlim_max}) == 0, "no limit can be set");
    void **spare = NULL; /* a chain of all magazines there are */
    for (unsigned heap = 0; heap < 2; heap++) {
        for (void **top; (top = heap_spare(heap_numbered(heap), 1)) != NULL; spare = top) {
            magazine_of(top)->next = (union magazine *)spare;
        }
    }
    pthread_barrier_wait(&owned.filled);
    pthread_barrier_wait(&owned.emptied);
    EXPECT(setrlimit(RLIMIT_DATA, &limit) == 0, "the limit stays");
    while (spare != NULL) {
        void **next = (void **)magazine_of(spare)->next;
        heap_return_spare(heap_numbered(0), spare);
        spare = next;
    }
    pthread_join(thread, NULL);
    expect_nothing_left();
}

/* -- seasons --------------------------------------------------------------------------------------------------- */

static bool has_magazines(unsigned class) {
    const struct cache_class *magazines = thread_magazines(class);
    return !magazine_is_empty(magazines->top) || magazines->previous != NULL;
}

/* Takes and gives enough blocks of the class for the heap to look at its clock. */
static void exchange(size_t size) {
    enum { MANY = 20000 };
    static void *block[MANY];
    for (int i = 0; i < MANY; i++) {
        block[i] = take(size);
        EXPECT(block[i] != NULL, "no memory");
    }
    for (int i = MANY; i-- > 0;) {
        give(block[i]);
    }
}

/* What a thread has cached of a class that it no longer uses goes back, while the classes in use stay cached; the class
 * works on as if nothing had been. */
static void idle_classes_are_emptied(void) {
    enum { IDLE = 300, BUSY = 64 };
    void *block[60];
    for (int i = 0; i < 60; i++) {
        block[i] = take(IDLE);
        memset(block[i], i, IDLE);
    }
    for (int i = 1; i < 60; i++) {
        give(block[i]);
    }
    EXPECT(has_magazines(class_of(IDLE)), "nothing is cached");
    exchange(BUSY);
    uint32_t season = heap_season(thread_view.cache->heap);
    for (int turn = 0; turn < 12 && has_magazines(class_of(IDLE)); turn++) {
        usleep(130000);
        exchange(BUSY);
    }
    EXPECT(heap_season(thread_view.cache->heap) > season, "the season does not change");
    EXPECT(!has_magazines(class_of(IDLE)), "a class that is not used keeps its blocks");
    EXPECT(has_magazines(class_of(BUSY)), "a class that is used has lost its blocks");
    for (int i = 1; i < 60; i++) {
        block[i] = take(IDLE);
        memset(block[i], i, IDLE);
        EXPECT(block[i] != block[0], "a block in use was handed out");
    }
    for (int i = 0; i < 60; i++) {
        EXPECT(*(unsigned char *)block[i] == i && ((unsigned char *)block[i])[IDLE - 1] == i, "block %d has changed",
               i);
        give(block[i]);
    }
    expect_nothing_left();
}

/* -- the keeper ------------------------------------------------------------------------------------------------ */

static atomic_uint stage;

static void await_stage(unsigned wanted) {
    while (atomic_load(&stage) < wanted) {
        usleep(500);
    }
}

enum { ALL = 100, FEW = 10 };

/* Frees others' blocks and its own, and goes quiet: with a loaded magazine of others' at most, one full one and one half full. */
static void *go_quiet(void *argument) {
    static void *own[2 * MAGAZINE_MOST];
    for (size_t i = 0; i < 2 * MAGAZINE_MOST; i++) {
        own[i] = take(64);
    }
    for (size_t i = 0; i < FEW; i++) { /* less than a magazine */
        give(handed.block[i]);
    }
    for (size_t i = 0; i < 2 * MAGAZINE_MOST; i++) {
        give(own[i]);
    }
    struct cache_class *magazines = thread_magazines(class_of(64));
    EXPECT(magazines->previous != NULL && magazine_is_full(magazines->previous), "the previous magazine is not full");
    void **top = magazines->top;
    *(struct thread_cache **)argument = thread_view.cache;
    atomic_store(&stage, 1);
    await_stage(2);
    EXPECT(magazines->previous == NULL, "the keeper has left the previous magazine");
    EXPECT(magazines->top == top, "the keeper has touched the loaded magazine");
    for (size_t i = 0; i < 2 * MAGAZINE_MOST; i++) {
        own[i] = take(64);
        memset(own[i], 1, 64);
    }
    for (size_t i = 0; i < 2 * MAGAZINE_MOST; i++) {
        give(own[i]);
    }
    for (size_t i = FEW; i < ALL; i++) {
        give(handed.block[i]);
    }
    thread_view.cache->busy++; /* as in the midst of an exchange */
    atomic_store(&stage, 3);
    await_stage(4);
    unsigned slots;
    EXPECT(cached(&slots) > 0 && magazines->previous != NULL, "the keeper has emptied a busy thread's cache");
    thread_view.cache->busy--;
    return NULL;
}

/* A thread that has gone quiet does not keep from others what is theirs; one in the midst of an exchange is left alone. */
static void quiet_threads_are_relieved(void) {
    static void *block[ALL];
    pthread_t thread;
    struct thread_cache *cache = NULL;
    bool more;
    option_set(OPTION_HEAPS, 2);
    handed.block = block;
    for (size_t i = 0; i < ALL; i++) {
        block[i] = take(300);
    }
    thread_cache_flush();
    EXPECT(pthread_create(&thread, NULL, go_quiet, &cache) == 0, "no thread");
    await_stage(1);
    EXPECT(figures_now().in_use >= ALL * class_size(300), "the blocks have been delivered before they were many");
    (void)keeping_look(&more);
    EXPECT(figures_now().in_use >= ALL * class_size(300), "the first look does not know that the thread is quiet");
    (void)keeping_look(&more);
    size_t left = figures_now().in_use - (ALL - FEW) * class_size(300);
    EXPECT(left <= MAGAZINE_MOST * 64, "%zu bytes are still with the quiet thread", left);
    EXPECT(atomic_load(&cache->borrowed) == 0, "the cache is still borrowed");
    (void)keeping_look(&more);
    EXPECT(figures_now().in_use == (ALL - FEW) * class_size(300) + left, "a third look takes more");
    atomic_store(&stage, 2);
    await_stage(3);
    for (int look = 0; look < 3; look++) {
        (void)keeping_look(&more);
        EXPECT(atomic_load(&cache->borrowed) == 0, "the cache is still borrowed");
    }
    atomic_store(&stage, 4);
    pthread_join(thread, NULL);
    expect_nothing_left();
}

enum { KINDS = 4, PARTS = 40, EACH = 45 };
static const size_t kinds[KINDS] = {16, 300, 1024, 5000};
static void *parts[PARTS][KINDS][EACH];

/* Frees others' blocks, a part whenever it is told to, and never asks for one until the last. */
static void *only_give(void *unused) {
    for (unsigned part = 0; part < PARTS; part++) {
        await_stage(2 * part + 1);
        for (int i = 0; i < EACH; i++) {
            for (int kind = 0; kind < KINDS; kind++) {
                give(parts[part][kind][i]);
            }
        }
        for (int kind = 0; kind < KINDS; kind++) {
            EXPECT(!own_magazines(class_of(kinds[kind]))->taken, "%zu bytes are taken", kinds[kind]);
        }
        atomic_store(&stage, 2 * part + 2);
    }
    await_stage(2 * PARTS + 1);
    for (int round = 0; round < 3; round++) { /* what the keeper has left of the magazines is as good as any */
        for (int i = 0; i < EACH; i++) {
            for (int kind = 0; kind < KINDS; kind++) {
                parts[0][kind][i] = take(kinds[kind]);
                EXPECT(parts[0][kind][i] != NULL, "no memory");
                pattern_fill(parts[0][kind][i], 0, kinds[kind], (uintptr_t)parts[0][kind][i]);
            }
        }
        for (int i = 0; i < EACH; i++) {
            for (int kind = 0; kind < KINDS; kind++) {
                void *block = parts[0][kind][i];
                EXPECT(pattern_mismatch(block, kinds[kind], (uintptr_t)block) == SIZE_MAX, "two blocks are one");
                give(block);
            }
        }
    }
    return unused;
}

/* A thread that frees what others took, and sleeps: nothing of that stays with it, not even what lies loaded, and not what it
 * frees without any exchange after the keeper was there. */
static void what_is_only_given_is_delivered(void) {
    pthread_t thread;
    bool more;
    option_set(OPTION_HEAPS, 2);
    for (int part = 0; part < PARTS; part++) {
        for (int kind = 0; kind < KINDS; kind++) {
            for (int i = 0; i < EACH; i++) {
                parts[part][kind][i] = take(kinds[kind]);
            }
        }
    }
    EXPECT(pthread_create(&thread, NULL, only_give, NULL) == 0, "no thread");
    for (unsigned part = 0; part < PARTS; part++) {
        atomic_store(&stage, 2 * part + 1);
        await_stage(2 * part + 2);
        (void)keeping_look(&more);
        (void)keeping_look(&more);
        size_t out = 0;
        for (int kind = 0; kind < KINDS; kind++) {
            out += (PARTS - 1 - part) * EACH * class_size(kinds[kind]);
        }
        size_t in_use = in_use_outside_caches();
        EXPECT(in_use == out, "%zu bytes instead of %zu are in use after part %u", in_use, out, part);
    }
    atomic_store(&stage, 2 * PARTS + 1);
    pthread_join(thread, NULL);
    expect_nothing_left();
}

enum { CROWD = 80, LARGE = 8192 };
static void *large[4 * CROWD];

static void *be_there(void *unused) {
    give(take(1));
    atomic_fetch_add(&running, 1);
    await_stage(4);
    return unused;
}

static void be_many(pthread_t crowd[CROWD]) {
    for (int i = 0; i < CROWD; i++) {
        EXPECT(pthread_create(&crowd[i], NULL, be_there, NULL) == 0, "no thread");
    }
    while (atomic_load(&running) < CROWD) {
        sched_yield();
    }
}

/* Who uses a class once keeps nothing of it while there are many, and who goes on using it has magazines as before. */
static void a_crowd_earns_its_magazines(void) {
    pthread_t crowd[CROWD];
    give(take(1));
    be_many(crowd);
    struct cache_class *magazines = own_magazines(class_of(LARGE));
    for (int i = 0; i < 3; i++) {
        give(take(LARGE));
        EXPECT(magazines->top == VOID_TOP, "turn %d was enough for a magazine", i);
    }
    for (int i = 0; i < 10; i++) {
        give(take(LARGE));
    }
    EXPECT(magazines->top != VOID_TOP, "a class in use has no magazine");
    give(take(16));
    EXPECT(own_magazines(class_of(16))->top != VOID_TOP, "a small block's magazine has to be earned");
    atomic_store(&stage, 4);
    for (int i = 0; i < CROWD; i++) {
        pthread_join(crowd[i], NULL);
    }
    expect_nothing_left();
}

/* With so many threads a magazine of these holds one block, and a single one fills it. */
static void *give_one_then_another(void *unused) {
    give(take(1));
    struct cache_class *magazines = own_magazines(class_of(LARGE));
    magazines->visits = 100; /* it is earned */
    give(large[0]);
    EXPECT(magazine_is_full(magazines->top) && magazine_count(magazines->top) == 1, "the magazine is not full");
    atomic_store(&stage, 1);
    await_stage(2);
    EXPECT(magazine_count(magazines->top) == 0, "the keeper has left the block");
    give(large[1]);
    give(large[2]);
    atomic_store(&stage, 3);
    await_stage(4);
    return unused;
}

/* A magazine that was full when the keeper emptied it is not taken for a full one later. */
static void full_ones_are_delivered_whole(void) {
    pthread_t crowd[CROWD], thread;
    bool more;
    option_set(OPTION_HEAPS, 1);
    for (int i = 0; i < 3; i++) {
        large[i] = take(LARGE);
    }
    be_many(crowd);
    EXPECT(pthread_create(&thread, NULL, give_one_then_another, NULL) == 0, "no thread");
    await_stage(1);
    (void)keeping_look(&more);
    (void)keeping_look(&more);
    atomic_store(&stage, 2);
    await_stage(3);
    for (int i = 0; i < 4 * CROWD; i++) {
        large[i] = take(LARGE);
        EXPECT(large[i] != NULL, "no memory for block %d", i);
    }
    for (int i = 0; i < 4 * CROWD; i++) {
        give(large[i]);
    }
    atomic_store(&stage, 4);
    pthread_join(thread, NULL);
    for (int i = 0; i < CROWD; i++) {
        pthread_join(crowd[i], NULL);
    }
    expect_nothing_left();
}

enum { GIVERS = 3, RING = 1024, HANDED = SCENARIO_SANITIZED ? 60000 : 200000 };
static _Atomic(char *) ring[GIVERS][RING];

/* Frees what comes along, as fast as it comes. */
static void *give_what_comes(void *argument) {
    size_t number = (uintptr_t)argument;
    for (size_t i = 0; i < HANDED; i++) {
        char *block;
        while ((block = atomic_load_explicit(&ring[number][i % RING], memory_order_acquire)) == NULL) {
            sched_yield();
        }
        EXPECT(block[0] == (char)i && block[15] == (char)i, "a block in use was handed out again");
        block[0] = block[15] = 0;
        atomic_store_explicit(&ring[number][i % RING], NULL, memory_order_release);
        give(block);
    }
    atomic_fetch_add(&running, 1);
    await_stage(1);
    return NULL;
}

static void *keep_without_a_pause(void *unused) {
    bool more;
    while (!atomic_load(&stop)) {
        (void)keeping_look(&more);
    }
    return unused;
}

/* The keeper takes from magazines that are being pushed to: each block comes back once, to whoever asks next. */
static void given_while_the_keeper_looks(void) {
    pthread_t thread[GIVERS], keeper;
    bool more;
    give(take(16));
    EXPECT(pthread_create(&keeper, NULL, keep_without_a_pause, NULL) == 0, "no thread");
    for (uintptr_t i = 0; i < GIVERS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, give_what_comes, (void *)i) == 0, "no thread");
    }
    for (size_t i = 0; i < HANDED; i++) {
        for (size_t number = 0; number < GIVERS; number++) {
            while (atomic_load_explicit(&ring[number][i % RING], memory_order_acquire) != NULL) {
                sched_yield();
            }
            char *block = take(kinds[(i + number) % KINDS]);
            EXPECT(block != NULL, "no memory");
            block[0] = block[15] = (char)i;
            atomic_store_explicit(&ring[number][i % RING], block, memory_order_release);
        }
    }
    while (atomic_load(&running) < GIVERS) {
        sched_yield();
    }
    atomic_store(&stop, true);
    pthread_join(keeper, NULL);
    (void)keeping_look(&more);
    (void)keeping_look(&more);
    EXPECT(in_use_outside_caches() == 0, "%zu bytes are still with threads that sleep", figures_now().in_use);
    atomic_store(&stage, 1);
    for (size_t i = 0; i < GIVERS; i++) {
        pthread_join(thread[i], NULL);
    }
    expect_nothing_left();
}

static atomic_size_t rounds;

static void *exchange_until_stopped(void *argument) {
    enum { MANY = 4 * MAGAZINE_MOST };
    void *block[MANY];
    while (!atomic_load(&stop)) {
        for (int i = 0; i < MANY; i++) {
            block[i] = take(64);
        }
        for (int i = 0; i < MANY; i++) {
            give(block[i]);
        }
        *(struct thread_cache * _Atomic *)argument = thread_view.cache;
        atomic_fetch_add(&rounds, 1);
    }
    return NULL;
}

/* A thread whose cache is borrowed stands still at its next exchange, and goes on when it is given back, woken or not. */
static void borrowed_caches_are_waited_for(void) {
    static struct thread_cache *_Atomic theirs;
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, exchange_until_stopped, &theirs) == 0, "no thread");
    while (atomic_load(&rounds) < 10) {
        usleep(1000);
    }
    struct thread_cache *cache = atomic_load(&theirs);
    for (int turn = 0; turn < 20; turn++) {
        size_t before = atomic_load(&rounds);
        atomic_store(&cache->borrowed, 1);
        bool stands = false; /* for longer than it sleeps at a time, once it has come to its next exchange */
        for (int wait = 0; !stands; wait++) {
            EXPECT(wait < 50, "the thread goes on with a borrowed cache");
            uint32_t visits = atomic_load(&cache->visits);
            usleep(15000);
            stands = atomic_load(&cache->visits) == visits;
        }
        atomic_store(&cache->borrowed, 0);
        if (turn % 2 == 0) {
            os_wake(&cache->borrowed);
        }
        for (int wait = 0; atomic_load(&rounds) < before + 3; wait++) {
            EXPECT(wait < 2000, "the thread does not go on");
            usleep(1000);
        }
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    expect_nothing_left();
}

/* -- threads end ----------------------------------------------------------------------------------------------- */

static void *live_and_end(void *argument) {
    static _Thread_local struct held held[HELD];
    uint64_t random = (uint64_t)(uintptr_t)argument;
    size_t bytes = 0;
    walk(held, &random, 4000, &bytes);
    for (size_t i = 0; i < HELD; i++) {
        if (held[i].address != NULL) {
            give(held[i].address);
        }
    }
    return NULL;
}

/* Nothing is parked: a thread leaves neither blocks nor its heap nor its cache behind. Some threads need a few magazines more
 * than others: what half of them needed is nearly all that is ever needed. */
static void threads_leave_nothing(void) {
    enum { THREADS = SCENARIO_SANITIZED ? 100 : 300 };
    give(take(1));
    size_t bookkeeping = 0;
    for (uintptr_t i = 0; i < THREADS; i++) {
        run_thread(live_and_end, (void *)(i + 1));
        EXPECT(in_use_outside_caches() == 0, "thread %zu left %zu bytes in use", (size_t)i, figures_now().in_use);
        EXPECT(figures_now().heaps <= 2, "%u heaps for two threads", figures_now().heaps);
        bookkeeping = i == THREADS / 2 ? bits_round_up(figures_now().bookkeeping, SLICE_BYTES) : bookkeeping;
        EXPECT(i <= THREADS / 2 || figures_now().bookkeeping <= bookkeeping + SLICE_BYTES,
               "bookkeeping grows: %zu bytes after thread %zu", figures_now().bookkeeping, (size_t)i);
    }
    expect_nothing_left();
}

static pthread_key_t late_key;

/* Runs in every pass over the keys that there is, and allocates in each: with a cache at first, without one at last. */
static void allocate_late(void *passes) {
    void *block = take(200);
    EXPECT(block != NULL, "no memory");
    memset(block, 1, 200);
    give(block);
    (void)pthread_setspecific(late_key, (char *)passes + 1);
}

static void *end_with_a_destructor(void *argument) {
    give(take(100));
    (void)pthread_setspecific(late_key, (void *)1);
    return argument;
}

static void destructors_may_allocate(void) {
    if (SCENARIO_SANITIZED) {
        return; /* the thread sanitizer has left the thread before the last pass */
    }
    EXPECT(pthread_key_create(&late_key, allocate_late) == 0, "no key");
    for (int i = 0; i < 20; i++) {
        run_thread(end_with_a_destructor, NULL);
    }
    EXPECT(in_use_outside_caches() == 0, "%zu bytes are in use", figures_now().in_use);
    expect_nothing_left();
}

/* -- many threads ---------------------------------------------------------------------------------------------- */

enum { THREADS = 12, SLOTS = 512 };

struct letter {
    size_t size;
    uint64_t id;
};

static _Atomic(struct letter *) slots[SLOTS];
static pthread_barrier_t all_done;

static void read_letter(struct letter *letter) {
    size_t words = (letter->size - sizeof *letter) / 8;
    for (size_t i = 0; i < bits_min(words, 40); i++) {
        EXPECT(((uint64_t *)(letter + 1))[i] == pattern_word(letter->id, i), "word %zu of %zu has changed", i, words);
    }
    give(letter);
}

static struct letter *write_letter(uint64_t *random) {
    size_t most = (size_t)32 << pattern_below(random, 12);
    size_t size = sizeof(struct letter) + pattern_below(random, most);
    struct letter *letter = take(size);
    EXPECT(letter != NULL, "no memory");
    *letter = (struct letter){size, pattern_random(random)};
    for (size_t i = 0; i < bits_min((size - sizeof *letter) / 8, 40); i++) {
        ((uint64_t *)(letter + 1))[i] = pattern_word(letter->id, i);
    }
    return letter;
}

static void *post_letters(void *argument) {
    uint64_t random = (uint64_t)(uintptr_t)argument;
    for (int i = 0; i < (SCENARIO_SANITIZED ? 5000 : 60000); i++) {
        struct letter *letter = pattern_below(&random, 2) == 0 ? write_letter(&random) : NULL;
        letter = atomic_exchange(&slots[pattern_below(&random, SLOTS)], letter);
        if (letter != NULL) {
            read_letter(letter);
        }
        if (pattern_below(&random, 20000) == 0) {
            thread_cache_flush();
            look_trim();
        }
    }
    pthread_barrier_wait(&all_done);
    thread_cache_flush(); /* with all threads alive still */
    pthread_barrier_wait(&all_done);
    pthread_barrier_wait(&all_done);
    return NULL;
}

static void everything_comes_back(void) {
    pthread_t thread[THREADS];
    EXPECT(pthread_barrier_init(&all_done, NULL, THREADS + 1) == 0, "no barrier");
    give(take(1));
    for (uintptr_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, post_letters, (void *)(i + 1)) == 0, "no thread");
    }
    pthread_barrier_wait(&all_done);
    size_t full = resident_kib();
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots[i] != NULL) {
            read_letter(slots[i]);
        }
    }
    pthread_barrier_wait(&all_done);
    expect_nothing_left();
    EXPECT(SCENARIO_SANITIZED || resident_kib() <= full, "%zu KiB at the height, %zu after", full, resident_kib());
    pthread_barrier_wait(&all_done);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    expect_nothing_left();
}

/* Works in bursts, and is quiet between them for as long as two looks of the keeper take: letters of all sizes, blocks
 * that are to be zero, and pauses at every place. */
static void *post_and_pause(void *argument) {
    uint64_t random = (uint64_t)(uintptr_t)argument;
    for (int i = 0; i < (SCENARIO_SANITIZED ? 30000 : 100000); i++) {
        struct letter *letter = pattern_below(&random, 2) == 0 ? write_letter(&random) : NULL;
        letter = atomic_exchange(&slots[pattern_below(&random, SLOTS)], letter);
        if (letter != NULL) {
            read_letter(letter);
        }
        if (pattern_below(&random, 16) == 0) {
            unsigned class = class_of(CLASS_FRESH) + (unsigned)pattern_below(&random, 8);
            struct zeros zeros;
            char *block = thread_cache_take_zero(class, &zeros);
            EXPECT(block != NULL, "no memory");
            EXPECT(pattern_not_zero(block + zeros.from, zeros.to - zeros.from) == SIZE_MAX, "a block of %u is not zero",
                   class_bytes[class]);
            memset(block, 0xff, class_bytes[class]);
            give(block);
        }
        if (pattern_below(&random, 300) == 0) {
            usleep((unsigned)pattern_below(&random, 900));
        }
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* The keeper looks round without a pause: it borrows caches at every moment, and no letter is lost or changed. */
static void kept_while_threads_work(void) {
    pthread_t thread[THREADS];
    size_t bytes = 0, looks = 0;
    option_set(OPTION_HEAPS, 5);
    give(take(1));
    atomic_store(&running, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, post_and_pause, (void *)(i + 1)) == 0, "no thread");
    }
    while (atomic_load(&running) > 0) {
        bool more;
        bytes += keeping_look(&more);
        looks++;
        if (looks % 4 == 3) { /* ours goes quiet too, for two looks */
            give(take(150000));
            bytes += keeping_look(&more) + keeping_look(&more);
            for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
                EXPECT(thread_view.cache->slots[slot].previous == NULL, "a quiet cache was not relieved of slot %u",
                       slot);
            }
        }
        usleep(100);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots[i] != NULL) {
            read_letter(slots[i]);
        }
    }
    EXPECT(bytes > 0 && looks > 4, "%zu bytes in %zu looks", bytes, looks);
    expect_nothing_left();
}

/* 64 MiB of small blocks, freed in no order: what the process holds of memory goes back to what it was. */
static void resident_memory_comes_back(void) {
    enum { BLOCKS = 1 << 18, SIZE = 256 };
    static void *block[BLOCKS];
    uint64_t random = 8;
    memset(block, 1, sizeof block); /* resident from here on */
    give(take(SIZE));
    size_t before = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = take(SIZE);
        EXPECT(block[i] != NULL, "no memory");
        memset(block[i], 1, SIZE);
    }
    size_t full = resident_kib();
    for (size_t left = BLOCKS; left > 0; left--) {
        size_t at = pattern_below(&random, left);
        give(block[at]);
        block[at] = block[left - 1];
    }
    expect_nothing_left();
    if (!SCENARIO_SANITIZED) {
        EXPECT(full > before + 60 * 1024, "%zu KiB before, %zu with the blocks", before, full);
        EXPECT(resident_kib() < before + 4 * 1024 + 2 * resident_piece_bytes() / 1024, "%zu KiB before, %zu after %zu",
               before, resident_kib(), full);
    }
}

/* -- lent blocks ----------------------------------------------------------------------------------------------- */

static _Atomic(void *) passed_on; /* a block that another thread frees; its first word is its size */
static _Atomic size_t lent_seen;

static void free_filled(void *block) {
    size_t size = *(size_t *)block;
    size_t mismatch = pattern_mismatch_from(block, sizeof size, size, (uintptr_t)block);
    EXPECT(mismatch == SIZE_MAX, "byte %zu of a block of %zu has changed", mismatch, size);
    EXPECT(usable_bytes(block) == class_size(size), "%zu bytes of %zu", usable_bytes(block), size);
    give(block);
}

static void *take_filled(size_t size) {
    void *block = take(size);
    EXPECT(block != NULL && usable_bytes(block) == class_size(size), "%zu bytes of %zu", usable_bytes(block), size);
    pattern_fill(block, sizeof size, size, (uintptr_t)block);
    *(size_t *)block = size;
    lent_seen += slab_lends(block);
    return block;
}

/* Blocks of one size after another, of which a few stay. */
static void *change_sizes(void *argument) {
    enum { MOST = 1 << 15, PHASES = 16, KEPT = 32, PHASE_BYTES = 1 << 20 };
    static _Thread_local void *block[MOST + 2 * PHASES * MOST / KEPT];
    uint64_t random = (uintptr_t)argument;
    size_t kept = 0;
    for (size_t phase = 0; phase < PHASES; phase++) {
        size_t size = (size_t)32 << phase / 2 | (phase % 2 != 0 ? (size_t)16 << phase / 2 : 0), count = kept;
        for (size_t bytes = 0; bytes < PHASE_BYTES; bytes += size) {
            block[count++] = take_filled(size);
        }
        size_t stay = kept + (count - kept) / KEPT;
        while (count > stay) {
            size_t at = kept + pattern_below(&random, count - kept);
            void *other = pattern_below(&random, 4) == 0 ? atomic_exchange(&passed_on, block[at]) : block[at];
            if (other != NULL) {
                free_filled(other);
            }
            block[at] = block[--count];
        }
        kept = stay;
    }
    while (kept > 0) {
        free_filled(block[--kept]);
    }
    return NULL;
}

static void sizes_change_in_many_threads(void) {
    enum { CHANGING = 4 };
    pthread_t thread[CHANGING];
    option_set(OPTION_HEAPS, 2);
    option_set(OPTION_RETAIN_MIB, 0);
    option_set(OPTION_RETAIN_PERCENT, 0);
    give(take(1));
    for (uintptr_t i = 0; i < CHANGING; i++) {
        EXPECT(pthread_create(&thread[i], NULL, change_sizes, (void *)(i + 1)) == 0, "no thread");
    }
    for (size_t i = 0; i < CHANGING; i++) {
        pthread_join(thread[i], NULL);
    }
    EXPECT(lent_seen > 1000, "%zu blocks were taken from slabs that lend", lent_seen);
    free_filled(passed_on);
    expect_nothing_left();
}

/* -- fork ------------------------------------------------------------------------------------------------------ */

static void *run_until_stopped(void *argument) {
    static _Thread_local struct held held[HELD];
    uint64_t random = (uint64_t)(uintptr_t)argument;
    size_t bytes = 0;
    atomic_fetch_add(&running, 1);
    while (!atomic_load(&stop)) {
        walk(held, &random, 200, &bytes);
    }
    for (size_t i = 0; i < HELD; i++) {
        if (held[i].address != NULL) {
            give(held[i].address);
        }
    }
    return NULL;
}

/* In the child: blocks are handed out once each, whatever moment the fork froze the other threads at. */
static void live_in_child(uint64_t seed) {
    static struct held held[HELD];
    uint64_t random = seed;
    size_t bytes = 0;
    alarm(60);
    for (int round = 0; round < 2; round++) {
        walk(held, &random, 4000, &bytes);
        thread_cache_flush();
        look_trim();
    }
    if (!SCENARIO_SANITIZED) { /* the thread sanitizer takes no new threads after a fork */
        run_thread(live_and_end, (void *)(uintptr_t)seed);
    }
    street_check(true);
}

static void *keep_until_stopped(void *argument) {
    give(take(1)); /* no keeper looks round before there is anything */
    atomic_fetch_add(&running, 1);
    while (!atomic_load(&stop)) {
        bool more;
        (void)keeping_look(&more);
        usleep(100);
    }
    return argument;
}

static void forked_while_threads_allocate(void) {
    enum { WALKERS = 6 };
    pthread_t thread[WALKERS];
    for (uintptr_t i = 0; i < WALKERS; i++) {
        void *(*run)(void *) = i == 0 ? keep_until_stopped : run_until_stopped;
        EXPECT(pthread_create(&thread[i], NULL, run, (void *)(i + 1)) == 0, "no thread");
    }
    while (atomic_load(&running) < WALKERS) {
        sched_yield();
    }
    for (uint64_t i = 0; i < 40; i++) {
        usleep(500);
        pid_t child = fork();
        EXPECT(child >= 0, "no child");
        if (child == 0) {
            live_in_child(i + 100);
            _exit(0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "child %d: wait status %#x", (int)i,
               (unsigned)status);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < WALKERS; i++) {
        pthread_join(thread[i], NULL);
    }
    expect_nothing_left();
}

static atomic_size_t handed_next;

static void *cache_blocks_and_wait(void *argument) {
    void *block[300];
    for (size_t i = 0; i < 20; i++) { /* the main thread's: on their way to its heap */
        give(handed.block[atomic_fetch_add(&handed_next, 1)]);
    }
    for (int i = 0; i < 300; i++) {
        block[i] = take(500);
    }
    for (int i = 1; i < 300; i++) {
        give(block[i]);
    }
    *(void **)argument = block[0];
    atomic_fetch_add(&running, 1);
    while (!atomic_load(&stop)) {
        usleep(1000);
    }
    give(block[0]);
    return NULL;
}

/* Caches of threads that are gone are taken over a few slots at a time; this all of them. */
static void adopt_everything(void) {
    give(take(1));
    for (int turn = 0; atomic_load(&registry.orphans) != 0; turn++) {
        EXPECT(turn < 10000, "%u orphans are left", atomic_load(&registry.orphans));
        enum pass pass = thread_enter();
        EXPECT(pass != PASS_REFUSED, "refused without a fork");
        (void)thread_adopt_some();
        thread_leave(pass);
    }
}

/* What idle threads had cached, for themselves or for others, is the child's to use; what they held is still held. */
static void child_takes_caches_over(void) {
    enum { IDLERS = 4 };
    static void *block[20 * IDLERS];
    pthread_t thread[IDLERS];
    void *kept[IDLERS];
    for (size_t i = 0; i < 20 * IDLERS; i++) {
        block[i] = take(700);
    }
    thread_cache_flush();
    handed.block = block;
    for (size_t i = 0; i < IDLERS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, cache_blocks_and_wait, &kept[i]) == 0, "no thread");
    }
    while (atomic_load(&running) < IDLERS) {
        sched_yield();
    }
    EXPECT(figures_now().in_use > IDLERS * (512 + 20 * class_size(700)), "the caches are empty");
    pid_t child = fork();
    EXPECT(child >= 0, "no child");
    if (child == 0) {
        adopt_everything();
        EXPECT(in_use_outside_caches() == IDLERS * 512, "%zu bytes in use", figures_now().in_use);
        for (size_t i = 0; i < IDLERS; i++) {
            give(kept[i]);
        }
        expect_nothing_left();
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "wait status %#x", (unsigned)status);
    atomic_store(&stop, true);
    for (size_t i = 0; i < IDLERS; i++) {
        pthread_join(thread[i], NULL);
    }
}

static void *stay_in_an_exchange(void *argument) {
    give(take(40));
    thread_view.cache->busy++; /* as if frozen in the midst of one */
    atomic_fetch_add(&running, 1);
    while (!atomic_load(&stop)) {
        usleep(1000);
    }
    thread_view.cache->busy--;
    return argument;
}

static void *wait_to_end(void *argument) {
    give(take(40));
    atomic_fetch_add(&running, 1);
    while (!atomic_load((atomic_bool *)argument)) {
        sched_yield();
    }
    return NULL;
}

static void *walk_where_there_is_room(void *argument) {
    static struct held held[HELD];
    size_t bytes = 0;
    uint64_t random = 3;
    give(take(40));
    struct heap *before = thread_view.cache->heap;
    atomic_fetch_add(&running, 1);
    while (!atomic_load((atomic_bool *)argument)) {
        sched_yield();
    }
    for (int i = 0; i < 1000 && thread_view.cache->heap == before; i++) {
        walk(held, &random, 1000, &bytes);
    }
    EXPECT(thread_view.cache->heap != before, "still on the crowded heap");
    for (unsigned class = 0; class < LINE_CLASSES; class++) {
        give(take(class_bytes[class]));
        EXPECT(thread_magazines(class) == own_magazines(class), "class %u is still taken from the old heap's slot",
               class);
    }
    walk(held, &random, 100000, &bytes); /* frees what it has from before, the old heap's, among others */
    for (size_t i = 0; i < HELD; i++) {
        if (held[i].address != NULL) {
            give(held[i].address);
        }
    }
    return NULL;
}

/* Of four threads on two heaps two end, both of the same heap: one of the others takes their place there. */
static void a_thread_moves_where_there_is_room(void) {
    atomic_bool end[3] = {false, false, false};
    pthread_t thread[3];
    void *(*const run[3])(void *) = {wait_to_end, walk_where_there_is_room, wait_to_end};
    option_set(OPTION_HEAPS, 2);
    give(take(40));
    for (unsigned i = 0; i < 3; i++) { /* on heaps 1, 0, 1; this one is on 0 */
        EXPECT(pthread_create(&thread[i], NULL, run[i], &end[i]) == 0, "no thread");
        while (atomic_load(&running) <= i) {
            sched_yield();
        }
    }
    for (unsigned i = 0; i < 3; i += 2) {
        atomic_store(&end[i], true);
        pthread_join(thread[i], NULL);
    }
    atomic_store(&end[1], true);
    pthread_join(thread[1], NULL);
    expect_nothing_left();
}

/* In a child that was copied while somebody was inside, nothing is touched but magazines and the shelter. */
static void live_torn(void) {
    static void *block[2000];
    alarm(60);
    struct heap_figures before = figures_now();
    for (size_t i = 0; i < 2000; i++) {
        block[i] = take(i * 97 % 300000);
        EXPECT(block[i] != NULL && usable_bytes(block[i]) >= i * 97 % 300000, "no block in a torn child");
        memset(block[i], 0xee, i * 97 % 300000);
    }
    for (size_t i = 0; i < 2000; i++) {
        EXPECT(i * 97 % 300000 == 0 || *(unsigned char *)block[i] == 0xee, "block %zu has changed", i);
        give(block[i]);
    }
    EXPECT(before.in_use == figures_now().in_use && before.slabs == figures_now().slabs, "the heaps were touched");
}

/* A fork does not wait for ever for a thread that does not come out, and its children do not touch what that may have left half done. */
static void a_torn_child_lives_on_the_shelter(void) {
    pthread_t thread;
    give(take(40));
    EXPECT(pthread_create(&thread, NULL, stay_in_an_exchange, NULL) == 0, "no thread");
    while (atomic_load(&running) == 0) {
        sched_yield();
    }
    pid_t child = fork();
    EXPECT(child >= 0, "no child");
    if (child == 0) {
        live_torn();
        pid_t grandchild = fork();
        if (grandchild == 0) {
            live_torn();
            _exit(0);
        }
        int status = 0;
        EXPECT(waitpid(grandchild, &status, 0) == grandchild && status == 0, "wait status %#x", (unsigned)status);
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "wait status %#x", (unsigned)status);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    expect_nothing_left();
}

/* -- little room ----------------------------------------------------------------------------------------------- */

static void out_of_memory(void) {
    if (SCENARIO_SANITIZED) {
        return;
    }
    const struct rlimit limit = {(size_t)64 << 20, RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "no limit can be set");
    size_t had = 0;
    for (int round = 0; round < 5; round++) {
        static const size_t sizes[] = {100 * 1024, 1000, 16};
        size_t bytes = 0;
        void **last = NULL; /* a chain through the blocks themselves */
        for (size_t s = 0; s < 3; s++) {
            void **block;
            errno = 0;
            size_t size = sizes[(s + (size_t)round) % 3];
            while ((block = take(size)) != NULL) {
                *block = last;
                last = block;
                bytes += class_size(size);
            }
            EXPECT(errno == ENOMEM, "errno is %d", errno);
        }
        EXPECT(take((size_t)1 << 30) == NULL && take(PTRDIFF_MAX) == NULL && take(SIZE_MAX) == NULL,
               "more than the limit");
        EXPECT(round == 0 || bytes >= had / 8 * 7, "%zu bytes in round %d, %zu before", bytes, round, had);
        had = round == 0 ? bytes : had;
        while (last != NULL) {
            void **next = *last;
            errno = 77;
            give(last);
            EXPECT(errno == 77, "free changed errno to %d", errno);
            last = next;
        }
        thread_cache_flush();
        look_trim();
    }
    EXPECT(had > 8 << 20, "only %zu bytes", had);
    expect_nothing_left();
}

/* A summoned thread that only frees is held up for a few blocks, and not at every block from then on; its summons waits for an allocation. */
static void who_only_frees_is_not_held_up(void) {
    enum { BLOCKS = 20000, SIZE = 64, HELD_UP = 64 };
    static struct summons summons;
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take(SIZE);
        EXPECT(blocks[i] != NULL, "no memory");
    }
    struct thread_cache *cache = thread_view.cache;
    uint32_t visits[2];
    for (int summoned = 0; summoned < 2; summoned++) {
        thread_cache_flush();
        give(take(SIZE)); /* the slot is one that the thread takes from */
        summons = (struct summons){.answered = summoned != 0};
        cache->summons = &summons;
        uint32_t before = atomic_load_explicit(&cache->visits, memory_order_relaxed);
        for (int i = 0; i < BLOCKS; i++) {
            give(blocks[i]);
        }
        visits[summoned] = atomic_load_explicit(&cache->visits, memory_order_relaxed) - before;
        cache->summons = NULL;
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = take(SIZE);
        }
    }
    EXPECT(visits[1] > visits[0], "it was never held up");
    EXPECT(visits[1] <= visits[0] + 2 * HELD_UP, "inside %u times, and %u times without a summons", visits[1],
           visits[0]);
    EXPECT(summons.answered || atomic_load_explicit(&summons.out, memory_order_relaxed) != 0, "the summons is lost");
    for (int i = 0; i < BLOCKS; i++) {
        give(blocks[i]);
    }
    expect_nothing_left();
}

static const struct scenario scenarios[] = {
    {"what_a_heap_has_is_not_loaded", what_a_heap_has_is_not_loaded},
    {"every_size_to_a_mebibyte", every_size_to_a_mebibyte},
    {"every_alignment", every_alignment},
    {"figures_follow_the_program", figures_follow_the_program},
    {"magazines_grow", magazines_grow},
    {"order_of_blocks", order_of_blocks},
    {"remote_blocks_are_delivered", remote_blocks_are_delivered},
    {"blocks_of_others_are_used_again", blocks_of_others_are_used_again},
    {"few_blocks_are_delivered_in_time", few_blocks_are_delivered_in_time},
    {"deliveries_are_few", deliveries_are_few},
    {"used_blocks_are_cleared_first", used_blocks_are_cleared_first},
    {"used_blocks_come_by_the_magazine", used_blocks_come_by_the_magazine},
    {"every_owner_gets_its_own", every_owner_gets_its_own},
    {"remote_blocks_without_memory", remote_blocks_without_memory},
    {"idle_classes_are_emptied", idle_classes_are_emptied},
    {"what_is_only_given_is_delivered", what_is_only_given_is_delivered},
    {"a_crowd_earns_its_magazines", a_crowd_earns_its_magazines},
    {"full_ones_are_delivered_whole", full_ones_are_delivered_whole},
    {"given_while_the_keeper_looks", given_while_the_keeper_looks},
    {"borrowed_caches_are_waited_for", borrowed_caches_are_waited_for},
    {"quiet_threads_are_relieved", quiet_threads_are_relieved},
    {"threads_leave_nothing", threads_leave_nothing},
    {"destructors_may_allocate", destructors_may_allocate},
    {"everything_comes_back", everything_comes_back},
    {"kept_while_threads_work", kept_while_threads_work},
    {"sizes_change_in_many_threads", sizes_change_in_many_threads},
    {"resident_memory_comes_back", resident_memory_comes_back},
    {"forked_while_threads_allocate", forked_while_threads_allocate},
    {"child_takes_caches_over", child_takes_caches_over},
    {"a_torn_child_lives_on_the_shelter", a_torn_child_lives_on_the_shelter},
    {"a_thread_moves_where_there_is_room", a_thread_moves_where_there_is_room},
    {"who_only_frees_is_not_held_up", who_only_frees_is_not_held_up},
    {"out_of_memory", out_of_memory},
};

SCENARIO_MAIN(scenarios)
