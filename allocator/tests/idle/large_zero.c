/* Very large blocks of calloc in memory that was in use before.
 *
 *   large_zero zero        they are zero to the last byte, wherever they end
 *   large_zero sparse      ... and what nobody touches of them is in no memory
 *   large_zero brought_in  with populate_kib, a page that is read and then written costs no fault */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

enum { MIB = 1 << 20, ODD = 12345, SLACK_KIB = 2048, ARRAYS = 20, FAULTS_MOST = 30 };

static void *dirty_then_zero(size_t size) {
    unsigned char *before = unseen(malloc(size));
    EXPECT(before != NULL, "no memory for %zu bytes", size);
    memset(before, 0xff, size);
    free(before);
    void *block = unseen(calloc(1, size));
    EXPECT(block != NULL, "calloc(%zu) failed", size);
    return block;
}

static void zero(void) {
    for (size_t size = 15 * MIB; size < 40 * (size_t)MIB; size += 3 * MIB + ODD) {
        void *block = dirty_then_zero(size);
        size_t dirty = pattern_not_zero(block, size);
        EXPECT(dirty == SIZE_MAX, "calloc(%zu): byte %zu is not zero", size, dirty);
        memset(block, 0xff, malloc_usable_size(block));
        free(block);
    }
}

static void sparse(void) {
    size_t before = resident_kib();
    unsigned char *block = dirty_then_zero(64 * (size_t)MIB);
    block[MIB] = 1;
    size_t after = resident_kib();
    EXPECT(after <= before + SLACK_KIB + resident_piece_bytes() / 1024, "%zu KiB in memory after one byte, %zu before",
           after, before);
    free(block);
}

/* Page faults of reading and then writing each page of so many bytes. */
static long faults_of(unsigned char *block, size_t bytes) {
    long before = minor_faults();
    for (size_t at = 0; at < bytes; at += 4096) {
        block[at]++;
    }
    return minor_faults() - before;
}

static void need_populating(void) {
    enum { POPULATE_WRITE = 23 }; /* MADV_POPULATE_WRITE: younger than some headers */
    unsigned char *own = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(own != MAP_FAILED, "no mapping");
    if (madvise(own, MIB, POPULATE_WRITE) != 0 || faults_of(own, MIB) > FAULTS_MOST) {
        expect_skip("this kernel, or emulator, brings no pages in");
    }
    munmap(own, MIB);
}

static void brought_in(void) {
    static unsigned char *block[ARRAYS];
    long inside = 0;
    need_populating();
    for (size_t i = 0; i < ARRAYS; i++) {
        block[i] = unseen(calloc(1, MIB));
        EXPECT(block[i] != NULL, "calloc failed");
        inside += faults_of(block[i], MIB);
    }
    EXPECT(inside <= FAULTS_MOST, "%ld faults in %d arrays of 1 MiB that were brought in", inside, ARRAYS);
    for (size_t i = 0; i < ARRAYS; i++) {
        free(block[i]);
    }
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: large_zero zero|sparse|brought_in");
    if (strcmp(arguments[1], "zero") == 0) {
        zero();
    } else if (strcmp(arguments[1], "sparse") == 0) {
        sparse();
    } else {
        brought_in();
    }
    return 0;
}
