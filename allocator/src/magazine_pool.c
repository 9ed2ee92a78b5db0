#include "magazine_pool.h"

#include "heap_inside.h"
#include "os.h"
#include "street.h"

/* A page that holds the addresses of purged ones, so that nothing has to be written to those. */
struct trunk {
    struct trunk *next;
    size_t count;
    union magazine *leaf[];
};

/* Protects the lists, and in the magazines on them `next`, `prev` and the count of their page. Taken with or without a heap's lock, before that of
 * bookkeeping. */
static struct {
    struct lock lock;
    union magazine *loose; /* of pages of which some are elsewhere; doubly linked */
    union magazine *whole; /* pages of which all are here, by their first magazine */
    struct trunk *trunk; /* pages that are purged, and the pages that list those */
    size_t purged; /* bytes */
} pool;

static union magazine *page_of(union magazine *magazine) {
    return (union magazine *)((uintptr_t)magazine & ~(uintptr_t)(os_page_bytes() - 1));
}

static size_t magazines_of_page(void) { return os_page_bytes() / MAGAZINE_BYTES; }

static size_t leaves_of_trunk(void) { return (os_page_bytes() - sizeof(struct trunk)) / sizeof(union magazine *); }

static void unlink_loose(union magazine *magazine) {
    if (magazine->next != NULL) {
        magazine->next->prev = magazine->prev;
    }
    *(magazine->prev != NULL ? &magazine->prev->next : &pool.loose) = magazine->next;
}

/* The magazines of a page that is in no list. What was purged reads as zero, or as it was. */
static union magazine *cut(union magazine *page) {
    size_t magazines = magazines_of_page();
    for (size_t i = 0; i < magazines; i++) {
        page[i].next = i + 1 < magazines ? &page[i + 1] : NULL;
        page[i].planted = 0;
    }
    page->in_pool = 0;
    return page;
}

static union magazine *take_purged(void) {
    struct trunk *trunk = pool.trunk;
    if (trunk == NULL) {
        return NULL;
    }
    if (trunk->count > 0) {
        pool.purged -= os_page_bytes();
        return trunk->leaf[--trunk->count];
    }
    pool.trunk = trunk->next;
    return (union magazine *)(void *)trunk;
}

union magazine *magazine_pool_take(void) {
    lock_take(&pool.lock);
    union magazine *magazine = pool.loose, *page = NULL;
    if (magazine != NULL) {
        unlink_loose(magazine);
        page_of(magazine)->in_pool--;
        magazine->next = NULL;
    } else if ((page = pool.whole) != NULL) {
        pool.whole = page->next;
    } else if ((page = take_purged()) == NULL) {
        page = street_bookkeeping_page();
    }
    lock_free(&pool.lock);
    return page != NULL ? cut(page) : magazine;
}

static void give(union magazine *magazine) {
    union magazine *page = page_of(magazine);
    magazine->prev = NULL;
    magazine->next = pool.loose;
    if (magazine->next != NULL) {
        magazine->next->prev = magazine;
    }
    pool.loose = magazine;
    if (++page->in_pool == magazines_of_page()) {
        for (size_t i = 0; i < magazines_of_page(); i++) {
            unlink_loose(&page[i]);
        }
        page->next = pool.whole;
        pool.whole = page;
    }
}

void magazine_pool_give(union magazine *list) {
    lock_take(&pool.lock);
    while (list != NULL) {
        union magazine *magazine = list;
        list = magazine->next;
        give(magazine);
    }
    lock_free(&pool.lock);
}

/* A page to be purged, which is in no list then; there is a place for it in a trunk. */
static union magazine *take_whole(void) {
    union magazine *page = pool.whole;
    while (page != NULL && (pool.trunk == NULL || pool.trunk->count == leaves_of_trunk())) {
        pool.whole = page->next;
        struct trunk *trunk = (struct trunk *)(void *)page;
        trunk->next = pool.trunk;
        trunk->count = 0;
        pool.trunk = trunk;
        page = pool.whole;
    }
    if (page != NULL) {
        pool.whole = page->next;
    }
    return page;
}

static void keep_purged(union magazine *page) {
    /* Others may have emptied the trunk meanwhile, or brought another: what has no place stays whole. */
    if (pool.trunk != NULL && pool.trunk->count < leaves_of_trunk()) {
        pool.trunk->leaf[pool.trunk->count++] = page;
        pool.purged += os_page_bytes();
    } else {
        page->next = pool.whole;
        pool.whole = page;
    }
}

bool magazine_pool_purge(size_t *bytes) {
    lock_take(&pool.lock);
    union magazine *page = take_whole();
    lock_free(&pool.lock);
    if (page == NULL) {
        return false;
    }
    *bytes += os_purge_unseen(page, os_page_bytes()) ? os_page_bytes() : 0;
    lock_take(&pool.lock);
    keep_purged(page);
    lock_free(&pool.lock);
    return true;
}

size_t magazine_pool_purged(void) {
    lock_take(&pool.lock);
    size_t bytes = pool.purged;
    lock_free(&pool.lock);
    return bytes;
}

void magazine_pool_after_fork(void) { lock_reset(&pool.lock); }
