/* Holes in slabs of smaller classes, lent to a larger one. Pages that a few blocks in use pin cannot be returned to the kernel, and a block of
 * another class cannot use what is free on them: without this a program whose sizes change holds those of each size.
 *
 * A run of free blocks becomes one block of the larger class, and is one in magazines and depots. The slab's tag tells no slot while it lends, so
 * that free() leaves its blocks to the slow path, which asks of what class each is. Once it comes to the bitmap, all of the run is free.
 *
 * Blocks are lent while the free bytes in slabs exceed their budget by far, of pages in memory, and as magazines of one class. A class that has been
 * lent as many bytes as LENT_SLABS slabs takes a slab of its own, so that churn finds its blocks in magazines soon.
 *
 * They are lent one by one when memory is out, for no slab can be made then: any run that is long enough, also on purged pages. */
#include "heap_inside.h"
#include "limit.h"

enum {
    LENT_SLABS = 16,
    LEAST = 1, /* the smallest class that lends: of 16 bytes the bitmap fills its room */
    BLOCKS_MOST = 128, /* in a run of a magazine's */
    SLABS_LOOKED_AT = 64, /* in one call, */
    RUNS_LOOKED_AT = 512, /* and free runs in them, */
    RUNS_MOST = 4096, /* more than a slab has */
};

void lend_begin(struct heap *heap, unsigned class) {
    if (unlikely(budget_is_missed())) {
        heap->lenders[class].left = LENT_SLABS * (uint32_t)class_slices[class] << SLICE_BITS;
        heap->lending |= UINT64_C(1) << class;
    }
}

/* Blocks of class `of` that hold one of `class`; 0 if they hold one of the next class too, or are too many. */
static uint32_t blocks_for(unsigned class, unsigned of) {
    uint32_t size = class_bytes[class], blocks = (size + class_bytes[of] - 1) / class_bytes[of];
    bool fits = class + 1 < CLASS_COUNT && blocks * class_bytes[of] < class_bytes[class + 1];
    return blocks <= BLOCKS_MOST && fits ? blocks : 0;
}

/* The same when memory is out: whatever a slab has room for. */
static uint32_t last_blocks_for(unsigned class, unsigned of) {
    uint32_t blocks = (class_bytes[class] + class_bytes[of] - 1) / class_bytes[of];
    return blocks <= class_blocks(of) ? blocks : 0;
}

/* A look for runs, and what is left of it. */
struct search {
    struct lend_place *at;
    unsigned class;
    bool last; /* memory is out */
    size_t alignment;
    unsigned slabs, runs; /* that it may still look at */
    struct slab_run run;
};

static uint32_t wanted_blocks(const struct search *search, unsigned of) {
    return search->last ? last_blocks_for(search->class, of) : blocks_for(search->class, of);
}

/* The next smaller class that can lend, and has free blocks; 0 for none. */
static unsigned next_class(const struct heap *heap, const struct search *search) {
    unsigned from = search->at->class == 0 ? search->class : search->at->class;
    while (from > LEAST) {
        from--;
        if (heap->shelf[from].slabs != 0 && wanted_blocks(search, from) != 0) {
            return from;
        }
    }
    return 0;
}

/* Every so many of the class's blocks one is aligned so. */
static uint32_t step_for(unsigned of, size_t alignment) {
    uint32_t aligned = class_bytes[of] & -class_bytes[of];
    return (uint32_t)bits_max(alignment / aligned, 1);
}

/* Whether the slab has no run of that length, aligned or not. */
static bool has_none(uint32_t slab, const struct slab_run *run) {
    struct slab_run any = {.blocks = run->blocks, .step = 1, .purged = run->purged};
    unsigned runs = RUNS_MOST;
    return !slab_find_run(slab, &any, &runs) && any.lack == 0;
}

/* Looks through all of the slab from the place on, and notes if it has none, so that it is passed over until it has changed. */
static bool find_at_last(struct search *search, bool from_first) {
    unsigned runs = RUNS_MOST;
    size_t lack = search->run.lack;
    uint32_t slab = search->at->slab;
    if (!slab_has_run(slab, search->class)) {
        return false;
    }
    search->run.lack = 0;
    bool found = slab_find_run(slab, &search->run, &runs);
    if (!found && from_first && search->run.lack == 0 && (search->run.step == 1 || has_none(slab, &search->run))) {
        slab_note_searched(slab, search->class);
    }
    search->runs -= (unsigned)bits_min(search->runs, RUNS_MOST - runs);
    if (search->run.lack == 0 || (lack != 0 && lack < search->run.lack)) {
        search->run.lack = lack;
    }
    return found;
}

