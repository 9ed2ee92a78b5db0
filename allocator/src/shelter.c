#include "shelter.h"

#include "memory_hooks.h"
#include "message.h"
#include "os.h"

enum {
    CHUNK_BYTES = 1024 * 1024,
    CHUNKS_MOST = 65536, /* about as many mappings as a process may have */
    UNIT = 16,
    HEAD = 64, /* a chunk's description, at its start */
};

/* What a thread takes blocks from. `live` counts the blocks in use, and one more while it is some thread's. */
struct chunk {
    size_t bytes; /* of its mapping */
    bool alone;   /* for one block, which need not start in the chunk's first mebibyte */
    bool of_hook; /* the same, and made within a memory hook */
    size_t used; /* by its thread alone */
    _Atomic uint32_t live;
};
_Static_assert(sizeof(struct chunk) <= HEAD, "a chunk's description fits before its first block");

/* A block's size stands before it. */
struct block_head {
    size_t bytes;
    struct chunk *chunk;
};
_Static_assert(sizeof(struct block_head) == UNIT, "blocks stay aligned behind their heads");

/* Where the shelter's blocks are: the address of a mebibyte that is a common chunk's, or a lonely block's own, which others may follow in its
 * mebibyte, with ALONE. 0 never used, GONE no longer. Each changes by one compare-and-swap; acquire and release, so that who finds
 * a place finds the chunk described. */
_Atomic uintptr_t shelter_places[CHUNKS_MOST] LAID_LAST;
static _Atomic uint32_t enlisted; /* so many; relaxed: who has a block of the shelter's has seen its place counted */
enum { GONE = 1, ALONE = 2 };

_Atomic(void *) shelter_parked;

static _Atomic uint32_t
    taking; /* 1 while a thread takes parked blocks: one at a time, so that none comes back under its hands */

static _Thread_local _Atomic(struct chunk *) own_chunk __attribute__((tls_model("initial-exec")));

/* -- the table ----------------------------------------------------------------------------------------------- */

static uintptr_t place_in_common(const void *block) { return (uintptr_t)block & ~(uintptr_t)(CHUNK_BYTES - 1); }

static uintptr_t place_alone(const void *block) { return (uintptr_t)block | ALONE; }

static size_t slot_of_place(uintptr_t place) {
    return (size_t)(place / CHUNK_BYTES * UINT64_C(0x9E3779B97F4A7C15) >> 48);
}
_Static_assert(CHUNKS_MOST == 1 << (64 - 48), "a slot is the highest sixteen bits");

static _Atomic uintptr_t *find(uintptr_t place) {
    if (atomic_load_explicit(&enlisted, memory_order_relaxed) == 0) {
        return NULL;
    }
    for (size_t i = 0; i < CHUNKS_MOST; i++) {
        _Atomic uintptr_t *slot = &shelter_places[(slot_of_place(place) + i) % CHUNKS_MOST];
        uintptr_t seen = atomic_load_explicit(slot, memory_order_acquire);
        if (seen == place) {
            return slot;
        }
        if (seen == 0) {
            return NULL;
        }
    }
    return NULL;
}

static bool enlist(uintptr_t place) {
    for (size_t i = 0; i < CHUNKS_MOST; i++) {
        _Atomic uintptr_t *slot = &shelter_places[(slot_of_place(place) + i) % CHUNKS_MOST];
        uintptr_t seen = atomic_load_explicit(slot, memory_order_relaxed);
        while (seen == 0 || seen == GONE) {
            if (atomic_compare_exchange_weak_explicit(slot, &seen, place, memory_order_release, memory_order_relaxed)) {
                atomic_fetch_add_explicit(&enlisted, 1, memory_order_relaxed);
                return true;
            }
        }
    }
    return false;
}

/* -- chunks -------------------------------------------------------------------------------------------------- */

static struct chunk *new_chunk(void *start, size_t bytes, uintptr_t place) {
    struct chunk *chunk = start;
    chunk->bytes = bytes;
    chunk->alone = false;
    chunk->of_hook = false;
    chunk->used = HEAD;
    atomic_store_explicit(&chunk->live, 1, memory_order_relaxed);
    if (!enlist(place)) {
        os_unmap(start, bytes);
        return NULL;
    }
    return chunk;
}

static void drop(struct chunk *chunk, uintptr_t place) {
    /* acq_rel: what others did in their blocks comes before the memory goes */
    if (atomic_fetch_sub_explicit(&chunk->live, 1, memory_order_acq_rel) == 1) {
        _Atomic uintptr_t *slot = find(place);
        if (slot != NULL) {
            atomic_store_explicit(slot, GONE, memory_order_release);
            atomic_fetch_sub_explicit(&enlisted, 1, memory_order_relaxed);
        }
        /* Each call of a hook may make such a chunk and drop it: a call of the hook for that would not be the last. */
        if (chunk->of_hook) {
            (void)os_unmap_unseen(chunk, chunk->bytes);
        } else {
            os_unmap(chunk, chunk->bytes);
        }
    }
}

/* A block of the chunk, or NULL when it has no room. */
static void *take_from(struct chunk *chunk, size_t bytes, size_t alignment) {
    size_t whole = bits_round_up(bytes, UNIT) + UNIT + (alignment > UNIT ? alignment : 0);
    size_t at = chunk->used;
    if (at + whole > chunk->bytes) {
        return NULL;
    }
    chunk->used = at + whole;
    char *block = (char *)bits_round_up((uintptr_t)chunk + at + UNIT, alignment);
    struct block_head *head = (struct block_head *)(void *)(block - UNIT);
    *head = (struct block_head){bits_round_up(bytes, UNIT), chunk};
    atomic_fetch_add_explicit(&chunk->live, 1, memory_order_relaxed);
    return block;
}

