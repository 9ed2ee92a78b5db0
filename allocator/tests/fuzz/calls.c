#include "calls.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../entry.h"

/* The library under test, where a sanitizer has malloc for itself. */
#ifdef FREESTONE_FUZZED
#define malloc fuzzed_malloc
#define calloc fuzzed_calloc
#define realloc fuzzed_realloc
#define reallocarray fuzzed_reallocarray
#define free fuzzed_free
#define free_sized fuzzed_free_sized
#define aligned_alloc fuzzed_aligned_alloc
#define posix_memalign fuzzed_posix_memalign
#define malloc_usable_size fuzzed_malloc_usable_size
#define malloc_trim fuzzed_malloc_trim
void *fuzzed_malloc(size_t), *fuzzed_calloc(size_t, size_t), *fuzzed_realloc(void *, size_t);
void *fuzzed_reallocarray(void *, size_t, size_t), *fuzzed_aligned_alloc(size_t, size_t);
void fuzzed_free(void *), fuzzed_free_sized(void *, size_t);
int fuzzed_posix_memalign(void **, size_t, size_t), fuzzed_malloc_trim(size_t);
size_t fuzzed_malloc_usable_size(void *);
#endif

enum {
    BLOCKS = 64,
    ALIVE_MOST = 16 << 20, /* bytes */
    LOG_MOST = 20,         /* of the largest size */
    CHECKED = 4096,        /* bytes at either end that are written and read; all of it would take most of the time */
};

struct block {
    unsigned char *at;
    size_t size, alignment;
    unsigned char fill;
    bool sized; /* may be freed by free_sized */
};

struct play {
    const uint8_t *bytes;
    size_t left;
    struct block blocks[BLOCKS];
    size_t alive;
    unsigned char fill;
};

