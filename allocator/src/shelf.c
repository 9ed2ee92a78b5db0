/* The slabs that a heap has of one size class. Under the heap's lock. */
#include "heap_inside.h"
#include "limit.h"
#include "os.h"

enum { CANDIDATES = 4 }; /* slabs looked at for the fullest */

void shelf_list(struct shelf *shelf, uint32_t slab) {
    struct span *span = arena_span(slab);
    span->prev = 0;
    span->next = shelf->slabs;
    if (span->next != 0) {
        arena_span(span->next)->prev = slab;
    }
    shelf->slabs = slab;
}

void shelf_unlist(struct shelf *shelf, uint32_t slab) {
    struct span *span = arena_span(slab);
    if (span->next != 0) {
        arena_span(span->next)->prev = span->prev;
    }
    if (span->prev != 0) {
        arena_span(span->prev)->next = span->next;
    } else {
        shelf->slabs = span->next;
    }
}

uint32_t shelf_choose(const struct shelf *shelf) {
    uint32_t best = shelf->slabs;
    uint32_t at = best == 0 ? 0 : arena_span(best)->next;
    for (int seen = 1; at != 0 && seen < CANDIDATES; seen++) {
        if (arena_span(at)->free_blocks < arena_span(best)->free_blocks) {
            best = at;
        }
        at = arena_span(at)->next;
    }
    return best;
}

void shelf_add(struct heap *heap, unsigned class, uint32_t slab) {
    struct shelf *shelf = &heap->shelf[class];
    slab_publish(slab);
    shelf_list(shelf, slab);
    shelf->blocks += arena_span(slab)->blocks;
    heap->frees++;
    size_t bytes = (size_t)arena_span(slab)->blocks * class_bytes[class];
    heap->free_blocks += arena_span(slab)->blocks;
    heap->free_bytes += bytes;
    if (arena_span(slab)->fresh == 0) { /* nobody has freed them: no reason for a keeper */
        heap->looked_at += bytes;
        heap->came += (uint32_t)bytes;
    }
    heap->slab_bytes += (size_t)class_slices[class] << SLICE_BITS;
    heap->grown += (size_t)class_slices[class] << SLICE_BITS;
    heap->empty_classes |= UINT64_C(1) << class; /* until blocks are taken, which may be never */
}

/* Charges the clean pages that so many of the slab's blocks may lie on, at most; returns the bytes. Of fewer blocks where there is no room for more
 * (limit.h): *want is 0 when there is none for one. */
static size_t charge_clean(uint32_t slab, unsigned *want) {
    const struct span *span = arena_span(slab);
    for (; *want > 0; *want /= 2) {
        size_t page = os_page_bytes(), each = (class_bytes[span->size_class] + page - 1) / page + 1;
        size_t bytes = bits_min(span->clean_pages, *want * each) * page;
        if (limit_take(bytes)) {
            return bytes;
        }
    }
    return 0;
}

unsigned shelf_take(struct heap *heap, uint32_t slab, void **end, unsigned want) {
    const struct span *span = arena_span(slab);
    size_t clean = span->clean_pages;
    size_t charged = clean == 0 ? 0 : charge_clean(slab, &want);
    unsigned taken = slab_take(slab, end, want);
    heap->free_blocks -= taken;
    heap->free_bytes -= (size_t)taken * class_bytes[span->size_class];
    size_t again = (clean - span->clean_pages) * os_page_bytes();
    heap->clean_bytes -= again;
    heap->reused_bytes += again;
    heap->came += (uint32_t)again;
    if (charged > 0) {
        limit_release(charged - again);
    }
    if (span->free_blocks == 0) {
        shelf_unlist(&heap->shelf[span->size_class], slab);
    }
    return taken;
}

void shelf_release(struct heap *heap, uint32_t slab) {
    struct span *span = arena_span(slab);
    struct shelf *shelf = &heap->shelf[span->size_class];
    shelf_unlist(shelf, slab);
    shelf->blocks -= span->blocks;
    heap->slab_bytes -= (size_t)span->slices << SLICE_BITS;
    heap->free_blocks -= span->blocks;
    heap->free_bytes -= (size_t)span->blocks * class_bytes[span->size_class];
    heap->clean_bytes -= span->clean_pages * os_page_bytes();
    heap->gave_slab = true;
    slab_unmake(slab);
}

bool shelf_emptied(struct heap *heap, unsigned class, uint32_t slab) {
    bool only = heap->shelf[class].slabs == slab && arena_span(slab)->next == 0;
    bool gone = !only || class_slices[class] > 1;
    if (gone) {
        shelf_release(heap, slab);
    } else {
        heap->empty_classes |= UINT64_C(1) << class;
    }
    return gone;
}
