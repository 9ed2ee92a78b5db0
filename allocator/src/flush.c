/* Blocks into the bitmaps of their slabs. Under the lock of the heap that owns them. */
#include "heap_inside.h"
#include "message.h"

enum {
    PREFETCH_BLOCKS = 24, /* how far a flush looks ahead */
    PREFETCH_SLABS = 128, /* ... from this many slabs of a class on: fewer stay in a first-level cache */
};

/* Frees the run of neighbours at[0], at[-1], ... of this heap into its slab's bitmap, as far as one word of that goes. Returns
 * how many; the heap's free_blocks and free_bytes are the caller's to add to. */
static __attribute__((noinline)) unsigned give_run(struct heap *heap, unsigned class, uint32_t slab, void **at) {
    const struct span *span = arena_span(slab);
    unsigned given = slab_give_run(slab, at);
    if (unlikely(span->free_blocks == given)) {
        shelf_list(&heap->shelf[class], slab);
    }
    if (unlikely(span->free_blocks == span->blocks)) {
        (void)shelf_emptied(heap, class, slab);
    }
    return given;
}

/* The same for one block. */
static INLINE_ALWAYS void give_one(struct heap *heap, unsigned class, const struct slab_shape *shape, uint32_t slab,
                                   void *block) {
    const struct span *span = &shape->spans[slab];
    if (unlikely(slab_give_one(slab, shape, block)) && span->free_blocks == 1) {
        shelf_list(&heap->shelf[class], slab);
    }
    if (unlikely(span->free_blocks == shape->blocks)) {
        (void)shelf_emptied(heap, class, slab);
    }
}

/* The same of a slab that lends. Adds to the heap's free_blocks and free_bytes what the caller does not: that counts one block of the class. */
static OUT_OF_LINE void give_lent(struct heap *heap, unsigned class, void *block) {
    uint32_t slab = slab_of(block);
    const struct span *span = arena_span(slab);
    unsigned own = span->size_class;
    unsigned given = slab_take_back(slab, class, block);
    struct shelf *shelf = &heap->shelf[own];
    heap->free_blocks += given - 1;
    heap->free_bytes += (size_t)given * class_bytes[own] - class_bytes[class];
    if (own != class) {
        heap->shelf[class].borrowed--;
        shelf->lent -= given;
    }
    if (span->free_blocks == given) {
        shelf_list(shelf, slab);
    }
    if (span->free_blocks == span->blocks) {
        (void)shelf_emptied(heap, own, slab);
    }
}

/* False when no slab is there (any more). */
static INLINE_ALWAYS bool slab_tag_of(const void *block, uint32_t *tag) {
    return tag_of(block, tag) && tag_is_slab(*tag);
}

struct heap *flush_owner(const void *block) {
    uint32_t tag;
    return slab_tag_of(block, &tag) ? heap_numbered(tag_heap(tag)) : NULL;
}

struct heap *flush_home(const void *block, unsigned class) {
    uint32_t tag;
    return slab_tag_of(block, &tag) && (tag_class(tag) == class || tag_lends(tag)) ? heap_numbered(tag_heap(tag))
                                                                                   : NULL;
}

/* Keeps a block of another heap for later, or stops the program: it was a slab's of the class when it was freed, and since
 * then the slab, with all blocks free, has gone. */
static OUT_OF_LINE void keep_stray(void *block, unsigned class, void **strays, unsigned count) {
    if (flush_home(block, class) == NULL) {
        message_double_free(block, "size class", class_bytes[class]);
    }
    strays[count] = block;
}

/* Frees this heap's blocks from `top` down to the bottom into bitmaps; what the block `ahead` places further down will need is
 * fetched meanwhile, but not for 0. Returns how many are not this heap's; they go to `strays`. */
static INLINE_ALWAYS unsigned flush_each(struct heap *heap, unsigned class, const struct slab_shape *shape, void **top,
                                         unsigned ahead, void **strays) {
    const uint32_t *tags = (const uint32_t *)shape->base;
    uint32_t expected = tag_of_slab(heap->number, class);
    const union magazine *magazine = magazine_of(top);
    void *const *prefetch_from = &magazine->word[magazine->bottom + 1] + ahead;
    unsigned stray = 0;
    for (void *block = *top, *next; block != MAGAZINE_NONE; block = next) {
        if (ahead > 0 && top >= prefetch_from) {
            slab_prefetch(top[-(ptrdiff_t)ahead], shape);
        }
        next = top[-1];
        uint32_t slice = slab_shape_slice(shape, block);
        /* relaxed: no other thread changes the tag of a slab of this heap, whose lock is held */
        uint32_t tag = __atomic_load_n(&tags[slice], __ATOMIC_RELAXED);
        if (unlikely(tag != expected)) {
            if (tag_lends(tag) && tag_heap(tag) == heap->number) {
                give_lent(heap, class, block);
            } else {
                keep_stray(block, class, strays, stray++);
            }
            top--;
            continue;
        }
        uint32_t slab = slab_shape_slab(shape, slice);
        if (slab_is_run(shape, block, next)) {
            top -= give_run(heap, class, slab, top);
            next = *top;
        } else {
            give_one(heap, class, shape, slab, block);
            top--;
        }
    }
    return stray;
}

/* The same for a class whose slabs are of one slice. Blocks that were freed in random order are a miss or two each where it has
 * many slabs: those of a few blocks later are fetched meanwhile. */
static INLINE_ALWAYS unsigned flush_singles(struct heap *heap, unsigned class, const struct slab_shape *shape,
                                            void **top, void **strays) {
    bool many = heap->shelf[class].blocks > PREFETCH_SLABS * shape->blocks;
    return many ? flush_each(heap, class, shape, top, PREFETCH_BLOCKS, strays)
                : flush_each(heap, class, shape, top, 0, strays);
}

bool flush_blocks(struct heap *heap, unsigned class, void **top) {
    void *strays[MAGAZINE_MOST];
    struct slab_shape shape = slab_shape(class);
    union magazine *magazine = magazine_of(top);
    void **lowest = &magazine->word[magazine->bottom + 1];
    unsigned stray;
    if (shape.slices == 1) { /* a loop of its own, without what slabs of several slices need */
        stray = flush_singles(heap, class, &shape, top, strays);
    } else {
        stray = flush_each(heap, class, &shape, top, 0, strays);
    }
    size_t given = (size_t)(top + 1 - lowest) - stray;
    heap->frees++;
    heap->free_blocks += given;
    heap->free_bytes += given * shape.size;
    if (likely(stray == 0)) {
        return true;
    }
    void **bottom = magazine_clear(magazine, stray);
    for (unsigned i = stray; i-- > 0;) {
        *++bottom = strays[i];
    }
    return false;
}

void flush_one(struct heap *heap, void *block) {
    uint32_t slab = slab_of(block), tag = TAG_NONE;
    bool lent = slab_tag_of(block, &tag) && tag_lends(tag);
    unsigned class = likely(!lent) ? arena_span(slab)->size_class : slab_lent_class(block);
    struct slab_shape shape = slab_shape(class);
    heap->frees++;
    heap->free_blocks++;
    heap->free_bytes += shape.size;
    if (unlikely(lent)) {
        give_lent(heap, class, block);
    } else {
        give_one(heap, class, &shape, slab, block);
    }
}
