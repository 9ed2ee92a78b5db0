/* The library's own entry points: identity, figures, purging. */
#include "freestone.h"

#include <errno.h>

#include "allocate.h"
#include "arena.h"
#include "guarded.h"
#include "hardened.h"
#include "heap.h"
#include "keeping.h"
#include "large.h"
#include "limit.h"
#include "options.h"
#include "text.h"
#include "thread_life.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC const char freestone_identity[] = "freestone " FREESTONE_BUILD_VERSION;

PUBLIC const char *freestone_version(void) { return FREESTONE_BUILD_VERSION; }

PUBLIC size_t freestone_purge(void) { return keeping_purge(keeping_all_of_it); }

static bool is_within_limit(void) { return limit_lack_of_own(0) == 0; }

PUBLIC int freestone_set_options(const char *options) {
    options_read_environment(); /* which would otherwise change them later */
    if (options == NULL || !options_change(options)) {
        errno = EINVAL;
        return -1;
    }
    (void)keeping_purge(is_within_limit);
    return 0;
}

PUBLIC size_t freestone_check(void) {
    size_t blocks = 0;
    enum pass pass = thread_enter();
    if (pass != PASS_REFUSED && allocate_is_hardened()) {
        blocks = hardened_check(pass == PASS_CACHE ? thread_view.cache->hard : NULL, NULL, thread_is_alone_inside);
    }
    thread_leave(pass);
    return blocks;
}

/* The caller's memory, in the size that its header had: it does not grow under one SONAME. A new figure goes into the JSON. */
_Static_assert(sizeof(struct freestone_stats) == 15 * sizeof(size_t),
               "docs/reference/compatibility.md: the size stays");

/* All that the JSON has. */
struct figures {
    struct freestone_stats stats;
    size_t unmapped;
    struct limit_figures limit;
};

static void read_figures(struct figures *figures) {
    struct freestone_stats *stats = &figures->stats;
    *figures = (struct figures){0};
    enum pass pass = thread_enter();
    if (pass == PASS_REFUSED) { /* a fork is under way: no figures now */
        return;
    }
    struct heap_figures heap;
    struct arena_figures arena;
    size_t mappings, mapped;
    heap_figures(&heap, NULL);
    arena_figures(&arena);
    large_figures(&mappings, &mapped);
    struct hardened_figures hard;
    hardened_figures(&hard);
    size_t guarded, unguarded, guarded_bytes;
    guarded_figures(&guarded, &unguarded, &guarded_bytes);
    mapped += guarded_bytes;
    thread_leave(pass);
    heap.slabs += hard.slabs;
    heap.in_use += hard.in_use;
    heap.free += hard.free;
    /* The parts are read one after the other: slabs may have come or gone in between. */
    size_t spans = arena.used - bits_min(arena.used, heap.slabs + hard.held_spans);
    size_t large = spans + mapped;
    *stats = (struct freestone_stats){
        .reserved = arena.reserved,
        .extent = arena.extent,
        .in_use = heap.in_use + large,
        .large = large,
        .slabs = heap.slabs,
        .free_blocks = heap.free + heap.depots,
        .retained = arena.dirty,
        .purged = (size_t)arena.purged,
        .bookkeeping = arena.bookkeeping + heap.bookkeeping,
        .mappings = mappings,
        .mapped = mapped,
        .heaps = heap.heaps,
        .clean = heap.clean,
        .unguarded = hard.unguarded + unguarded,
        .guarded = guarded,
    };
    figures->unmapped = arena.unmapped;
    limit_figures(&figures->limit);
}

PUBLIC void freestone_stats_read(struct freestone_stats *stats) {
    struct figures figures;
    read_figures(&figures);
    *stats = figures.stats;
}

static void add_figure(struct text *text, const char *key, size_t value) {
    text_add(text, ", \"");
    text_add(text, key);
    text_add(text, "\": ");
    text_decimal(text, value);
}

/* The length of the whole text. */
static size_t write_json(char *buffer, size_t size, const struct figures *figures) {
    const struct freestone_stats *stats = &figures->stats;
    struct text text = {buffer, size, 0};
    text_add(&text, "{\"version\": \"" FREESTONE_BUILD_VERSION "\"");
    add_figure(&text, "reserved", stats->reserved);
    add_figure(&text, "extent", stats->extent);
    add_figure(&text, "in_use", stats->in_use);
    add_figure(&text, "large", stats->large);
    add_figure(&text, "slabs", stats->slabs);
    add_figure(&text, "free_blocks", stats->free_blocks);
    add_figure(&text, "retained", stats->retained);
    add_figure(&text, "purged", stats->purged);
    add_figure(&text, "bookkeeping", stats->bookkeeping);
    add_figure(&text, "mappings", stats->mappings);
    add_figure(&text, "mapped", stats->mapped);
    add_figure(&text, "heaps", stats->heaps);
    add_figure(&text, "clean", stats->clean);
    add_figure(&text, "unguarded", stats->unguarded);
    add_figure(&text, "guarded", stats->guarded);
    add_figure(&text, "unmapped", figures->unmapped);
    add_figure(&text, "limit", figures->limit.own);
    add_figure(&text, "group_limit", figures->limit.group);
    add_figure(&text, "held", figures->limit.held);
    add_figure(&text, "limit_met", figures->limit.met);
    add_figure(&text, "limit_refused", figures->limit.refused);
    text_add(&text, "}");
    return text.length;
}

PUBLIC int freestone_stats_json(char *buffer, size_t size) {
    struct figures figures;
    read_figures(&figures);
    size_t length = write_json(buffer, size, &figures);
    /* Who was told how much this text needs would ask for it, and so change the figures: the next text may be longer. */
    if (length >= size) {
        __builtin_memset(&figures, 0xFF, sizeof figures); /* every figure at its longest */
        length = write_json(NULL, 0, &figures);
    }
    return (int)length;
}
