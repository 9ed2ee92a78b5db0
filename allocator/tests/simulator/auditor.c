#include "auditor.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "ages.h"
#include "bins.h"
#include "failure.h"
#include "fibers.h"
#include "gate.h"
#include "heap_inside.h"
#include "huge.h"
#include "keeper.h"
#include "large.h"
#include "limit.h"
#include "options.h"
#include "os.h"
#include "program.h"
#include "purge.h"
#include "scheduler.h"
#include "seams.h"
#include "shelter.h"
#include "spans.h"
#include "street.h"
#include "thread_inside.h"
#include "turns.h"
#include "world.h"

enum {
    SLICES_MOST = 1 << 16, /* of the street, that marks are kept for */
    WORDS = SLICE_BYTES / 16 / 64,
    MAGAZINES_MOST = 1 << 18,
    CACHES_MOST = 256,
    CHECK_EVERY = 16, /* audits between two looks at all that the program holds, but at rest */
};

/* A bit for each block of each slab that has been found somewhere, and for each magazine. */
static uint64_t (*found)[WORDS];
static uint64_t *magazines;
static size_t magazines_found;

static bool at_rest;
static bool in_child;
static size_t lost_most; /* blocks that threads may have had in hand when a fork cut them off */

static uint32_t tag_at(uint32_t slice) { return ((const uint32_t *)window.base)[slice]; }

uint32_t auditor_extent(void) { return (uint32_t)(window.extent >> SLICE_BITS); }

bool auditor_has_slab(uint32_t slice) { return tag_is_slab(tag_at(slice)) && arena_span(slice)->first == slice; }

bool auditor_sees(void) { return gate.page != NULL && gate.page->mark == GATE_RIGHT && window.extent != 0; }

bool auditor_is_in_child(void) { return in_child; }

static bool is_free(const struct lock *lock) { return atomic_load_explicit(&lock->state, memory_order_relaxed) == 0; }

/* -- where blocks are ---------------------------------------------------------------------------------------- */

static void find_block(const void *block, const char *where) {
    uint32_t slice = arena_slice(block);
    CHECK((uintptr_t)block >= window.base && slice < auditor_extent() && tag_is_slab(tag_at(slice)),
          "no block: %p in %s", block, where);
    uint32_t slab = arena_span(slice)->first;
    size_t size = class_bytes[arena_span(slab)->size_class];
    size_t offset = (uintptr_t)block - (uintptr_t)arena_address(slab);
    size_t number = offset / size;
    CHECK(offset % size == 0 && number < arena_span(slab)->blocks, "no block: %p in %s, inside one", block, where);
    uint64_t bit = UINT64_C(1) << (number % 64);
    CHECK((found[slab][number / 64] & bit) == 0, "in two places: block %zu of %zu bytes, in %s and in %s", number, size,
          (arena_span(slab)->bitmap[number / 64] & bit) != 0 ? "its bitmap" : "another", where);
    found[slab][number / 64] |= bit;
}

/* A magazine, wherever it is. */
static void find_magazine(const union magazine *magazine, const char *where) {
    size_t bytes;
    const char *start = seam_bookkeeping(&bytes);
    size_t offset = (size_t)((const char *)magazine - start);
    CHECK(offset < bytes && offset % MAGAZINE_BYTES == 0, "no magazine: %p as %s", (const void *)magazine, where);
    size_t number = offset / MAGAZINE_BYTES;
    EXPECT_HERE(number < MAGAZINES_MOST);
    uint64_t bit = UINT64_C(1) << (number % 64);
    CHECK((magazines[number / 64] & bit) == 0, "in two places: magazine %zu, as %s and as another", number, where);
    magazines[number / 64] |= bit;
    magazines_found++;
}

/* The blocks below its top, all of the slot's class; and MAGAZINE_NONE below them. */
static void find_blocks(void **top, unsigned class, const char *where) {
    const union magazine *magazine = magazine_of(top);
    find_magazine(magazine, where);
    CHECK(magazine->bottom >= MAGAZINE_WORDS - 1 - MAGAZINE_MOST && magazine->bottom < MAGAZINE_WORDS,
          "magazine: bottom %u in %s", magazine->bottom, where);
    CHECK(top >= (void **)(uintptr_t)&magazine->word[magazine->bottom], "magazine: the top is below the bottom in %s",
          where);
    CHECK(magazine->word[magazine->bottom] == MAGAZINE_NONE, "magazine: a block at the bottom in %s", where);
    for (const void *const *at = (const void *const *)top; at > (const void *const *)&magazine->word[magazine->bottom];
         at--) {
        find_block(*at, where);
        uint32_t tag = tag_at(arena_slice(*at));
        unsigned of = tag_lends(tag) ? slab_lent_class(*at) : tag_class(tag);
        CHECK(of == class, "magazine: a block of class %u among those of class %u in %s", of, class, where);
    }
}

/* -- slabs --------------------------------------------------------------------------------------------------- */

