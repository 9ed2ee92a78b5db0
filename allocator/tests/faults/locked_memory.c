/* mlockall: every page of the process is pinned, present and to come; with `current` the present ones alone. The heap's reservation must not be
 * brought into memory by it, pages it wants to drop stay as they are (so calloc has to clear them), and allocation goes on. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

enum { BLOCKS = 3000, ROUNDS = 6, WRITABLE_MOST_KIB = 1 << 20, ROOM_KIB = 256 * 1024 };

/* KiB of private writable mappings. Locking brings in all of them: if the heap kept its reservation writable, the
 * test would take the machine's memory instead of failing, so it looks first. */
static size_t writable_kib(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    EXPECT(maps != NULL, "/proc/self/maps cannot be opened");
    char line[512];
    size_t total = 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long start = 0;
        unsigned long end = 0;
        char rights[5] = "";
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 && rights[1] == 'w') {
            total += (end - start) / 1024;
        }
    }
    fclose(maps);
    return total;
}

static size_t size_of(size_t b) { return b % 50 == 0 ? 500000 : 1 + b * 13 % 20000; }

static void fill_and_free(void) {
    static void *blocks[BLOCKS];
    for (size_t b = 0; b < BLOCKS; b++) {
        blocks[b] = calloc(1, size_of(b));
        EXPECT(blocks[b] != NULL, "calloc(%zu) failed with errno %d", size_of(b), errno);
        size_t dirty = pattern_not_zero(blocks[b], size_of(b));
        EXPECT(dirty == SIZE_MAX, "calloc(%zu): byte %zu is not zero", size_of(b), dirty);
        memset(blocks[b], 0xff, malloc_usable_size(blocks[b]));
    }
    for (size_t b = 0; b < BLOCKS; b++) {
        free(blocks[b]);
    }
    malloc_trim(0);
}

enum { LARGE = 30, EACH = 4 << 20, AHEAD_KIB = 32 * 1024 };

static void take_large(void **blocks) {
    for (int b = 0; b < LARGE; b++) {
        blocks[b] = malloc(EACH);
        EXPECT(blocks[b] != NULL, "malloc failed with errno %d", errno);
        memset(blocks[b], 1, EACH);
    }
}

/* Locked memory makes room where there is no other: the heap's end is unmapped then. */
static void freed_makes_room(void) {
    enum { LEFT = 100 << 20, WANTED = 190 << 20 };
    void *blocks[LARGE];
    take_large(blocks);
    struct rlimit before = address_space_limit(LEFT);
    for (int b = 0; b < LARGE; b++) {
        free(blocks[b]);
    }
    char *block = malloc(WANTED);
    EXPECT(block != NULL, "no %d bytes, where %d are free and %d beside the limit", WANTED, LARGE * EACH, LEFT);
    block[0] = block[WANTED - 1] = 1;
    free(block);
    EXPECT(setrlimit(RLIMIT_AS, &before) == 0, "the limit stays");
}

/* Locked memory is the program's to ask to be given back, also between blocks in use. What comes there again is zero, and is locked. */
static void a_trim_returns_it(void) {
    void *blocks[LARGE];
    (void)malloc_trim(0);
    take_large(blocks);
    size_t full_kib = resident_kib();
    for (int b = 0; b < LARGE; b += 2) {
        free(blocks[b]);
    }
    EXPECT(malloc_trim(0) == 1, "nothing was returned");
    size_t left_kib = resident_kib();
    EXPECT(left_kib + LARGE / 2 * (EACH / 1024) <= full_kib + AHEAD_KIB, "of %zu KiB %zu are left", full_kib, left_kib);
    for (int b = 0; b < LARGE; b += 2) {
        blocks[b] = calloc(1, EACH);
        EXPECT(blocks[b] != NULL && pattern_not_zero(blocks[b], EACH) == SIZE_MAX, "block %d is not zero", b);
    }
    for (int b = 0; b < LARGE; b++) {
        free(blocks[b]);
    }
}

/* MCL_CURRENT brings in what was purged before: a trim returns it, while it is locked and after. */
static int lock_what_is_there(void) {
    void *blocks[LARGE];
    take_large(blocks);
    for (int b = 0; b < LARGE - 1; b++) {
        free(blocks[b]);
    }
    (void)malloc_trim(0);
    size_t low_kib = resident_kib();
    for (int locked = 0; locked < 2; locked++) {
        if (mlockall(MCL_CURRENT) != 0) {
            expect_skip("mlockall is not allowed here (errno %d)", errno);
        }
        size_t high_kib = resident_kib();
        EXPECT(high_kib >= low_kib + AHEAD_KIB, "locking brought in nothing: %zu KiB before, %zu after", low_kib,
               high_kib);
        if (locked == 0) {
            munlockall();
        }
        (void)malloc_trim(0);
        size_t left_kib = resident_kib();
        EXPECT(left_kib < low_kib + AHEAD_KIB, "of %zu KiB %zu are left after a trim, locked %d", high_kib, left_kib,
               locked);
        munlockall();
    }
    free(blocks[LARGE - 1]);
    fill_and_free();
    return 0;
}

int main(int count, char **arguments) {
    require_serving();
    if (count > 1 && strcmp(arguments[1], "current") == 0) {
        return lock_what_is_there();
    }
    fill_and_free();
    EXPECT(writable_kib() < WRITABLE_MOST_KIB, "%zu KiB of the process are writable: locking would bring them in",
           writable_kib());
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        expect_skip("mlockall is not allowed here (errno %d); it takes CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK", errno);
    }
    size_t before = resident_kib();
    for (size_t round = 0; round < ROUNDS; round++) {
        fill_and_free();
    }
    size_t now = resident_kib();
    EXPECT(now < before + ROOM_KIB, "resident memory grew from %zu to %zu KiB under mlockall", before, now);
    free(malloc(40 << 20));
    freed_makes_room();
    a_trim_returns_it();
    munlockall();
    fill_and_free();
    return 0;
}
