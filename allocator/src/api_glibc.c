/* What glibc adds to the standard: trimming, knobs and reports. musl has none of these. */
#include <features.h>
#ifdef __GLIBC__

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>

#include "arena.h"
#include "freestone.h"
#include "heap.h"
#include "keeping.h"
#include "message.h"
#include "options.h"
#include "thread_life.h"

#define PUBLIC __attribute__((visibility("default")))

#if !__GLIBC_PREREQ(2, 33)
/* A library made with an older glibc may serve a program made with a newer one. */
struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
#endif

PUBLIC int malloc_trim(size_t pad) {
    (void)pad; /* what is kept is a matter of pages in use, not of a distance from the top */
    return freestone_purge() > 0;
}

/* What was freed while there was to be no keeper has wished for none, and no call may follow. */
static void start_keeper(void) {
    enum pass pass = thread_enter();
    thread_leave(pass);
    keeper_wish();
    if (pass != PASS_REFUSED) {
        thread_serve_wishes();
    }
}

/* How much freed memory may be kept; below 0 nothing is given back: such a program counts on memory that it has touched once. */
static void set_trim_threshold(int value) {
    enum { HAS_SOME = 1, KEEPER_BITS = 8 };
    /* Both as they were before the first call, and HAS_SOME. acq_rel: who finds none has read them before anybody who found his has changed them. */
    static _Atomic uint64_t at_first;
    uint64_t none = 0, now = (uint64_t)option_value(OPTION_RETAIN_MS) << 32 |
                             (uint64_t)option_value(OPTION_KEEPER) << KEEPER_BITS | HAS_SOME;
    if (value < 0) {
        option_set(OPTION_RETAIN_MIB, RETAIN_ALL_MIB);
        (void)atomic_compare_exchange_strong_explicit(&at_first, &none, now, memory_order_acq_rel,
                                                      memory_order_acquire);
        option_set(OPTION_RETAIN_MS, RETAIN_FOR_EVER);
        option_set(OPTION_KEEPER, 0);
        return;
    }
    option_set(OPTION_RETAIN_MIB, (uint32_t)value >> 20);
    uint64_t before = atomic_load_explicit(&at_first, memory_order_acquire);
    if (before != 0) { /* also where both look right: a call of another thread's may be half done */
        bool kept_for_ever = option_value(OPTION_RETAIN_MS) == RETAIN_FOR_EVER;
        option_set(OPTION_KEEPER, (uint32_t)(before & UINT32_MAX) >> KEEPER_BITS);
        option_set(OPTION_RETAIN_MS, (uint32_t)(before >> 32));
        if (kept_for_ever) {
            start_keeper();
        }
    }
}

PUBLIC int mallopt(int parameter, int value) {
    (void)thread_start(); /* what the environment says comes first */
    switch (parameter) {
    case M_TRIM_THRESHOLD:
        set_trim_threshold(value);
        return 1;
    case M_ARENA_MAX:
        option_set(OPTION_HEAPS, value < 0 ? 0 : (uint32_t)value);
        return 1;
    default: /* taken, as by glibc: the others tune parts that do not exist here, or nothing */
        return 1;
    }
}

/* glibc's words for them. A block with a mapping of its own is in hblkhd alone. */
static struct mallinfo2 info_of(const struct freestone_stats *stats) {
    return (struct mallinfo2){
        .arena = stats->slabs + stats->large - stats->mapped + stats->retained,
        .hblks = stats->mappings,
        .hblkhd = stats->mapped,
        .uordblks = stats->in_use - stats->mapped,
        .fordblks = stats->free_blocks + stats->retained,
        .keepcost = stats->retained,
    };
}

PUBLIC struct mallinfo2 mallinfo2(void) {
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    return info_of(&stats);
}

static int clipped(size_t value) { return value > INT32_MAX ? INT32_MAX : (int)value; }

/* Its fields are ints: what does not fit shows as the largest. */
PUBLIC struct mallinfo mallinfo(void) {
    struct mallinfo2 wide = mallinfo2();
    return (struct mallinfo){
        .arena = clipped(wide.arena),
        .hblks = clipped(wide.hblks),
        .hblkhd = clipped(wide.hblkhd),
        .uordblks = clipped(wide.uordblks),
        .fordblks = clipped(wide.fordblks),
        .keepcost = clipped(wide.keepcost),
    };
}

/* Free blocks, and freed spans whose pages are kept. The hardened heap counts no free blocks: what it has is one. */
static size_t count_free(size_t bytes) {
    enum pass pass = thread_enter();
    if (pass == PASS_REFUSED) {
        return bytes > 0;
    }
    struct heap_figures heap;
    struct arena_figures arena;
    heap_figures(&heap, NULL);
    arena_figures(&arena);
    thread_leave(pass);
    return bits_max(heap.free_blocks + arena.dirty_spans, bytes > 0);
}

/* glibc's elements and attributes, each where its reader expects it: some take nothing else. All heaps are one of glibc's, and the caches of threads,
 * which it calls fast, count as in use. */
PUBLIC int malloc_info(int kind, FILE *out) {
    if (kind != 0) {
        return EINVAL;
    }
    struct freestone_stats s;
    freestone_stats_read(&s);
    struct mallinfo2 info = info_of(&s);
    size_t rest = count_free(info.fordblks);
    size_t most = bits_max(info.arena, s.extent);
#define TOTAL "<total type=\"fast\" count=\"0\" size=\"0\"/>\n<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
#define MAPPED "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
#define SYSTEM                                  \
    "<system type=\"current\" size=\"%zu\"/>\n" \
    "<system type=\"max\" size=\"%zu\"/>\n"     \
    "<aspace type=\"total\" size=\"%zu\"/>\n"   \
    "<aspace type=\"mprotect\" size=\"%zu\"/>\n"
    int written = fprintf(out,
                          "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n" TOTAL SYSTEM
                          "</heap>\n" TOTAL MAPPED SYSTEM "</malloc>\n",
                          rest, info.fordblks, info.arena, most, most, most, rest, info.fordblks, info.hblks,
                          info.hblkhd, info.arena, most, most, most);
    return written < 0 ? -1 : 0;
}

static void say(struct message *line, const char *what, size_t value) {
    message_text(line, what);
    message_number(line, value);
}

PUBLIC void malloc_stats(void) {
    struct freestone_stats s;
    freestone_stats_read(&s);
    struct message line = {0};
    say(&line, "version " FREESTONE_BUILD_VERSION ", in use ", s.in_use);
    say(&line, " bytes (large ", s.large);
    say(&line, "), free in slabs ", s.free_blocks);
    say(&line, ", retained ", s.retained);
    say(&line, ", bookkeeping ", s.bookkeeping);
    say(&line, ", given back so far ", s.purged);
    say(&line, ", heaps ", s.heaps);
    message_print(&line);
}

#endif