/* What a heap's slabs come to. */
struct sums {
    size_t free_blocks, free_bytes, clean_bytes, slab_bytes;
    uint32_t blocks[CLASS_COUNT], listed[CLASS_COUNT], lent[CLASS_COUNT], borrowed[CLASS_COUNT];
};

static void audit_bitmap(uint32_t slab) {
    const struct span *span = arena_span(slab);
    uint32_t words = (span->blocks + 63) / 64;
    uint32_t set = 0;
    for (uint32_t w = 0; w < words; w++) {
        uint64_t word = span->bitmap[w];
        set += (uint32_t)__builtin_popcountll(word);
        CHECK((word & ~bits_low((unsigned)bits_min(64, span->blocks - 64 * w))) == 0, "bitmap: bits beyond the end");
        CHECK((span->summary >> w & 1) == (word != 0), "bitmap: summary bit %u", w);
        found[slab][w] = word;
        uint64_t tails = tag_lends(tag_at(slab)) ? slab_tails(slab)[w] : 0; /* found with the first of theirs */
        CHECK((tails & word) == 0, "bitmap: a part of a lent block is free");
        found[slab][w] |= tails;
    }
    CHECK(set == span->free_blocks, "bitmap: %u bits set, %u blocks free", set, span->free_blocks);
}

/* Counts the blocks that the slab lends, by whose they are. */
static void audit_lent(uint32_t slab, struct sums *sum) {
    const struct span *span = arena_span(slab);
    const uint64_t *tails = slab_tails(slab);
    uint32_t parts = 1, lent = 0;
    for (uint32_t number = 1; number <= span->blocks; number++) {
        bool tail = number < span->blocks && (tails[number / 64] >> (number % 64) & 1) != 0;
        if (!tail && parts > 1) {
            const char *first = (char *)arena_address(slab) + (size_t)(number - parts) * class_bytes[span->size_class];
            sum->borrowed[slab_lent_class(first)]++;
            lent += parts;
        }
        parts = tail ? parts + 1 : 1;
    }
    CHECK(lent > 0, "slab: its tag says that it lends, and nothing is lent");
    sum->lent[span->size_class] += lent;
}

static uint32_t clean_pages(uint32_t slab) {
    uint32_t pages = 0;
    for (uint32_t i = 0; i < arena_span(slab)->slices; i++) {
        pages += (uint32_t)__builtin_popcount(arena_span(slab + i)->clean);
    }
    return pages;
}

/* What is clean has no block in use on it. */
static void audit_clean(uint32_t slab) {
    const struct span *span = arena_span(slab);
    size_t page = os_page_bytes(), size = class_bytes[span->size_class];
    for (size_t p = 0; span->clean_pages > 0 && p < span->slices * (SLICE_BYTES / page); p++) {
        if ((arena_span(slab + (uint32_t)(p * page / SLICE_BYTES))->clean >> (p % (SLICE_BYTES / page)) & 1) == 0) {
            continue;
        }
        size_t last = bits_min((p * page + page - 1) / size + 1, span->blocks);
        for (size_t number = p * page / size; number < last; number++) {
            /* out of the bitmap it may be with who cleans the next page */
            bool set = (span->bitmap[number / 64] >> (number % 64) & 1) != 0;
            CHECK(set || !at_rest, "slab: block %zu is in use on a clean page", number);
        }
    }
}

static void audit_slab(uint32_t slab, struct sums *sums, unsigned heaps) {
    const struct span *span = arena_span(slab);
    uint32_t tag = tag_at(slab);
    unsigned number = tag_heap(tag);
    CHECK(number < heaps, "slab: of heap %u, and there are %u", number, heaps);
    audit_bitmap(slab);
    if (!is_free(&heap_numbered(number)->lock)) {
        return; /* its descriptor is being changed */
    }
    CHECK(span->state == SPAN_USED && span->heap == number &&
              (tag_lends(tag) || slot_of(number, span->size_class) == tag_slot(tag)),
          "slab: its descriptor and its tag are not of one mind");
    CHECK(span->blocks == class_blocks(span->size_class) && span->slices == class_slices[span->size_class],
          "slab: %u blocks in %u slices", span->blocks, span->slices);
    for (uint32_t i = 0; i < span->slices; i++) {
        CHECK(tag_at(slab + i) == tag && arena_span(slab + i)->first == slab, "slab: slice %u is not of it", i);
    }
    CHECK(clean_pages(slab) == span->clean_pages, "slab: %u clean pages, %u counted", clean_pages(slab),
          span->clean_pages);
    audit_clean(slab);
    CHECK(span->free_blocks < span->blocks || (heap_numbered(number)->empty_classes >> span->size_class & 1) != 0,
          "slab: it is empty, and nobody knows");
    struct sums *sum = &sums[number];
    sum->free_blocks += span->free_blocks;
    sum->free_bytes += (size_t)span->free_blocks * class_bytes[span->size_class];
    sum->clean_bytes += span->clean_pages * os_page_bytes();
    sum->slab_bytes += (size_t)span->slices << SLICE_BITS;
    sum->blocks[span->size_class] += span->blocks;
    sum->listed[span->size_class] += span->free_blocks > 0;
    if (tag_lends(tag)) {
        audit_lent(slab, sum);
    }
}

