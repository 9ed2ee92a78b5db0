/* The budget of free memory in slabs: what a heap that grows purges of other slabs, counted where slabs ask for it. */
#include "heap_inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "arena.h"
#include "limit.h"
#include "options.h"
#include "os.h"
#include "scenario.h"

enum {
    MIB = 1 << 20,
    PAGE_CLASS = 27, /* 4,096 bytes */
    WIDE_CLASS = 32, /* 8,192 bytes */
    SMALL_CLASS = 7, /* 128 bytes */
    FILL_MIB = 96,
    BASE_MIB = 8, /* of the default budget, */
    SHARE = 8, /* and this part of what is used */
    PIECES_MOST = 24, /* within one call */
    BYTES_MOST = MIB + 256 * 1024,
    BLOCKS_MOST = FILL_MIB * MIB / 128,
    THREADS = 4,
};

static void *block[BLOCKS_MOST];
static _Atomic size_t calls, bytes_purged; /* by all threads */
static atomic_uint at_once, most_at_once;
static bool refused;

bool __real_arena_purge_pages(uint32_t slab, void *at, size_t bytes, size_t unclean);

bool __wrap_arena_purge_pages(uint32_t slab, void *at, size_t bytes, size_t unclean) {
    unsigned now = atomic_fetch_add(&at_once, 1) + 1;
    if (now > atomic_load(&most_at_once)) {
        atomic_store(&most_at_once, now);
    }
    if (now > 1) {
        usleep(100);
    }
    atomic_fetch_add(&calls, 1);
    atomic_fetch_add(&bytes_purged, bytes);
    bool purged = !refused && __real_arena_purge_pages(slab, at, bytes, unclean);
    atomic_fetch_sub(&at_once, 1);
    return purged;
}

static size_t looks; /* at slabs */

bool __real_slab_begin_cleaning(uint32_t slab, enum cleaning cleaning, bool *busy);

bool __wrap_slab_begin_cleaning(uint32_t slab, enum cleaning cleaning, bool *busy) {
    looks++;
    return __real_slab_begin_cleaning(slab, cleaning, busy);
}

static struct heap *start(void) {
    EXPECT(heap_start(), "no reservation");
    struct heap *heap;
    heap_join(&heap);
    return heap;
}

static size_t returnable(void) {
    struct heap_figures figures;
    heap_figures(&figures, NULL);
    return figures.free - figures.clean;
}

static size_t budget_bytes(void) {
    struct arena_figures figures;
    arena_figures(&figures);
    return (size_t)BASE_MIB * MIB + (figures.used - returnable()) / SHARE;
}

static void *take(struct heap *heap, unsigned class) {
    void *taken = heap_take_one(heap, class, &(struct zeros){0, 0});
    EXPECT(taken != NULL, "no memory");
    *(volatile char *)taken = 1;
    return taken;
}

/* Fills slabs of the class, then frees all but one block in `keep`. Returns how many blocks were freed. */
static size_t fill_and_thin(struct heap *heap, unsigned class, size_t keep) {
    size_t blocks = (size_t)FILL_MIB * MIB / class_bytes[class], freed = 0;
    for (size_t i = 0; i < blocks; i++) {
        block[i] = take(heap, class);
    }
    for (size_t i = 0; i < blocks; i++) {
        if (i % keep != 0) {
            heap_give(&(void *){block[i]}, 1);
            freed++;
        }
    }
    return freed;
}

/* Grows by blocks of the class; no single block costs more than the bound. */
static void grow(struct heap *heap, unsigned class, size_t mib) {
    for (size_t taken = 0; taken < mib * MIB; taken += class_bytes[class]) {
        size_t calls_before = calls, bytes_before = bytes_purged;
        (void)take(heap, class);
        EXPECT(calls - calls_before <= PIECES_MOST, "one block made %zu calls", calls - calls_before);
        EXPECT(bytes_purged - bytes_before <= BYTES_MOST, "one block purged %zu bytes", bytes_purged - bytes_before);
    }
}

static void free_pages_are_bounded(void) {
    struct heap *heap = start();
    (void)fill_and_thin(heap, PAGE_CLASS, class_blocks(PAGE_CLASS));
    EXPECT(returnable() > (size_t)FILL_MIB * MIB / 10 * 9, "%zu bytes are returnable", returnable());
    EXPECT(calls == 0, "%zu calls before anything else was taken", (size_t)calls);
    grow(heap, WIDE_CLASS, FILL_MIB);
    EXPECT(returnable() <= budget_bytes() + MIB, "%zu bytes are returnable, with a budget of %zu", returnable(),
           budget_bytes());
}

