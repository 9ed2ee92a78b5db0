/* Huge pages bring in memory that the program never writes. This one writes no zeros: a page among its blocks that is resident and reads as
 * zero was never written.
 *
 *   unwritten WHAT [bounded]      prints what is in use, resident, resident and unwritten, on huge pages, all in KiB; bounded: and holds libfreestone to its
 *                                 budget, 2 % of what is resident and one huge page, and parts to a peak of 250 MiB (glibc 195)
 *
 *   parts      blocks of 4 to 64 MiB of which the first part is written, 3 to 90 %, replaced by turns
 *   tensors    epochs of large blocks: of some lengths all is written, of others half; all are freed after each epoch
 *   imports    a quarter of a million small blocks, some freed, and buffers of 256 KiB of which the ends are written
 *   changing   blocks of one length, written whole for a while, and then in part
 *   all        those four, one after the other
 *   dense      arrays that are written whole, freed and given back, and filled anew: they have huge pages, and few faults */
#include <sys/mman.h>
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

enum { BLOCKS_MOST = 400000, ONCE = 512 };

static const size_t mebibyte = 1 << 20;
static char *block[BLOCKS_MOST];
static size_t length[BLOCKS_MOST];
static uintptr_t lowest = UINTPTR_MAX, highest;
static size_t page;
static bool bounded;

struct memory {
    size_t resident, unwritten; /* pages */
};

static void take(size_t i, size_t bytes) {
    block[i] = malloc(bytes);
    EXPECT(block[i] != NULL, "no memory");
    length[i] = bytes;
    uintptr_t at = (uintptr_t)block[i];
    lowest = at < lowest ? at : lowest;
    highest = at + bytes > highest ? at + bytes : highest;
}

static void write_to(size_t i, size_t bytes) { memset(block[i], 1, bytes); }

static void drop(size_t i) {
    free(block[i]);
    block[i] = NULL;
}

static bool is_zero(const char *at) {
    uint64_t any = 0;
    for (size_t i = 0; i < page; i += 8) {
        any |= *(const uint64_t *)(const void *)(at + i);
    }
    return any == 0;
}

static void look_at(char *at, const char *end, struct memory *memory) {
    unsigned char there[ONCE];
    for (; at < end; at += ONCE * page) {
        size_t pages = (size_t)(end - at) / page;
        pages = pages < ONCE ? pages : ONCE;
        if (mincore(at, pages * page, there) != 0) {
            continue;
        }
        for (size_t p = 0; p < pages; p++) {
            if ((there[p] & 1) != 0) {
                memory->resident++;
                memory->unwritten += is_zero(at + p * page);
            }
        }
    }
}

/* The pages that lie among the blocks. */
static struct memory look(void) {
    struct memory memory = {0};
    FILE *maps = fopen("/proc/self/maps", "re");
    EXPECT(maps != NULL, "/proc/self/maps cannot be opened");
    char line[512];
    while (fgets(line, sizeof line, maps) != NULL) {
        uintptr_t from, to;
        char may[5];
        int named = 0;
        unsigned long inode = 0;
        if (sscanf(line, "%lx-%lx %4s %*s %*s %lu %n", &from, &to, may, &inode, &named) == 4 && may[0] == 'r' &&
            may[1] == 'w' && inode == 0 &&
            (line[named] == '\0' || strncmp(line + named, "[anon", 5) == 0 ||
             strncmp(line + named, "[heap]", 6) == 0)) {
            from = from < lowest ? lowest & ~(page - 1) : from;
            to = to > highest ? (highest + page - 1) & ~(page - 1) : to;
            if (from < to) {
                look_at((char *)from, (char *)to, &memory);
            }
        }
    }
    fclose(maps);
    return memory;
}

static size_t huge_kib(void) {
    size_t kib = 0;
    char line[256];
    FILE *rollup = fopen("/proc/self/smaps_rollup", "re");
    EXPECT(rollup != NULL, "/proc/self/smaps_rollup cannot be opened");
    while (fgets(line, sizeof line, rollup) != NULL) {
        (void)sscanf(line, "AnonHugePages: %zu", &kib);
    }
    fclose(rollup);
    return kib;
}

static size_t in_use(void) {
    size_t bytes = 0;
    for (size_t i = 0; i < BLOCKS_MOST; i++) {
        bytes += block[i] != NULL ? length[i] : 0;
    }
    return bytes;
}

static size_t worst_percent_10;

static void report(const char *when) {
    struct memory memory = look();
    size_t tenths = memory.resident == 0 ? 0 : memory.unwritten * 1000 / memory.resident;
    worst_percent_10 = tenths > worst_percent_10 ? tenths : worst_percent_10;
    printf("%-12s in use %8zu resident %8zu unwritten %7zu huge %8zu\n", when, in_use() / 1024,
           memory.resident * page / 1024, memory.unwritten * page / 1024, huge_kib());
    size_t bound = memory.resident / 50 + 2 * mebibyte / page; /* one huge page is being filled */
    EXPECT(!bounded || memory.unwritten <= bound, "%s: %zu KiB of %zu were never written", when,
           memory.unwritten * page / 1024, memory.resident * page / 1024);
}