/* -- heaps --------------------------------------------------------------------------------------------------- */

static void audit_depot(const struct heap *heap, unsigned class, size_t *bytes) {
    const struct shelf *shelf = &heap->shelf[class];
    uint32_t count = 0;
    size_t blocks = 0;
    for (union magazine *full = shelf->depot; full != NULL; full = full->next, count++) {
        CHECK(count < shelf->depot_count, "depot: more than %u magazines of class %u", shelf->depot_count, class);
        find_blocks(magazine_full_top(full), class, "a depot");
        CHECK(magazine_capacity(full) > 0, "depot: an empty magazine");
        blocks += magazine_capacity(full);
    }
    CHECK(count == shelf->depot_count, "depot: %u magazines of class %u, %u counted", count, class, shelf->depot_count);
    CHECK(blocks == shelf->depot_blocks, "depot: %zu blocks of class %u, %zu counted", blocks, class,
          shelf->depot_blocks);
    CHECK(shelf->depot_low <= count, "depot: the fewest of class %u were more than there are", class);
    CHECK(shelf->depot_due == 0 || (heap->due_classes >> class & 1) != 0, "depot: due in class %u, and no bit set",
          class);
    CHECK(blocks * class_bytes[class] <= seam_depot_class_bytes(), "depot: %zu bytes of class %u",
          blocks * class_bytes[class], class);
    *bytes += blocks * class_bytes[class];
}

void seam_depots_grew(size_t bytes, size_t slab_bytes) {
    size_t most = seam_depot_heap_bytes(slab_bytes);
    CHECK(bytes <= most, "depot: %zu bytes of all classes, and %zu at most", bytes, most);
}

static void audit_shelf(const struct heap *heap, unsigned class, const struct sums *sums) {
    const struct shelf *shelf = &heap->shelf[class];
    uint32_t listed = 0, before = 0;
    for (uint32_t slab = shelf->slabs; slab != 0; before = slab, slab = arena_span(slab)->next) {
        const struct span *span = arena_span(slab);
        CHECK(auditor_has_slab(slab) && span->heap == heap->number && span->size_class == class && span->prev == before,
              "shelf: what is listed in class %u of heap %u is no such slab", class, heap->number);
        CHECK(span->free_blocks > 0 && listed++ < sums->listed[class], "shelf: a full slab in class %u", class);
    }
    CHECK(listed == sums->listed[class], "shelf: %u slabs of class %u have free blocks, %u are listed",
          sums->listed[class], class, listed);
    CHECK(shelf->blocks == sums->blocks[class], "shelf: %u blocks of class %u, %u counted", sums->blocks[class], class,
          shelf->blocks);
}

static void audit_loans(const struct heap *heap, const struct sums *sums) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        const struct shelf *shelf = &heap->shelf[class];
        CHECK(shelf->lent == sums->lent[class] && shelf->borrowed == sums->borrowed[class],
              "shelf: class %u has lent %u blocks and borrowed %u, %u and %u counted", class, sums->lent[class],
              sums->borrowed[class], shelf->lent, shelf->borrowed);
    }
}

static void audit_heap(const struct heap *heap, const struct sums *sums) {
    size_t depots = 0;
    bool steady = is_free(&heap->lock);
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        if (heap->shelf[class].depot != NULL || heap->shelf[class].depot_count != 0) {
            audit_depot(heap, class, &depots);
        }
        if (steady && (sums->blocks[class] != 0 || heap->shelf[class].blocks != 0)) {
            audit_shelf(heap, class, sums);
        }
    }
    for (const union magazine *spare = heap->spare; spare != NULL; spare = spare->next) {
        find_magazine(spare, "spare");
    }
    size_t spares = 0;
    for (const union magazine *spare = heap->spare; spare != NULL; spare = spare->next) {
        spares++;
    }
    CHECK(!steady || spares == heap->spare_count, "heap: %zu spare magazines, %u counted", spares, heap->spare_count);
    CHECK(depots == heap->depot_bytes, "heap: %zu bytes in depots, %zu counted", depots, heap->depot_bytes);
    if (!steady) {
        return;
    }
    CHECK(heap->strays == NULL, "heap: strays are left behind");
    audit_loans(heap, sums);
    CHECK(sums->free_blocks == heap->free_blocks && sums->free_bytes == heap->free_bytes,
          "heap: %zu blocks and %zu bytes free, %zu and %zu counted", sums->free_blocks, sums->free_bytes,
          heap->free_blocks, heap->free_bytes);
    CHECK(sums->clean_bytes == heap->clean_bytes, "heap: %zu bytes clean, %zu counted", sums->clean_bytes,
          heap->clean_bytes);
    CHECK(sums->slab_bytes == heap->slab_bytes, "heap: %zu bytes in slabs, %zu counted", sums->slab_bytes,
          heap->slab_bytes);
}

