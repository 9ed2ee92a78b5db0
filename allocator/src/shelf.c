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

/* Charges the clean pages that so many of the slab's blocks may lie on, at most. Returns false if the limit has no room for them. */
static bool charge_most(const struct span *span, unsigned want, size_t *bytes) {
    size_t page = os_page_bytes(), each = (class_bytes[span->size_class] + page - 1) / page + 1;
    *bytes = bits_min(span->clean_pages, want * each) * page;
    return limit_take(*bytes);
}

/* Counts blocks that were taken from the slab, which had so many clean pages before. Returns the bytes of those that are clean no longer. */
static INLINE_ALWAYS size_t count_taken(struct heap *heap, uint32_t slab, unsigned taken, size_t clean) {
    const struct span *span = arena_span(slab);
    heap->free_blocks -= taken;
    heap->free_bytes -= (size_t)taken * class_bytes[span->size_class];
    size_t again = (clean - span->clean_pages) * os_page_bytes();
    heap->clean_bytes -= again;
    heap->reused_bytes += again;
    heap->came += (uint32_t)again;
    if (span->free_blocks == 0) {
        shelf_unlist(&heap->shelf[span->size_class], slab);
    }
    return again;
}

unsigned shelf_take(struct heap *heap, uint32_t slab, void **end, unsigned want) {
    size_t clean = arena_span(slab)->clean_pages, charged = 0;
    if (clean > 0 && !charge_most(arena_span(slab), want, &charged)) {
        return 0;
    }
    unsigned taken = slab_take(slab, end, want);
    size_t again = count_taken(heap, slab, taken, clean);
    if (charged > 0) {
        limit_release(charged - again);
    }
    return taken;
}

void shelf_count_lent(struct heap *heap, uint32_t slab, unsigned blocks, size_t clean) {
    heap->shelf[arena_span(slab)->size_class].lent += blocks;
    (void)count_taken(heap, slab, blocks, clean);
}

bool shelf_lists(const struct heap *heap, unsigned class, uint32_t slab) {
    uint32_t tag;
    return slab != 0 && tag_of(arena_address(slab), &tag) &&
           (tag == tag_of_slab(heap->number, class) || tag == tag_of_lender(heap->number)) &&
           arena_span(slab)->first == slab && arena_span(slab)->size_class == class &&
           arena_span(slab)->free_blocks > 0;
}

unsigned shelf_take_charged(struct heap *heap, unsigned class, void **end, unsigned want, bool *all) {
    uint32_t hand = heap->hand[class], start = shelf_lists(heap, class, hand) ? hand : heap->shelf[class].slabs,
             slab = start;
    unsigned taken = 0;
    *all = slab == 0;
    for (unsigned looked = 0; taken == 0 && !*all && looked < SHELF_LOOK; looked++) {
        uint32_t next = arena_span(slab)->next;
        next = next == 0 ? heap->shelf[class].slabs : next;
        size_t clean = arena_span(slab)->clean_pages;
        taken = slab_take_charged(slab, end, want);
        *all = next == start;
        heap->hand[class] = taken > 0 && arena_span(slab)->free_blocks > 0 ? slab : next;
        (void)count_taken(heap, slab, taken, clean);
        slab = next;
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