#define MUST(condition, ...)                                    \
    do {                                                        \
        if (!(condition)) {                                     \
            fprintf(stderr, "does not hold: %s: ", #condition); \
            fprintf(stderr, __VA_ARGS__);                       \
            fputc('\n', stderr);                                \
            abort();                                            \
        }                                                       \
    } while (0)

static unsigned next(struct play *play) {
    if (play->left == 0) {
        return 0;
    }
    play->left--;
    return *play->bytes++;
}

/* Each order of magnitude as often as any other: four bits of it, and eight behind its first. */
static size_t next_size(struct play *play) {
    unsigned order = next(play), rest = next(play);
    unsigned log = order % (LOG_MOST + 1);
    size_t size = (((size_t)256 | rest) << log) >> 8;
    return order >= 230 ? (size_t)order - 230 : size; /* and the least ones, exactly */
}

static unsigned char byte_of(const struct block *block, size_t index) {
    return (unsigned char)(block->fill + index * 7);
}

/* The byte behind `index` that is written and read, in a block of `size`. */
static size_t after(size_t index, size_t size) {
    return index + 1 == CHECKED && size > 2 * (size_t)CHECKED ? size - CHECKED : index + 1;
}

static void fill(struct block *block) {
    for (size_t i = 0; i < block->size; i = after(i, block->size)) {
        block->at[i] = byte_of(block, i);
    }
}

/* The first `size` bytes, of a block that had `had`: those that were written. */
static void check(const struct block *block, size_t size, size_t had, const char *when) {
    for (size_t i = 0; i < size; i = after(i, had)) {
        MUST(block->at[i] == byte_of(block, i), "byte %zu of %zu at %p has changed %s", i, had, (void *)block->at,
             when);
    }
}

static void check_new(const struct play *play, const struct block *block, const char *by) {
    size_t alignment = block->alignment > 16 ? block->alignment : 16;
    MUST((uintptr_t)block->at % alignment == 0, "%s of %zu bytes gave %p", by, block->size, (void *)block->at);
    MUST(malloc_usable_size(block->at) >= block->size, "%s of %zu bytes has %zu", by, block->size,
         malloc_usable_size(block->at));
    for (int i = 0; i < BLOCKS; i++) {
        const struct block *other = &play->blocks[i];
        bool apart = other->at == NULL || other == block || other->at + other->size <= block->at ||
                     block->at + block->size <= other->at;
        MUST(apart, "%s of %zu bytes gave %p, amid %zu bytes at %p", by, block->size, (void *)block->at, other->size,
             (void *)other->at);
    }
}

static void drop(struct play *play, struct block *block, bool by_size) {
    if (block->at == NULL) {
        return;
    }
    check(block, block->size, block->size, "until it is freed");
    play->alive -= block->size;
    int before = errno = 77;
    if (by_size && block->sized) {
        free_sized(block->at, block->size);
    } else {
        free(block->at);
    }
    MUST(errno == before, "free has set errno to %d", errno);
    block->at = NULL;
}

static void keep(struct play *play, struct block *block, void *at, size_t size, size_t alignment, bool sized,
                 const char *by) {
    drop(play, block, false);
    MUST(at != NULL, "%s of %zu bytes failed", by, size);
    *block = (struct block){at, size, alignment, play->fill += 31, sized};
    play->alive += size;
    check_new(play, block, by);
    fill(block);
}

static void zeroed(struct play *play, struct block *block, size_t size) {
    unsigned char *at = calloc(size / 8 + 1, 8);
    size = (size / 8 + 1) * 8;
    static const unsigned char zeros[8];
    MUST(at == NULL || (memcmp(at, zeros, 8) == 0 && memcmp(at, at + 8, size - 8) == 0), "%zu bytes are not all 0",
         size);
    keep(play, block, at, size, 1, true, "calloc");
}

static void resize(struct play *play, struct block *block, size_t size, bool as_array) {
    if (block->at == NULL || size == 0) {
        return;
    }
    check(block, block->size, block->size, "until it is resized");
    unsigned char *at = as_array ? reallocarray(block->at, size, 1) : realloc(block->at, size);
    MUST(at != NULL, "realloc of %zu bytes to %zu failed", block->size, size);
    size_t had = block->size, kept = had < size ? had : size;
    block->at = at;
    check(block, kept, had, "when it was resized");
    play->alive = play->alive - had + size;
    block->size = size;
    block->alignment = 1;
    block->sized = true;
    check_new(play, block, "realloc");
    fill(block);
}

static void aligned(struct play *play, struct block *block, size_t size, bool posix) {
    size_t alignment = (size_t)8 << next(play) % 14;
    void *at = NULL;
    if (posix) {
        MUST(posix_memalign(&at, alignment, size) == 0, "%zu bytes at %zu", size, alignment);
    } else {
        at = aligned_alloc(alignment, size);
    }
    keep(play, block, at, size, alignment, false, posix ? "posix_memalign" : "aligned_alloc");
}

static void play_call(struct play *play) {
    unsigned call = next(play);
    struct block *block = &play->blocks[next(play) % BLOCKS];
    bool too_much = play->alive > ALIVE_MOST;
    switch (too_much ? 1 : call % 11) {
    case 0:
    case 1:
        drop(play, block, call % 2 != 0);
        break;
    case 2:
    case 3:
    case 4: {
        size_t size = next_size(play);
        keep(play, block, malloc(size), size, 1, true, "malloc");
        break;
    }
    case 5:
        zeroed(play, block, next_size(play));
        break;
    case 6:
    case 7:
        resize(play, block, next_size(play), call % 2 != 0);
        break;
    case 8:
        aligned(play, block, next_size(play), call % 2 != 0);
        break;
    case 9:
        if (block->at != NULL) {
            check(block, block->size, block->size, "when it was looked at");
        }
        break;
    default: /* slow: of all sequences a few */
        if (call == 10) {
            (void)freestone_purge();
        } else if (call == 21) {
            (void)malloc_trim(0);
        } else if (call == 32) {
            (void)freestone_check();
        }
    }
}

void calls_play(const uint8_t *bytes, size_t count) {
    static struct play play;
    play = (struct play){.bytes = bytes, .left = count};
    while (play.left > 0) {
        play_call(&play);
    }
    for (int i = 0; i < BLOCKS; i++) {
        drop(&play, &play.blocks[i], i % 2 != 0);
    }
}