/* -- caches -------------------------------------------------------------------------------------------------- */

static void audit_slot(const struct cache_class *magazines, unsigned slot) {
    unsigned class = slot_class(slot);
    size_t bytes = (size_t)class_bytes[class] * magazine_capacity(magazine_of(magazines->top));
    CHECK(magazines->top == VOID_TOP || magazines->taken || bytes <= bits_max(seam_given_bytes(), class_bytes[class]),
          "cache: %zu bytes in slot %u, of which nothing is ever taken", bytes, slot);
    if (magazines->top == VOID_TOP) {
        CHECK(magazines->previous == NULL, "cache: another magazine in slot %u, and none loaded", slot);
        return;
    }
    find_blocks(magazines->top, class, "a cache, loaded");
    if (magazines->previous != NULL) {
        CHECK(magazine_is_full(magazines->previous) || magazine_is_empty(magazines->previous),
              "cache: the other magazine in slot %u is neither full nor empty", slot);
        find_blocks(magazines->previous, class, "a cache, the other");
    }
}

/* From where fast paths take blocks of a class: slot 0, which never has any, or a slot of it that others know is taken from. As soon as the
 * thread's own slot is one, from there. */
static void audit_steps(const struct thread_view *view) {
    const struct thread_cache *cache = view->cache;
    for (unsigned step = 0; step < STEP_COUNT; step++) {
        unsigned class = class_of((size_t)(step + 1) << CLASS_STEP_BITS);
        const struct cache_class *own = &cache->slots[slot_of(heap_number(cache->heap), class)];
        size_t slot = (size_t)(view->by_step[step] - cache->slots);
        bool none = slot >= SLOT_COUNT || slot == 0;
        CHECK(none || (slot_class((unsigned)slot) == class && cache->slots[slot].taken),
              "steps: %u bytes are taken from slot %zu", (step + 1) << CLASS_STEP_BITS, slot);
        CHECK(!none || !own->taken, "steps: a thread takes %u bytes, and never where its fast path looks",
              (step + 1) << CLASS_STEP_BITS);
    }
}

void audit_forgotten(void) {
    const struct thread_view *view = seam_view();
    for (unsigned step = 0; step < STEP_COUNT; step++) {
        CHECK(view->by_step[step] == &seam_no_cache()->slots[0], "steps: a thread without a cache takes from one");
    }
    CHECK(view->cache == seam_no_cache(), "cache: a thread whose end was seen has one");
}

/* All that were ever used, where they are now or not: their memory stays theirs. */
static const struct thread_cache *known[CACHES_MOST];
static unsigned known_count;

static void know(const struct thread_cache *cache) {
    for (unsigned i = 0; i < known_count; i++) {
        if (known[i] == cache) {
            return;
        }
    }
    EXPECT_HERE(known_count < CACHES_MOST);
    known[known_count++] = cache;
}

/* Who gives its cache up, and who takes over what another has left, takes it out of the list while nobody has borrowed it; and nobody comes
 * out of it before. */
static void audit_hands(void) {
    static const struct thread_cache
        *had[FIBERS_MOST]; /* by the thread that is there, and not by one that went without a word */
    unsigned lent = 0;
    for (int i = 0; i < FIBER_KEEPER; i++) {
        const struct thread_view *view = fiber_local(&fibers[i], seam_view());
        had[i] = view->state == THREAD_ALIVE ? view->cache : view->state == THREAD_ENDED ? had[i] : NULL;
    }
    for (const struct thread_cache *cache = registry.alive; cache != NULL; cache = cache->next) {
        know(cache);
        lent += cache->borrowed != 0;
        for (int i = 0; i < FIBER_KEEPER; i++) {
            const struct thread_view *view = fiber_local(&fibers[i], seam_view());
            bool ended = cache == had[i] && cache->owner == &fibers[i] && view->state == THREAD_ENDED;
            CHECK(!ended || cache->busy != 0 || cache->orphan != 0, "cache: given up, and still to be had");
        }
    }
    for (unsigned i = 0; i < known_count; i++) {
        lent -= known[i]->borrowed != 0;
    }
    CHECK(lent == 0, "cache: borrowed, and taken out of the list");
}

/* Whose it is: a thread's, which has no other, or nobody's any more. */
static void audit_owner(const struct thread_cache *cache, bool orphan, bool *owns) {
    for (int i = 0; i < FIBERS_MOST && !orphan; i++) {
        if (cache->owner == &fibers[i] && !owns[i]) {
            owns[i] = true;
            return;
        }
    }
    CHECK(orphan, "cache: nobody's, and no orphan");
}