/* Looks for a run in the slab where the search is. */
static bool find_there(struct search *search) {
    struct lend_place *at = search->at;
    search->run.blocks = wanted_blocks(search, at->class);
    search->run.step = step_for(at->class, search->alignment);
    search->run.number = at->number;
    bool found =
        search->last ? find_at_last(search, at->number == 0) : slab_find_run(at->slab, &search->run, &search->runs);
    at->number = (uint16_t)search->run.number;
    return found;
}

/* Moves on to a slab with a run for the class. False if none is found within the looks; the next call goes on there. */
static bool find(struct heap *heap, struct search *search) {
    struct lend_place *at = search->at;
    if (at->slab != 0 && !shelf_lists(heap, at->class, at->slab)) {
        at->slab =
            search->last ? heap->shelf[at->class].slabs : 0; /* when memory is out none of the class is left out */
        at->number = 0;
    }
    for (; search->slabs > 0 && search->runs > 0; search->slabs--) {
        if (at->slab == 0) {
            at->class = (uint8_t)next_class(heap, search);
            if (at->class == 0) {
                return false;
            }
            at->slab = heap->shelf[at->class].slabs;
            at->number = 0;
        }
        if (find_there(search)) {
            return true;
        }
        if (search->runs > 0) {
            at->slab = arena_span(at->slab)->next;
            at->number = 0;
        }
    }
    return false;
}

/* Lends the run that was found. */
static void *lend(struct heap *heap, struct search *search) {
    struct lend_place *at = search->at;
    const struct span *span = arena_span(at->slab);
    uint32_t next = span->next;
    size_t clean = span->clean_pages;
    void *block = slab_lend(at->slab, search->run.number, search->run.blocks);
    shelf_count_lent(heap, at->slab, search->run.blocks, clean);
    at->number = (uint16_t)(at->number + search->run.blocks);
    if (span->free_blocks == 0) {
        at->slab = next;
        at->number = 0;
    }
    return block;
}

unsigned lend_take(struct heap *heap, unsigned class, void **end, unsigned want) {
    if (likely((heap->lending >> class & 1) == 0)) {
        return 0;
    }
    struct lender *lender = &heap->lenders[class];
    struct search search = {&lender->at, class, false, 1, SLABS_LOOKED_AT, RUNS_LOOKED_AT, {.purged = false}};
    unsigned taken = 0;
    while (taken < want && lender->left >= class_bytes[class] && find(heap, &search)) {
        *--end = lend(heap, &search);
        lender->left -= class_bytes[class];
        heap->shelf[class].borrowed++;
        taken++;
    }
    if (taken < want) {
        heap->lending &= ~(UINT64_C(1) << class);
    }
    return taken;
}

/* -- when memory is out --------------------------------------------------------------------------------------- */

/* Equal only if no run has come: none is joined without a free, and a limit counts less of one only if pages of it are taken again. */
static size_t changes(const struct heap *heap) { return heap->frees + heap->pieces + heap->reused_bytes; }

/* Whether a look that was made has seen all that this one would. */
static bool is_futile(const struct heap *heap, const struct last_lender *lender, size_t alignment) {
    return lender->futile && lender->changes == changes(heap) && alignment >= lender->alignment &&
           (lender->lack == 0 || limit_lack_of_own(lender->lack) > 0);
}

void *lend_last(struct heap *heap, unsigned class, size_t alignment, struct last_look *look) {
    struct last_lender *lender = &heap->last_lenders[class];
    look->over = is_futile(heap, lender, alignment);
    if (look->over) {
        return NULL;
    }
    if (lender->at.class == 0) {
        *lender = (struct last_lender){.changes = changes(heap)};
        look->whole = true;
    }
    lender->alignment = bits_max(lender->alignment, alignment);
    struct search search = {&lender->at, class, true, alignment, SLABS_LOOKED_AT, RUNS_LOOKED_AT, {.purged = true}};
    search.run.lack = lender->lack;
    bool found = find(heap, &search);
    lender->lack = search.run.lack;
    if (found) {
        void *block = lend(heap, &search);
        heap->shelf[slab_lent_class(block)].borrowed++;
        return block;
    }
    if (lender->at.class == 0) {
        /* Blocks on pages that are being purged are nobody's meanwhile. */
        lender->futile = lender->changes == changes(heap) && !heap_is_cleaning();
        look->over = look->whole || is_futile(heap, lender, alignment);
    }
    return NULL;
}
