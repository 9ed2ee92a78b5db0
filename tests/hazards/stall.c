/* The longest call of free in a program that fills and drops memory in phases, in processor time of its thread, so that others
 * who run do not count. It may be as much as the kernel takes to give back 8 MiB, measured here. The best of three.
 *
 *   stall BLOCK-BYTES */
#include "hazard.h"

enum { MIB = 512, PHASES = 2, REST_MS = 1300, PIECE = 8 << 20, PIECES = 21, TRIES = 3 };

static void **block;
static size_t blocks, size;

static uint64_t processor_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t longest_free(void) {
    uint64_t longest = 0;
    for (int phase = 0; phase < PHASES; phase++) {
        for (size_t i = 0; i < blocks; i++) {
            block[i] = malloc(size);
            EXPECT(block[i] != NULL, "malloc failed");
            memset(block[i], 1, size);
        }
        for (size_t i = 0; i < blocks; i++) {
            uint64_t start = processor_ns();
            free(block[i]);
            uint64_t taken = processor_ns() - start;
            longest = taken > longest ? taken : longest;
            if (i == blocks / 2) {
                tasks_sleep(REST_MS);
            }
        }
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
        uint64_t start = processor_ns();
        munmap(piece, PIECE);
        taken[i] = processor_ns() - start;
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
    uint64_t longest = UINT64_MAX, piece = time_of_a_piece();
    for (int try = 0; try < TRIES && longest > piece; try++) {
        uint64_t taken = longest_free();
        longest = taken < longest ? taken : longest;
    }
    EXPECT(longest <= piece, "the longest free took %.2f ms; the kernel takes %.2f for 8 MiB", (double)longest / 1e6,
           (double)piece / 1e6);
    printf("the longest free took %.2f ms; the kernel takes %.2f for 8 MiB\n", (double)longest / 1e6,
           (double)piece / 1e6);
    return 0;
}