static void audit_room(const struct thread_cache *cache) {
    size_t room = 0;
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        room += 2 * (size_t)cache->slots[slot].capacity * class_bytes[slot_class(slot)];
    }
    CHECK(room == cache->room, "cache: room for %zu bytes, %zu counted", room, cache->room);
    CHECK(8 * cache->room >= 7 * cache->told && 8 * cache->room <= 9 * cache->told,
          "registry: room for %zu bytes in a cache, and told of %zu", cache->room, cache->told);
    CHECK(cache->sweep == 0 || (cache->swept > 0 && cache->swept < SLOT_COUNT), "cache: a sweep that is over goes on");
}

static void audit_caches(size_t *caches) {
    const struct thread_cache *before = NULL;
    uint32_t count = 0, orphans = 0, of_heap[64] = {0};
    size_t told = 0;
    bool owns[FIBERS_MOST] = {false};
    bool cursor = registry.cursor == NULL;
    for (struct thread_cache *cache = registry.alive; cache != NULL; before = cache, cache = cache->next) {
        CHECK(cache->prev == before && count++ < 4096, "registry: its list is torn");
        cursor |= cache == registry.cursor;
        bool busy = atomic_load_explicit(&cache->busy, memory_order_relaxed) != 0;
        bool borrowed = atomic_load_explicit(&cache->borrowed, memory_order_relaxed) != 0;
        for (unsigned slot = 1; slot < SLOT_COUNT && !busy && !borrowed; slot++) {
            audit_slot(&cache->slots[slot], slot);
        }
        CHECK(!at_rest || (!busy && !borrowed), "cache: %s at rest", busy ? "busy" : "borrowed");
        CHECK(cache->slots[0].top == VOID_TOP, "cache: slot 0 has a magazine");
        bool orphan = atomic_load_explicit(&cache->orphan, memory_order_relaxed) != 0;
        orphans += orphan;
        told += cache->told;
        if (at_rest) {
            audit_owner(cache, orphan, owns);
            audit_room(cache);
            CHECK(cache->heap != NULL, "cache: of no heap");
            of_heap[heap_number(cache->heap) % 64]++;
        }
    }
    CHECK(registry.last == before || !is_free(&registry.lock), "registry: its last is another");
    uint32_t left = 0;
    for (struct thread_cache *cache = registry.left; cache != NULL; cache = cache->next) {
        CHECK(left++ < 4096 && cache->borrowed == 0, "registry: an orphan is borrowed, or its list is torn");
        for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
            audit_slot(&cache->slots[slot], slot);
        }
        told += cache->told;
        if (at_rest) {
            audit_room(cache);
            CHECK(cache->heap != NULL, "cache: of no heap");
            of_heap[heap_number(cache->heap) % 64]++;
        }
    }
    if (is_free(&registry.lock)) {
        audit_hands();
    }
    CHECK(cursor || !is_free(&registry.lock), "registry: the next to be borrowed is a cache that is gone");
    static uint32_t most;
    most = (uint32_t)bits_max(most, count + left);
    if (!at_rest) {
        return;
    }
    CHECK(count == registry.count, "registry: %u caches, %u counted", count, registry.count);
    CHECK(left == registry.left_count, "registry: %u caches are left, %u counted", left, registry.left_count);
    orphans += left;
    /* One may be counted twice, until somebody looks for it in vain. */
    CHECK(orphans <= registry.orphans && registry.orphans <= 2 * orphans + 1, "registry: %u orphans, %u counted",
          orphans, registry.orphans);
    CHECK(told == registry.room, "registry: told of room for %zu bytes, %zu counted", told, registry.room);
    for (unsigned i = 0; i < heap_count() && i < 64; i++) {
        uint32_t threads = heap_threads(i);
        CHECK(threads == of_heap[i], "heap: %u threads, %u counted", of_heap[i], threads);
    }
    for (int i = 0; i < FIBER_KEEPER; i++) {
        const struct thread_view *view = fiber_local(&fibers[i], seam_view());
        if (view->cache != seam_no_cache()) {
            audit_steps(view);
        }
    }
    /* A count that raced with the change of epochs may be one too low, or too high. */
    CHECK((int32_t)seam_workers() <= (int32_t)count + FIBERS_MOST, "registry: %u threads work, and there are %u",
          seam_workers(), count);
    *caches = count + left;
    for (const struct thread_cache *cache = registry.unused; cache != NULL; cache = cache->next) {
        ++*caches;
    }
    /* between two audits each thread may have been born and have ended */
    CHECK(*caches <= most + FIBERS_MOST, "registry: %zu caches were made, and %u in use at most", *caches, most);
}

/* -- the program and the shelter ----------------------------------------------------------------------------- */

struct larges {
    size_t spans, mappings, sheltered;
};

