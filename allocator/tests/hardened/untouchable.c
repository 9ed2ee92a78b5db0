/* In a hardened process nobody may touch: what lies behind a slab, before and behind a large block, a large block once it is freed, and a block
 * of no bytes. */
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
    EXPECT(alignment > page || faults(block - page), "a page before %zu bytes can be touched", size);
    free(block);
    EXPECT(faults(block) && faults(block + size - 1), "%zu bytes can be touched once they are freed", size);
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

int main(void) {
    require_serving();
    signal(SIGSEGV, on_fault);
    unsigned char *nothing = unseen(malloc(0)), *other = unseen(malloc(0));
    EXPECT(nothing != other && nothing != NULL, "blocks of no bytes: %p and %p", (void *)nothing, (void *)other);
    EXPECT(faults(nothing) && faults(other), "a block of no bytes can be touched");
    EXPECT(malloc_usable_size(nothing) == 0, "it is of %zu bytes", malloc_usable_size(nothing));
    free(nothing);
    other = unseen(realloc(other, 100));
    EXPECT(other != NULL && !faults(other), "it does not grow");
    free(other);
    static const size_t sizes[] = {262137, 262144, 300000, 600000, 655360, 1048576, 5000001};
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