/* The slabs of a heap are purged if another heap grows. */
static void other_heaps_count(void) {
    option_set(OPTION_HEAPS, 2);
    struct heap *heap = start(), *other;
    heap_join(&other);
    EXPECT(heap != other, "one heap for two threads");
    (void)fill_and_thin(heap, PAGE_CLASS, class_blocks(PAGE_CLASS));
    grow(other, WIDE_CLASS, FILL_MIB);
    EXPECT(returnable() <= budget_bytes() + MIB, "%zu bytes are returnable, with a budget of %zu", returnable(),
           budget_bytes());
}

/* Purged pages that are taken again are fresh memory too. */
static void pages_taken_again_count(void) {
    struct heap *heap = start();
    size_t blocks = (size_t)FILL_MIB * MIB / class_bytes[WIDE_CLASS];
    static void *wide[FILL_MIB * MIB / 8192];
    for (size_t i = 0; i < blocks; i++) {
        wide[i] = take(heap, WIDE_CLASS);
    }
    for (size_t i = 0; i < blocks; i++) {
        if (i % class_blocks(WIDE_CLASS) != 0) {
            heap_give(&wide[i], 1);
        }
    }
    uint32_t slice = 0;
    bool more;
    do {
        (void)heap_clean(&slice, 1024, CLEAN_ALL, &more);
    } while (slice != 0);
    EXPECT(returnable() < MIB, "%zu bytes are left", returnable());
    (void)fill_and_thin(heap, PAGE_CLASS, class_blocks(PAGE_CLASS));
    grow(heap, WIDE_CLASS, FILL_MIB / 8 * 7); /* in the slabs that are there */
    EXPECT(returnable() <= budget_bytes() + MIB, "%zu bytes are returnable, with a budget of %zu", returnable(),
           budget_bytes());
}

/* A block in use on each page: there is nothing to purge, and no call is made. */
static void pinned_pages_cost_no_call(void) {
    struct heap *heap = start();
    (void)fill_and_thin(heap, SMALL_CLASS, os_page_bytes() / class_bytes[SMALL_CLASS]);
    EXPECT(returnable() > (size_t)FILL_MIB * MIB / 10 * 9, "%zu bytes are free", returnable());
    grow(heap, WIDE_CLASS, FILL_MIB);
    EXPECT(calls == 0, "%zu calls for pages that are all in use", (size_t)calls);
}

/* Locked memory, for one. A slab that the kernel would not take is asked for once, until it changes. */
static void refused_pages_are_asked_for_once(void) {
    refused = true;
    struct heap *heap = start();
    size_t slabs = (size_t)FILL_MIB * MIB / SLICE_BYTES / class_slices[PAGE_CLASS];
    (void)fill_and_thin(heap, PAGE_CLASS, class_blocks(PAGE_CLASS));
    grow(heap, WIDE_CLASS, 4 * (size_t)FILL_MIB);
    EXPECT(calls > 0 && calls <= slabs, "%zu calls for %zu slabs", (size_t)calls, slabs);
}

static void grow_within_no_budget(void) {
    struct heap *heap = start();
    (void)fill_and_thin(heap, PAGE_CLASS, class_blocks(PAGE_CLASS));
    grow(heap, WIDE_CLASS, FILL_MIB);
    EXPECT(calls == 0, "%zu calls if all is to be kept", (size_t)calls);
}

static void all_is_kept(void) {
    option_set(OPTION_RETAIN_MIB, RETAIN_ALL_MIB);
    grow_within_no_budget();
}

static void kept_for_ever(void) {
    option_set(OPTION_RETAIN_MS, RETAIN_FOR_EVER);
    grow_within_no_budget();
}

static void *grow_in_thread(void *argument) {
    for (size_t taken = 0; taken < (size_t)FILL_MIB / THREADS * MIB; taken += class_bytes[WIDE_CLASS]) {
        (void)take(argument, WIDE_CLASS);
    }
    return NULL;
}