static void count_large(const void *at, struct larges *larges) {
    uint32_t tag = TAG_NONE;
    if (tag_of(at, &tag) && tag_is_slab(tag)) {
        return;
    }
    if (tag == TAG_LARGE) {
        larges->spans++;
    } else if (shelter_usable(at) == 0) {
        larges->mappings++;
    } else {
        larges->sheltered++;
    }
}

static void find_one(const void *at, struct larges *larges, const char *where) {
    uint32_t tag = TAG_NONE;
    if (tag_of(at, &tag) && tag_is_slab(tag)) {
        find_block(at, where);
    } else {
        count_large(at, larges);
    }
}

static void audit_program(struct larges *larges) {
    for (unsigned i = 0; i < BLOCKS_MOST; i++) {
        if (program_held[i].at != NULL && !program_held[i].in_hand) {
            find_one(program_held[i].at, larges, "the program");
        }
    }
    size_t count = 0;
    for (void *block = shelter_parked; block != NULL; block = *(void **)block) {
        CHECK(count++ < 1 << 20, "parked: the list has no end");
        find_one(block, larges, "what is parked");
    }
}

/* -- spans --------------------------------------------------------------------------------------------------- */

static void audit_ages(uint32_t dirty) {
    uint32_t count = 0, slices = 0, before = 0;
    size_t purged = 0;
    CHECK(ages_oldest() == 0 || ages_oldest_stamp() == arena_span(ages_oldest())->stamp, "ages: of another span");
    for (uint32_t slice = ages_oldest(); slice != 0; before = slice, slice = arena_span(slice)->age_next) {
        const struct span *span = arena_span(slice);
        CHECK(count++ < dirty && span->state == SPAN_DIRTY && span->age_prev == before, "ages: the list is torn");
        CHECK(before == 0 || span->stamp >= arena_span(before)->stamp, "ages: an older one comes later");
        slices += span->slices;
        purged += span->purged * os_page_bytes();
    }
    CHECK(((size_t)slices << SLICE_BITS) - purged == ages_bytes(), "ages: %zu bytes purged in %u slices, %zu left",
          purged, slices, ages_bytes());
    CHECK(count == dirty && slices == ages_slices() && before == seam_ages_youngest(),
          "ages: %u spans of %u slices listed, %u spans dirty, %u slices counted", count, slices, dirty, ages_slices());
}

static void audit_spans(struct larges *larges) {
    uint32_t used = 0, held = 0, number[SPAN_USED + 1] = {0};
    enum span_state before = SPAN_USED;
    CHECK(spans_front() == auditor_extent(), "spans: the front is not where the window ends");
    for (uint32_t slice = street_first(); slice < spans_front(); slice += arena_span(slice)->slices) {
        const struct span *span = arena_span(slice);
        enum span_state state = span->state;
        CHECK(state > SPAN_UNUSED && state <= SPAN_USED && span->slices > 0 && span->slices <= spans_front() - slice,
              "spans: no span at slice %u", slice);
        CHECK(arena_span(slice + span->slices - 1)->first == slice, "spans: the end of slice %u's does not know it",
              slice);
        number[state]++;
        held += state == SPAN_PURGING ? span->slices : 0;
        if (state == SPAN_USED) {
            used += span->slices;
            larges->spans -= at_rest && tag_at(slice) == TAG_LARGE;
            CHECK(!at_rest || tag_at(slice) != TAG_LARGE || span->slices <= seam_large_slices_most(span->used_bytes),
                  "spans: %u slices for %zu bytes", span->slices, (size_t)span->used_bytes);
            CHECK(!at_rest || tag_at(slice) == TAG_LARGE || auditor_has_slab(slice),
                  "spans: slice %u is used by nobody", slice);
        } else {
            for (uint32_t i = 0; i < span->slices; i++) {
                CHECK(tag_at(slice + i) == TAG_NONE, "spans: slice %u is free and tagged", slice + i);
            }
            CHECK(clean_pages(slice) == (state == SPAN_PURGING ? 0 : span->purged),
                  "spans: %u pages at slice %u are purged, %u counted", clean_pages(slice), slice, span->purged);
            CHECK(state == SPAN_DIRTY || clean_pages(slice) == 0, "spans: slice %u of kind %u has purged pages", slice,
                  state);
        }
        CHECK(state != SPAN_USED || tag_at(slice) != TAG_LARGE || clean_pages(slice) == 0,
              "spans: slice %u of a large block counts as purged", slice);
        if (state >= SPAN_DIRTY && state <= SPAN_UNMAPPED) {
            CHECK(state != before, "spans: neighbours at slice %u are not joined", slice);
            CHECK(seam_bins_have(slice), "spans: slice %u is free and in no bin", slice);
        }
        before = state;
    }
    CHECK(used == spans_used(), "spans: %u slices used, %u counted", used, spans_used());
    for (unsigned state = SPAN_DIRTY; state <= SPAN_UNMAPPED; state++) {
        CHECK(seam_bins_are_whole(state), "bins: of kind %u, torn, or marked wrongly", state);
        CHECK(seam_bins_count(state) == number[state], "spans: %u of kind %u, %zu in bins", number[state], state,
              seam_bins_count(state));
    }
    CHECK(!at_rest || held == 0, "spans: %u slices are nobody's at rest", held);
    audit_ages(number[SPAN_DIRTY]);
}

