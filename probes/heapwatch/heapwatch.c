/* libfreestone-heapwatch.so: watches what a program does with its heap, in a run whose time is no measurement.
 *
 * Preloaded behind the witness, which tells it when a process ends. It takes the place of malloc and hands every request
 * on to glibc's, by the names that glibc keeps for this. Active where FREESTONE_HEAPWATCH names a folder: one file a
 * process, PID-NANOSECONDS, its state at any time (state.h).
 *
 *   each call      counts, sizes, bytes in use
 *   one block of 64, chosen by its address, so that malloc and free agree without a look: who asked for it and when
 *   one call of 128, of each thread: whether the thread was put to sleep in it
 *   now and then   what the C library says of its heap, and the resident set */
#define _GNU_SOURCE
#include "../counter/glibc_block.h"
#include "heapwatch.h"
#include "points.h"
#include "sampled.h"
#include "tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { LOOKED_AT = 128, LARGE = 4096 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);
int __libc_mallopt(int parameter, int value);

/* One call that is looked at: when it began, and how often its thread had slept by then. */
struct look {
    bool looking;
    long slept;
    uint64_t begun_ns;
};

static struct look look_begin(struct tally *tally) {
    struct look look = {.looking = ++tally->turn % LOOKED_AT == 0};
    if (look.looking) {
        struct rusage usage;
        getrusage(RUSAGE_THREAD, &usage);
        look.slept = usage.ru_nvcsw;
        look.begun_ns = tally_now();
    }
    return look;
}

static void look_end(struct tally *tally, const struct look *look) {
    if (!look->looking)
        return;
    const uint64_t took = tally_now() - look->begun_ns;
    struct rusage usage;
    const int error = errno;
    getrusage(RUSAGE_THREAD, &usage);
    errno = error;
    tally_add(&tally->looked, 1);
    if (usage.ru_nvcsw > look->slept) {
        tally_add(&tally->waited, 1);
        tally_add(&tally->waited_ns, took);
    }
}

/* A block has been handed out: `asked` bytes of it were asked for. */
static void *given(struct tally *tally, void *block, size_t asked) {
    if (block == NULL)
        return NULL;
    tally_size(tally, asked);
    sampled_born(block, tally);
    if (tally_live(tally, (int64_t)glibc_block_bytes(block)))
        points_due();
    return block;
}

/* True now and then, as tally_live is. */
static bool gone(struct tally *tally, void *block) {
    sampled_gone(block, tally);
    return tally_live(tally, -(int64_t)glibc_block_bytes(block));
}

static void *watched_malloc(size_t size) {
    struct tally *tally = tally_mine();
    const struct look look = look_begin(tally);
    void *block = __libc_malloc(size);
    look_end(tally, &look);
    tally_add(&tally->mallocs, 1);
    return given(tally, block, size);
}

static void *watched_calloc(size_t count, size_t size) {
    struct tally *tally = tally_mine();
    const struct look look = look_begin(tally);
    void *block = __libc_calloc(count, size);
    look_end(tally, &look);
    tally_add(&tally->callocs, 1);
    if (block != NULL && !glibc_block_is_mapped(block)) /* the kernel's pages are clear */
        tally_add(&tally->cleared, count * size);
    return given(tally, block, count * size);
}

static void watched_free(void *block) {
    if (block == NULL)
        return;
    struct tally *tally = tally_mine();
    const bool due = gone(tally, block);
    const struct look look = look_begin(tally);
    __libc_free(block);
    look_end(tally, &look);
    tally_add(&tally->frees, 1);
    if (due)
        points_due();
}

static void *watched_realloc(void *block, size_t size) {
    struct tally *tally = tally_mine();
    const size_t before = glibc_block_bytes(block);
    /* In a mapping of its own it is moved by the kernel, which moves no bytes. */
    const bool mapped = block != NULL && glibc_block_is_mapped(block);
    if (block != NULL)
        (void)gone(tally, block);
    void *moved = __libc_realloc(block, size);
    if (block != NULL) {
        tally_add(&tally->reallocs, 1);
        if (moved != NULL && moved != block && !mapped) {
            tally_add(&tally->moved, 1);
            tally_add(&tally->copied, before < size ? before : size);
        }
        if (before >= LARGE && size > before && size - before < before / 8)
            tally_add(&tally->small_steps, 1);
    } else {
        tally_add(&tally->mallocs, 1);
    }
    if (moved == NULL && size != 0 && block != NULL) { /* it stays as it was */
        (void)tally_live(tally, (int64_t)before);
        return NULL;
    }
    return given(tally, moved, size);
}

static void *watched_aligned(size_t alignment, size_t size) {
    struct tally *tally = tally_mine();
    void *block = __libc_memalign(alignment, size);
    tally_add(&tally->mallocs, 1);
    return given(tally, block, size);
}

EXPORT void *malloc(size_t size) {
    tally_depth++;
    void *block = watched_malloc(size);
    tally_depth--;
    return block;
}

EXPORT void *calloc(size_t count, size_t size) {
    tally_depth++;
    void *block = watched_calloc(count, size);
    tally_depth--;
    return block;
}

EXPORT void *realloc(void *block, size_t size) {
    tally_depth++;
    void *moved = watched_realloc(block, size);
    tally_depth--;
    return moved;
}

EXPORT void free(void *block) {
    tally_depth++;
    watched_free(block);
    tally_depth--;
}

static void *aligned(size_t alignment, size_t size) {
    tally_depth++;
    void *block = watched_aligned(alignment, size);
    tally_depth--;
    return block;
}

EXPORT void *memalign(size_t alignment, size_t size) { return aligned(alignment, size); }

EXPORT void *aligned_alloc(size_t alignment, size_t size) { return aligned(alignment, size); }

EXPORT int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    void *found = aligned(alignment, size);
    if (found == NULL)
        return ENOMEM;
    *block = found;
    return 0;
}

EXPORT void *valloc(size_t size) { return aligned((size_t)sysconf(_SC_PAGESIZE), size); }

EXPORT void *pvalloc(size_t size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > SIZE_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    return aligned(page, (size + page - 1) / page * page);
}

EXPORT size_t malloc_usable_size(void *block) { return glibc_block_bytes(block); }

EXPORT int mallopt(int parameter, int value) {
    tally_knob(parameter, value);
    return __libc_mallopt(parameter, value);
}

EXPORT void freestone_heapwatch_leave(void) { points_leave(); }