static void one_thread_purges(void) {
    struct heap *heap = start();
    pthread_t threads[THREADS];
    (void)fill_and_thin(heap, PAGE_CLASS, class_blocks(PAGE_CLASS));
    for (int i = 0; i < THREADS; i++) {
        struct heap *own;
        heap_join(&own);
        EXPECT(pthread_create(&threads[i], NULL, grow_in_thread, own) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    EXPECT(calls > 0 && most_at_once == 1, "%u threads purged at once, %zu calls", most_at_once, (size_t)calls);
}

/* The child knows of its parent's free pages, also if a thread of the parent was purging. */
static void child_takes_over(void) {
    struct heap *heap = start();
    (void)fill_and_thin(heap, PAGE_CLASS, class_blocks(PAGE_CLASS));
    pid_t child = fork();
    EXPECT(child >= 0, "no child");
    if (child == 0) {
        heap_after_fork();
        grow(heap, WIDE_CLASS, FILL_MIB);
        EXPECT(returnable() <= budget_bytes() + MIB, "%zu bytes are returnable, with a budget of %zu", returnable(),
               budget_bytes());
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with %d", status);
}

/* -- near the control group's limit -- */

/* All that is held now is beyond its edge. */
static void come_near_group(void) {
    atomic_store(&limit_look_at, SIZE_MAX); /* it is not read */
    atomic_store(&limit_group_bytes, atomic_load(&limit_held_bytes));
}

static void take_span(size_t bytes) {
    bool zero;
    EXPECT(arena_take((uint32_t)(bytes >> SLICE_BITS), 1, ARENA_NO_USE, &zero) != 0, "no memory");
}

/* As much goes back as is taken, and the rest of a piece for each mebibyte. */
static void group_has_free_pages(void) {
    enum { WHOLE = 32 * MIB, PART = 128 * 1024, SOME_MORE = 2 * MIB };
    struct heap *heap = start();
    (void)fill_and_thin(heap, PAGE_CLASS, class_blocks(PAGE_CLASS));
    come_near_group();
    size_t held = atomic_load(&limit_held_bytes);
    take_span(WHOLE);
    EXPECT(atomic_load(&limit_held_bytes) <= held, "%zu bytes are held, after %zu", atomic_load(&limit_held_bytes),
           held);
    EXPECT(bytes_purged < WHOLE + SOME_MORE, "%zu bytes were purged", (size_t)bytes_purged);
    for (size_t taken = 0; taken < WHOLE; taken += PART) {
        take_span(PART);
    }
    EXPECT(atomic_load(&limit_held_bytes) < held + SOME_MORE, "%zu bytes are held, after %zu",
           atomic_load(&limit_held_bytes), held);
    EXPECT(bytes_purged < 2 * WHOLE + WHOLE / 4, "%zu bytes were purged", (size_t)bytes_purged);
}

/* With a block in use on each page nothing can go back: all slabs are looked at once, and few again for each mebibyte while blocks come free. */
static void group_has_no_free_page(void) {
    enum { LOOKS_FOR_ONE = 2 * 4 * MIB / SLICE_BYTES, TIMES = 16 };
    struct heap *heap = start();
    (void)fill_and_thin(heap, SMALL_CLASS, os_page_bytes() / class_bytes[SMALL_CLASS]);
    come_near_group();
    take_span((size_t)FILL_MIB * MIB);
    take_span((size_t)FILL_MIB * MIB);
    size_t slabs = (size_t)FILL_MIB * MIB / SLICE_BYTES;
    EXPECT(looks >= slabs && looks < slabs + slabs / 8, "%zu slabs were looked at, and there are %zu", looks, slabs);
    size_t before = looks;
    take_span((size_t)FILL_MIB * MIB);
    EXPECT(looks == before, "%zu slabs were looked at again, and nothing came free", looks - before);
    for (int i = 0; i < TIMES; i++) {
        heap_give(&(void *){take(heap, SMALL_CLASS)}, 1);
        take_span(MIB);
    }
    EXPECT(looks <= before + TIMES * LOOKS_FOR_ONE, "%zu slabs were looked at for %d MiB", looks - before, TIMES);
    EXPECT(calls == 0, "%zu calls for pages that are all in use", (size_t)calls);
}

static void group_gives_way_to_what_is_kept(void) {
    option_set(OPTION_RETAIN_MIB, RETAIN_ALL_MIB);
    struct heap *heap = start();
    (void)fill_and_thin(heap, PAGE_CLASS, class_blocks(PAGE_CLASS));
    come_near_group();
    take_span((size_t)FILL_MIB * MIB);
    EXPECT(calls == 0, "%zu calls if all is to be kept", (size_t)calls);
}

static const struct scenario scenarios[] = {
    {"free_pages_are_bounded", free_pages_are_bounded},
    {"other_heaps_count", other_heaps_count},
    {"pages_taken_again_count", pages_taken_again_count},
    {"pinned_pages_cost_no_call", pinned_pages_cost_no_call},
    {"refused_pages_are_asked_for_once", refused_pages_are_asked_for_once},
    {"all_is_kept", all_is_kept},
    {"kept_for_ever", kept_for_ever},
    {"one_thread_purges", one_thread_purges},
    {"child_takes_over", child_takes_over},
    {"group_has_free_pages", group_has_free_pages},
    {"group_has_no_free_page", group_has_no_free_page},
    {"group_gives_way_to_what_is_kept", group_gives_way_to_what_is_kept},
};

SCENARIO_MAIN(scenarios)