/* -- at rest ------------------------------------------------------------------------------------------------- */

static void audit_locks(void) {
    const char *held[] = {seam_lock_of_arena(),
                          seam_lock_of_street(),
                          seam_lock_of_large(),
                          seam_lock_of_choice(),
                          seam_lock_of_borrow(),
                          seam_lock_of_pool(),
                          is_free(&registry.lock) ? NULL : "registry"};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        CHECK(held[i] == NULL, "lock: of %s, held at rest", held[i]);
    }
    for (unsigned i = 0; i < heap_count(); i++) {
        CHECK(is_free(&heap_numbered(i)->lock), "lock: of heap %u, held at rest", i);
    }
    CHECK(!seam_budget_busy(), "budget: a thread purges at rest");
    CHECK(gate.page->forks == 0 && gate.page->settling == 0, "gate: closed at rest");
    CHECK(gate.page->leaving == 0, "keeper: told to leave at rest");
    CHECK((gate.page->keeper != 0) == world_has_keeper(), "keeper: its number is not that of one");
    CHECK(gate.outsiders == 0, "gate: %u outsiders at rest", gate.outsiders);
    CHECK(!seam_shelter_is_taking(), "parked: somebody takes at rest");
    CHECK(turns.in_vain != turns.number + 1, "gate: the turn in which somebody waited in vain goes on");
    CHECK(seam_purge_awaiting() == 0, "purge: %u wait at rest", seam_purge_awaiting());
    CHECK(seam_purge_pieces() == 0 && !heap_is_cleaning(), "purge: under way at rest");
}

/* The published total is the sum over the heaps, each of which it knows to within a step. */
static void audit_budget(void) {
    size_t published = 0;
    for (unsigned i = 0; i < heap_count(); i++) {
        const struct heap *heap = heap_numbered(i);
        size_t returnable = heap_returnable(heap);
        published += heap->published;
        CHECK(returnable + seam_budget_step() >= heap->published && returnable <= heap->published + seam_budget_step(),
              "budget: heap %u has %zu returnable bytes, and %zu are published", i, returnable, heap->published);
    }
    CHECK(published == budget_returnable(), "budget: %zu bytes are published, and the total is %zu", published,
          budget_returnable());
}

/* Every block was found somewhere. */
static void audit_blocks(void) {
    size_t lost = 0;
    for (uint32_t slice = street_first(); slice < auditor_extent(); slice++) {
        if (!auditor_has_slab(slice)) {
            continue;
        }
        const struct span *span = arena_span(slice);
        for (uint32_t w = 0; w < (span->blocks + 63) / 64; w++) {
            uint64_t all = bits_low((unsigned)bits_min(64, span->blocks - 64 * w));
            lost += (size_t)__builtin_popcountll(all & ~found[slice][w]);
        }
    }
    CHECK(lost <= lost_most, "lost: %zu blocks are nowhere", lost);
}

static void audit_bookkeeping(size_t caches) {
    seam_pool_each(find_magazine);
    CHECK(seam_pool_is_whole(), "pool: its lists are torn, or it counts wrongly");
    size_t pieces = caches * bits_round_up(sizeof(struct thread_cache), MAGAZINE_BYTES) +
                    (heap_count() - 1) * bits_round_up(sizeof(struct heap), MAGAZINE_BYTES);
    CHECK(seam_bookkeeping_pieces() == pieces, "bookkeeping: %zu bytes in caches and heaps, %zu handed out", pieces,
          seam_bookkeeping_pieces());
    size_t magazines_made = seam_bookkeeping_pages() * os_page_bytes() / MAGAZINE_BYTES;
    CHECK(magazines_found + 2 * lost_most >= magazines_made && magazines_found <= magazines_made,
          "lost: %zu magazines were made, %zu are there", magazines_made, magazines_found);
}

static void audit_mappings(const struct larges *larges) {
    size_t rows, bytes;
    large_figures(&rows, &bytes);
    CHECK(seam_large_reserved() <= lost_most, "large: %zu places for mappings are kept at rest", seam_large_reserved());
    CHECK(rows - larges->mappings <= lost_most, "lost: %zu mappings, the program has %zu", rows, larges->mappings);
    size_t known = rows + seam_large_has_table() + seam_shelter_chunks();
    CHECK(world_mappings() - known <= lost_most, "lost: %zu mappings of the kernel's, %zu known", world_mappings(),
          known);
}

