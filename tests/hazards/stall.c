/* The longest call of free in a program that fills and drops memory in phases. A call may take as long as the kernel takes to
 * give back 8 MiB, measured here, and as long as this machine makes anybody wait: the longest gap between two looks at the
 * clock in as long a time. The best of three, since others run as well.
 *
 *   stall BLOCK-BYTES */
#include "hazard.h"

enum { MIB = 512, PHASES = 2, REST_MS = 1300, PIECE = 8 << 20, PIECES = 21, TRIES = 3 };

static void **block;
static size_t blocks, size;

static uint64_t longest_free(uint64_t *in_all) {
    uint64_t longest = 0, began = nanoseconds(), rested = 0;
    for (int phase = 0; phase < PHASES; phase++) {
        for (size_t i = 0; i < blocks; i++) {
            block[i] = malloc(size);
            EXPECT(block[i] != NULL, "malloc failed");
            memset(block[i], 1, size);
        }
        for (size_t i = 0; i < blocks; i++) {
            uint64_t start = nanoseconds();
            free(block[i]);
            uint64_t taken = nanoseconds() - start;
            longest = taken > longest ? taken : longest;
            if (i == blocks / 2) {
                tasks_sleep(REST_MS);
                rested += REST_MS * UINT64_C(1000000);
            }
        }
    }
    *in_all = nanoseconds() - began - rested;
    return longest;
}

static uint64_t longest_gap(uint64_t in_all) {
    uint64_t longest = 0, end = nanoseconds() + in_all;
    for (uint64_t now = nanoseconds(), before = now; now < end; before = now) {
        now = nanoseconds();
        longest = now - before > longest ? now - before : longest;
    }
    return longest;
}

static int ascending(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

static uint64_t time_of_a_piece(void) {
    uint64_t taken[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        char *piece = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(piece != MAP_FAILED, "no mapping");
        (void)madvise(piece, PIECE, MADV_NOHUGEPAGE);
        memset(piece, 1, PIECE);
        uint64_t start = nanoseconds();
        munmap(piece, PIECE);
        taken[i] = nanoseconds() - start;
    }
    qsort(taken, PIECES, sizeof *taken, ascending);
    return taken[PIECES / 2];
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: stall BLOCK-BYTES");
    size = strtoul(arguments[1], NULL, 10);
    blocks = ((size_t)MIB << 20) / size;
    block = mmap(NULL, blocks * sizeof *block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(block != MAP_FAILED, "no mapping");
    uint64_t longest = UINT64_MAX, gap = 0, piece = time_of_a_piece(), in_all;
    for (int try = 0; try < TRIES && longest > piece + gap; try++) {
        uint64_t taken = longest_free(&in_all);
        longest = taken < longest ? taken : longest;
        uint64_t waited = longest_gap(in_all);
        gap = waited > gap ? waited : gap;
    }
    EXPECT(longest <= piece + gap, "the longest free took %.1f ms; the kernel takes %.1f for 8 MiB, the machine %.1f",
           (double)longest / 1e6, (double)piece / 1e6, (double)gap / 1e6);
    printf("the longest free took %.1f ms; the kernel takes %.1f for 8 MiB, the machine %.1f\n", (double)longest / 1e6,
           (double)piece / 1e6, (double)gap / 1e6);
    return 0;
}
