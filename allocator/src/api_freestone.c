/* The library's own entry points: identity, figures, purging. */
#include "freestone.h"

#include <stdio.h>

#include "arena.h"
#include "heap.h"
#include "large.h"
#include "thread_cache.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC const char freestone_identity[] = "freestone " FREESTONE_BUILD_VERSION;

PUBLIC const char *freestone_version(void) { return FREESTONE_BUILD_VERSION; }

PUBLIC size_t freestone_purge(void) {
    if (!thread_cache_start()) {
        return 0;
    }
    thread_cache_flush();
    size_t pages = heap_trim_all();
    return pages + arena_purge_all();
}

PUBLIC void freestone_stats_read(struct freestone_stats *stats) {
    *stats = (struct freestone_stats){0};
    if (!thread_cache_start()) {
        return;
    }
    struct heap_figures heap;
    struct arena_figures arena;
    size_t mappings, mapped;
    heap_figures(&heap, NULL);
    arena_figures(&arena);
    large_figures(&mappings, &mapped);
    /* The parts are read one after the other: slabs may have come or gone in between. */
    size_t spans = arena.used - bits_min(arena.used, heap.slabs + heap.bookkeeping);
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
    };
}

PUBLIC int freestone_stats_json(char *buffer, size_t size) {
    struct freestone_stats s;
    freestone_stats_read(&s);
    return snprintf(buffer, size,
                    "{\"version\": \"%s\", \"reserved\": %zu, \"extent\": %zu, \"in_use\": %zu, \"large\": %zu, "
                    "\"slabs\": %zu, \"free_blocks\": %zu, \"retained\": %zu, \"purged\": %zu, \"bookkeeping\": %zu, "
                    "\"mappings\": %zu, \"mapped\": %zu, \"heaps\": %zu}",
                    FREESTONE_BUILD_VERSION, s.reserved, s.extent, s.in_use, s.large, s.slabs, s.free_blocks,
                    s.retained, s.purged, s.bookkeeping, s.mappings, s.mapped, s.heaps);
}