/* What is counted for the limit is what the parts hold. */
static void audit_held(void) {
    size_t rows, held;
    large_figures(&rows, &held);
    held += ((size_t)(spans_used() + bins_slices(SPAN_KEPT)) << SLICE_BITS) + ages_bytes();
    for (unsigned i = 0; i < heap_count(); i++) {
        held -= heap_numbered(i)->clean_bytes;
    }
    size_t counted = atomic_load_explicit(&limit_held_bytes, memory_order_relaxed);
    CHECK(held == counted || lost_most > 0, "limit: %zu bytes are held, %zu counted", held, counted);
}

/* Each count is of the blocks there are and, in a common chunk, of its thread. */
static void audit_shelter(const struct larges *larges) {
    size_t owners = program_chunks_left;
    for (int i = 0; i < FIBERS_MOST; i++) {
        owners += *(const void *const *)fiber_local(&fibers[i], seam_shelter_own()) != NULL;
    }
    CHECK(seam_shelter_live() == larges->sheltered + owners, "shelter: %zu counted, %zu blocks and %zu threads' chunks",
          seam_shelter_live(), larges->sheltered, owners);
    CHECK(seam_shelter_enlisted() == seam_shelter_chunks(), "shelter: %zu places, %zu counted", seam_shelter_chunks(),
          seam_shelter_enlisted());
}

/* A place is used again before one is that never was, where the search begins. */
static void audit_places(void) {
    static size_t most;
    enum { BETWEEN_AUDITS = FIBERS_MOST };
    most = bits_max(most, seam_shelter_chunks());
    CHECK(seam_shelter_places() <= most + BETWEEN_AUDITS, "shelter: %zu places were used, %zu at once at most",
          seam_shelter_places(), most);
}

/* What lies about, and nobody comes for: there is a keeper, or a wish for one. */
static void audit_wishes(void) {
    if (option_value(OPTION_KEEPER) == 0 || world_has_keeper() || keeper_wished != 0) {
        return;
    }
    CHECK(ages_slices() < seam_keeper_slices(), "kept: %u slices are dirty, and nobody wishes for a keeper",
          ages_slices());
    CHECK(in_child || !shelter_has_parked(), "kept: blocks are parked, and nobody wishes for a keeper");
}

void auditor_fork(bool announced) {
    (void)announced;
    in_child = true;
}

/* Each costs a mapping, and those that a process may have are the program's. */
static void audit_edges(void) {
    uint32_t found_there, most, counted = seam_huge_edges(&found_there, &most);
    CHECK(counted == found_there, "huge: %u edges, %u counted", found_there, counted);
    CHECK(counted <= most, "huge: %u edges, and %u at most", counted, most);
    bool changes = seam_lock_of_arena() != NULL; /* it is forgotten piece by piece */
    for (uint32_t slice = seam_arena_usable(); !changes && slice < street_described(); slice++) {
        CHECK(arena_span(slice)->advice == ADVICE_NONE, "huge: advice for slice %u, which is not mapped", slice);
    }
}

/* -- all of it ----------------------------------------------------------------------------------------------- */

static void *room_for(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_HERE(at != MAP_FAILED);
    return at;
}

static void clear(void) {
    if (found == NULL) {
        found = room_for(SLICES_MOST * sizeof *found);
        magazines = room_for(MAGAZINES_MOST / 8);
    }
    EXPECT_HERE(auditor_extent() <= SLICES_MOST);
    size_t bytes;
    (void)seam_bookkeeping(&bytes);
    memset(magazines, 0, bytes / MAGAZINE_BYTES / 8 + 8);
    magazines_found = 0;
}

void audit(void) {
    outcome->audits++;
    at_rest = scheduler_is_at_rest();
    if (at_rest || outcome->audits % CHECK_EVERY == 0) {
        program_check();
    }
    if (!auditor_sees()) {
        return;
    }
    lost_most = program_in_hand;
    clear();
    static struct sums sums[16];
    unsigned heaps = heap_count();
    EXPECT_HERE(heaps <= 16);
    memset(sums, 0, heaps * sizeof *sums);
    for (uint32_t slice = street_first(); slice < auditor_extent(); slice++) {
        if (auditor_has_slab(slice)) {
            audit_slab(slice, sums, heaps);
        }
    }
    for (unsigned i = 0; i < heaps; i++) {
        audit_heap(heap_numbered(i), &sums[i]);
    }
    size_t caches = 0;
    struct larges larges = {0};
    audit_caches(&caches);
    audit_program(&larges);
    if (!seam_arena_is_locked()) {
        audit_spans(&larges);
        audit_edges();
    }
    audit_places();
    if (at_rest) {
        CHECK(0 - larges.spans <= lost_most, "lost: %zu large spans are nobody's", 0 - larges.spans);
        audit_locks();
        audit_budget();
        audit_blocks();
        audit_bookkeeping(caches);
        audit_mappings(&larges);
        audit_held();
        audit_wishes();
        if (!in_child) { /* one has what others had in hand */
            audit_shelter(&larges);
            CHECK(!world_is_mapped(arena_address(seam_arena_usable())), "street: mapped behind what is usable");
        }
    }
}