void *shelter_take_alone(size_t bytes, size_t alignment) {
    bytes = bits_max(bytes, UNIT);
    alignment = bits_max(alignment, UNIT);
    /* The block starts behind the head, or, aligned to more, where the next mebibyte that is does. */
    size_t before = alignment > CHUNK_BYTES / 4 ? bits_max(alignment, CHUNK_BYTES) : HEAD + bits_max(alignment, UNIT);
    size_t whole;
    if (__builtin_add_overflow(bytes, before + os_page_bytes(), &whole)) {
        return NULL;
    }
    whole &= ~(os_page_bytes() - 1);
    char *start = os_map(whole, bits_max(alignment, CHUNK_BYTES));
    if (start == NULL) {
        return NULL;
    }
    char *block = (char *)bits_round_up((uintptr_t)start + (before >= CHUNK_BYTES ? before : HEAD + UNIT), alignment);
    struct chunk *chunk = new_chunk(start, whole, place_alone(block));
    if (chunk == NULL) {
        return NULL;
    }
    struct block_head *head = (struct block_head *)(void *)(block - UNIT);
    *head = (struct block_head){bits_round_up(bytes, UNIT), chunk};
    chunk->alone = true;
    chunk->of_hook = !memory_hooks_may_call();
    return block; /* the count's one is the block's */
}

/* The thread's chunk is nobody's while it is taken from: a signal handler in between gets one of its own, and may not drop this one. Relaxed: all
 * in one thread. */
static struct chunk *borrow_own(void) { return atomic_exchange_explicit(&own_chunk, NULL, memory_order_relaxed); }

static void keep_own(struct chunk *chunk) {
    struct chunk *none = NULL;
    if (chunk != NULL && !atomic_compare_exchange_strong_explicit(&own_chunk, &none, chunk, memory_order_relaxed,
                                                                  memory_order_relaxed)) {
        drop(chunk, (uintptr_t)chunk); /* a handler has left another */
    }
}

/* -- the interface ------------------------------------------------------------------------------------------- */

void *shelter_take(size_t bytes, size_t alignment) {
    bytes = bits_max(bytes, UNIT);
    alignment = bits_max(alignment, UNIT);
    if (bytes > CHUNK_BYTES / 4 || alignment > CHUNK_BYTES / 4) {
        return shelter_take_alone(bytes, alignment);
    }
    struct chunk *chunk = borrow_own();
    void *block = chunk == NULL ? NULL : take_from(chunk, bytes, alignment);
    if (block == NULL) {
        if (chunk != NULL) {
            drop(chunk, (uintptr_t)chunk); /* full */
        }
        void *start = os_map(CHUNK_BYTES, CHUNK_BYTES);
        chunk = start == NULL ? NULL : new_chunk(start, CHUNK_BYTES, (uintptr_t)start);
        block = chunk == NULL ? NULL : take_from(chunk, bytes, alignment);
    }
    keep_own(chunk);
    return block;
}

static struct block_head *head_of(const void *block) {
    bool found = find(place_alone(block)) != NULL || find(place_in_common(block)) != NULL;
    return found ? (struct block_head *)(void *)((uintptr_t)block - UNIT) : NULL;
}

bool shelter_give(void *block) {
    struct block_head *head = head_of(block);
    if (head == NULL) {
        return false;
    }
    if (find(place_alone(block)) != NULL) {
        drop(head->chunk, place_alone(block));
        return true;
    }
    /* A block of a chunk: its head says so until it is freed. Relaxed: of two threads that free it one is the first. */
    struct chunk *chunk = (struct chunk *)place_in_common(block), *seen = chunk;
    if (!__atomic_compare_exchange_n(&head->chunk, &seen, NULL, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        if (seen == NULL) {
            message_double_free(block, "block of", head->bytes);
        }
        message_foreign_pointer(block);
    }
    drop(chunk, (uintptr_t)chunk);
    return true;
}

size_t shelter_usable(const void *block) {
    const struct block_head *head = head_of(block);
    return head == NULL ? 0 : head->bytes;
}

void shelter_leave(void) {
    struct chunk *chunk = borrow_own();
    if (chunk != NULL) {
        drop(chunk, (uintptr_t)chunk);
    }
}

/* -- parked blocks ------------------------------------------------------------------------------------------- */

void shelter_park(void *block) {
    void *top = atomic_load_explicit(&shelter_parked, memory_order_relaxed);
    do {
        __atomic_store_n((void **)block, top, __ATOMIC_RELAXED);
        /* release: who takes it sees the link */
    } while (!atomic_compare_exchange_weak_explicit(&shelter_parked, &top, block, memory_order_release,
                                                    memory_order_relaxed));
}

bool shelter_begin_taking(void) {
    uint32_t nobody = 0;
    return atomic_compare_exchange_strong_explicit(&taking, &nobody, 1, memory_order_acquire, memory_order_relaxed);
}

void *shelter_take_parked(void) {
    void *top = atomic_load_explicit(&shelter_parked, memory_order_acquire);
    /* Nobody else takes: the top may be covered meanwhile, but not have gone and come back. */
    while (top != NULL && !atomic_compare_exchange_weak_explicit(&shelter_parked, &top,
                                                                 __atomic_load_n((void **)top, __ATOMIC_RELAXED),
                                                                 memory_order_acquire, memory_order_acquire)) {
    }
    return top;
}

void shelter_end_taking(void) { atomic_store_explicit(&taking, 0, memory_order_release); }

void shelter_after_fork(void) { atomic_store_explicit(&taking, 0, memory_order_relaxed); }
