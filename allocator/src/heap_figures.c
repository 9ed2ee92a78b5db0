/* What the heaps hold, in figures. */
#include "heap_inside.h"
#include "magazine_pool.h"
#include "street.h"

/* The classes' own figures take a walk along their slabs: only for who asks. */
static void add_classes(const struct heap *heap, size_t *of_class) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        const struct shelf *shelf = &heap->shelf[class];
        size_t free_blocks = 0;
        for (uint32_t slab = shelf->slabs; slab != 0; slab = arena_span(slab)->next) {
            free_blocks += arena_span(slab)->free_blocks;
        }
        of_class[class] += shelf->blocks - free_blocks - shelf->depot_blocks - shelf->lent + shelf->borrowed;
    }
}

static void add_figures(const struct heap *heap, struct heap_figures *figures) {
    size_t bytes = 0;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        bytes += (size_t)heap->shelf[class].blocks * class_bytes[class];
        figures->free_blocks += heap->shelf[class].depot_blocks;
    }
    figures->slabs += heap->slab_bytes;
    figures->depots += heap->depot_bytes;
    figures->free += heap->free_bytes;
    figures->free_blocks += heap->free_blocks;
    figures->clean += heap->clean_bytes;
    figures->in_use += bytes - heap->free_bytes - heap->depot_bytes;
}

void heap_figures(struct heap_figures *figures, size_t *of_class) {
    *figures = (struct heap_figures){0};
    if (of_class != NULL) {
        __builtin_memset(of_class, 0, CLASS_COUNT * sizeof *of_class);
    }
    figures->bookkeeping = street_bookkeeping_bytes() - magazine_pool_purged();
    figures->heaps = heap_count();
    for (unsigned i = 0; i < figures->heaps; i++) {
        lock_take(&heap_numbered(i)->lock);
        add_figures(heap_numbered(i), figures);
        if (of_class != NULL) {
            add_classes(heap_numbered(i), of_class);
        }
        lock_free(&heap_numbered(i)->lock);
    }
}