static void drop_all(void) {
    for (size_t i = 0; i < BLOCKS_MOST; i++) {
        if (block[i] != NULL) {
            drop(i);
        }
    }
}

static void parts(void) {
    enum { BLOCKS = 8, ROUNDS = 120 };
    uint64_t random = 1;
    for (size_t r = 0; r < ROUNDS; r++) {
        size_t i = pattern_below(&random, BLOCKS);
        if (block[i] != NULL) {
            drop(i);
        }
        take(i, ((size_t)4 << pattern_below(&random, 5)) * mebibyte + pattern_below(&random, mebibyte));
        write_to(i, length[i] / 100 * (3 + pattern_below(&random, 88)));
        if (r % 20 == 19) {
            report("parts");
        }
    }
    drop_all();
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    EXPECT(!bounded || usage.ru_maxrss <= 250 * 1024, "a peak of %ld KiB", usage.ru_maxrss);
}

/* One in four is a workspace, of a length of its own, of which half is used. */
static void tensors(void) {
    enum { TENSORS = 16, EPOCHS = 10 };
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (size_t i = 0; i < TENSORS; i++) {
            bool workspace = i % 4 == 3;
            take(i, (4 + i % 4 * 5 + i / 4) * mebibyte);
            write_to(i, workspace ? length[i] / 2 : length[i]);
        }
        report("tensors");
        drop_all();
        if (epoch % 2 == 1) {
            (void)malloc_trim(0);
        }
    }
}

static void imports(void) {
    enum { SMALL = 250000, BUFFERS = 400 };
    uint64_t random = 2;
    for (size_t i = 0; i < SMALL; i++) {
        take(i, (size_t)16 << pattern_below(&random, 7));
        write_to(i, length[i]);
        if (i % 5 == 4) {
            drop(i - pattern_below(&random, 4));
        }
    }
    report("imports");
    for (size_t i = SMALL; i < SMALL + BUFFERS; i++) {
        take(i, 256 * 1024);
        block[i][0] = 1;
        block[i][length[i] - 1] = 1;
    }
    report("buffers");
    for (size_t i = 0; i < SMALL; i++) {
        if (block[i] != NULL && i / 64 % 4 != 0) {
            drop(i);
        }
    }
    (void)malloc_trim(0);
    report("fewer");
    drop_all();
}

static void changing(void) {
    enum { BLOCKS = 8, ROUNDS = 6 };
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            take(i, 12 * mebibyte);
            write_to(i, round < ROUNDS / 2 || i > 0 ? length[i] : length[i] / 4);
        }
        drop_all();
        (void)malloc_trim(0);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        take(i, 12 * mebibyte);
        write_to(i, length[i] / 4);
    }
    report("changing");
    drop_all();
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void dense(void) {
    enum { ARRAYS = 8, ROUNDS = 6 };
    long before = 0, now = 0;
    for (int round = 0; round < ROUNDS; round++) {
        before = faults();
        for (size_t i = 0; i < ARRAYS; i++) {
            take(i, 16 * mebibyte);
            write_to(i, length[i]);
        }
        now = faults();
        report("dense");
        if (round < ROUNDS - 1) {
            drop_all();
            (void)malloc_trim(0);
        }
    }
    size_t small = ARRAYS * 16 * mebibyte / page;
    printf("%ld faults, %zu pages\n", now - before, small);
    if (bounded && resident_set_to("/sys/kernel/mm/transparent_hugepage/enabled", "madvise")) {
        EXPECT(huge_kib() > ARRAYS * 16 * 1024 / 2, "%zu KiB are on huge pages", huge_kib());
        EXPECT((size_t)(now - before) < small / 2, "%ld faults for %zu pages", now - before, small);
    }
    drop_all();
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"parts", parts}, {"tensors", tensors}, {"imports", imports}, {"changing", changing}};
    EXPECT(count == 2 || count == 3, "usage: unwritten WHAT [bounded]");
    bounded = count == 3;
    if (bounded) {
        require_serving();
    }
    page = (size_t)sysconf(_SC_PAGESIZE);
    bool any = strcmp(arguments[1], "dense") == 0;
    if (any) {
        dense();
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(arguments[1], "all") == 0 || strcmp(arguments[1], all[i].name) == 0) {
            all[i].run();
            any = true;
        }
    }
    EXPECT(any, "'%s' is nothing that it does", arguments[1]);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("peak %ld worst %zu per mille\n", usage.ru_maxrss, worst_percent_10);
    return 0;
}
