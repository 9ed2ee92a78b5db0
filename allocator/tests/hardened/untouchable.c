/* In a hardened process nobody may touch: what lies behind a slab, before and behind a large block, a large block once it is freed, and a block
 * of no bytes.
 *
 *   untouchable
 *   untouchable small        some small blocks lie on pages of their own
 *   untouchable none_small   with guard_small=0: none does
 *   untouchable touchable    with guard_pages=0: what is freed can be touched, and what is taken reads as zero all the same */
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "../conventions.h"
#include "../entry.h"
#include "../serving.h"

static sigjmp_buf back;

static void on_fault(int number) {
    (void)number;
    siglongjmp(back, 1);
}

/* Whether a byte cannot be read, nor written. */
static bool faults(volatile unsigned char *at) {
    if (sigsetjmp(back, 1) == 0) {
        (void)*at;
        return false;
    }
    if (sigsetjmp(back, 1) == 0) {
        *at = 1;
        return false;
    }
    return true;
}

/* Of what may be somebody else's: nothing is written. */
static bool cannot_be_read(const volatile unsigned char *at) {
    if (sigsetjmp(back, 1) == 0) {
        (void)*at;
        return false;
    }
    return true;
}

static void check_large(size_t size, size_t alignment) {
    unsigned char *block = unseen(alignment <= 16 ? malloc(size) : aligned_alloc(alignment, size));
    EXPECT(block != NULL && (uintptr_t)block % alignment == 0, "%zu bytes at %zu: %p", size, alignment, (void *)block);
    EXPECT(malloc_usable_size(block) == size, "%zu bytes are %zu", size, malloc_usable_size(block));
    for (size_t i = 0; i < size; i += 1000) {
        EXPECT(block[i] == 0, "byte %zu of %zu is %d", i, size, block[i]);
    }
    memset(block, 7, size);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t reach = alignment <= 16 ? 16 : alignment;
    bool near_end = alignment <= page;
    EXPECT(faults(block + size + (near_end ? reach : page) - 1), "what lies %zu bytes behind %zu can be touched", reach,
           size);
    EXPECT(faults(block - page), "a page before %zu bytes, aligned to %zu, can be touched", size, alignment);
    free(block);
    EXPECT(faults(block) && faults(block + size - 1), "%zu bytes can be touched once they are freed", size);
}

/* Of no bytes, and aligned as only a large block is: freed as one of none. */
static void check_aligned_nothing(void) {
    enum { ALIGNMENT = 1 << 17 };
    unsigned char *block = unseen(aligned_alloc(ALIGNMENT, 0));
    EXPECT(block != NULL && (uintptr_t)block % ALIGNMENT == 0, "no bytes at %d: %p", (int)ALIGNMENT, (void *)block);
    EXPECT(malloc_usable_size(block) == 0, "it is of %zu bytes", malloc_usable_size(block));
    EXPECT(faults(block) && faults(block - 1), "a block of no bytes can be touched");
    free_aligned_sized(block, ALIGNMENT, 0);
}

/* Who writes to what he has freed spoils no zeros of those who take it next. */
static void check_touchable(void) {
    enum { SIZE = 300000, ROUNDS = 300 };
    for (unsigned round = 0; round < ROUNDS; round++) { /* more than are held back */
        unsigned char *block = unseen(calloc(1, SIZE));
        EXPECT(block != NULL, "no memory");
        for (size_t i = 0; i < SIZE; i += 1000) {
            EXPECT(block[i] == 0, "byte %zu of %d is %d", i, (int)SIZE, block[i]);
        }
        memset(block, 7, SIZE);
        free(block);
        EXPECT(!faults(block), "it cannot be touched once it is freed");
        memset(unseen(block), 9, SIZE);
    }
}

/* All slots of a slab and more: the end of one is reached from some of them. */
static void check_slab(size_t size) {
    enum { BLOCKS = 3000 };
    static unsigned char *blocks[BLOCKS];
    unsigned guarded = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = unseen(malloc(size));
        guarded += cannot_be_read(blocks[i] + size + (size_t)sysconf(_SC_PAGESIZE) / 2);
    }
    EXPECT(guarded > 0, "no slab of blocks of %zu bytes ends with a page that nobody may touch", size);
}

/* Of small blocks, those that lie on pages of their own: nobody may touch the page before, nor the one behind. Such a block lies at an end of its
 * pages, and may not be touched once it is freed. */
static unsigned count_small(unsigned blocks, size_t size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned own = 0;
    for (unsigned i = 0; i < blocks; i++) {
        unsigned char *block = unseen(calloc(1, size));
        EXPECT(block != NULL && (uintptr_t)block % 16 == 0 && malloc_usable_size(block) == size, "%p", (void *)block);
        unsigned char *from = block - (uintptr_t)block % page;
        unsigned char *to = from + ((uintptr_t)block % page + size + page - 1) / page * page;
        if (cannot_be_read(from - 1) && cannot_be_read(to)) {
            own++;
            EXPECT(from == block || to - (block + size) < 16, "%zu bytes at %p are at no end", size, (void *)block);
            memset(block, 1, size);
            free(block);
            EXPECT(faults(block) && faults(block + size - 1), "%p can be touched once it is freed", (void *)block);
        }
    }
    return own;
}

static void check_small(bool has_some) {
    enum { BLOCKS = 8, SIZE = 1000 };
    unsigned own = count_small(BLOCKS, SIZE);
    EXPECT((own > 0) == has_some, "of %d small blocks %u have pages of their own", (int)BLOCKS, own);
}

int main(int count, char **arguments) {
    require_serving();
    signal(SIGSEGV, on_fault);
    if (count > 1 && strcmp(arguments[1], "touchable") != 0) {
        check_small(strcmp(arguments[1], "small") == 0);
        _exit(0);
    }
    if (count > 1) {
        check_touchable();
        _exit(0);
    }
    unsigned char *nothing = unseen(malloc(0)), *other = unseen(malloc(0));
    EXPECT(nothing != other && nothing != NULL, "blocks of no bytes: %p and %p", (void *)nothing, (void *)other);
    EXPECT(faults(nothing) && faults(other), "a block of no bytes can be touched");
    EXPECT(malloc_usable_size(nothing) == 0, "it is of %zu bytes", malloc_usable_size(nothing));
    free(nothing);
    other = unseen(realloc(other, 100));
    EXPECT(other != NULL && !faults(other), "it does not grow");
    free(other);
    check_aligned_nothing();
    static const size_t sizes[] = {262137, 262144, 300000, 323576, 600000, 655360, 1048576, 5000001};
    static const size_t alignments[] = {1, 64, 4096, 65536, 1048576};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
            check_large(sizes[s], alignments[a] < 2 ? 16 : alignments[a]);
        }
    }
    check_slab(64 - 8);
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    EXPECT(stats.unguarded == 0, "%zu guards are missing", stats.unguarded);
    _exit(0); /* what was written where nothing is would be found at the end */
}
