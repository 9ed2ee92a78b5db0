/* Blocks for which huge pages are asked for and blocks for which not, by turns, large ones shrunk to little, memory
 * returned in between: each change of mind about a piece of memory splits a mapping, and the kernel allows a process
 * some 65,000. They stay few, since it is the program's own mmap that would fail.
 *
 *   huge_by_turns ROUNDS|soak BLOCKS      BLOCKS: held at the same time */
#include <sys/mman.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "soak.h"

enum { SHRUNK_MOST = 6000, TABLE_MOST = 4000, MORE_MOST = 2000, LOOK_EVERY = 100 };

static char *shrunk[SHRUNK_MOST], *table[TABLE_MOST];

static size_t mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "re");
    EXPECT(maps != NULL, "/proc/self/maps cannot be opened");
    static char text[1 << 16];
    size_t count = 0, length;
    while ((length = fread(text, 1, sizeof text, maps)) > 0) {
        for (size_t i = 0; i < length; i++) {
            count += text[i] == '\n';
        }
    }
    fclose(maps);
    return count;
}

/* Where huge pages come slowly the heap does without them for a while, and nothing would be tested: these have just
 * been the kernel's. */
static void bring_in_huge_pages(void) {
    enum { BYTES = 1 << 30 };
    char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(at != MAP_FAILED, "no mapping");
    if (madvise(at, BYTES, MADV_HUGEPAGE) == 0) {
        for (size_t page = 0; page < BYTES; page += 1 << 20) {
            at[page] = 1;
        }
    }
    munmap(at, BYTES);
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 3, "usage: huge_by_turns ROUNDS|soak BLOCKS");
    size_t before = mappings(), most = 0;
    size_t blocks = strtoul(arguments[2], NULL, 10);
    EXPECT(blocks > 0 && blocks <= TABLE_MOST, "BLOCKS is at most %d", TABLE_MOST);
    uint64_t random = 1;
    bring_in_huge_pages();
    struct soak soak = soak_begin(arguments[1]);
    for (size_t r = 0; soak_goes_on(&soak, r); r++) {
        size_t t = pattern_below(&random, blocks), s = pattern_below(&random, SHRUNK_MOST);
        size_t size = ((size_t)2 << 20) + pattern_below(&random, (size_t)6 << 20);
        free(table[t]);
        table[t] = r % 2 == 0 ? calloc(1, size) : malloc(size);
        EXPECT(table[t] != NULL, "no block");
        table[t][size / 2] = 1;
        if (shrunk[s] != NULL && r % 8 != 0) {
            free(shrunk[s]);
            shrunk[s] = NULL;
        } else if (shrunk[s] == NULL) {
            char *large = malloc(((size_t)4 << 20) + pattern_below(&random, (size_t)4 << 20));
            EXPECT(large != NULL, "no block");
            large[1 << 20] = 1;
            shrunk[s] = realloc(large, 300000 + pattern_below(&random, 400000));
            EXPECT(shrunk[s] != NULL, "no block");
        }
        if (r % 40 == 0) {
            (void)malloc_trim(0);
        }
        if (r % LOOK_EVERY == 0) {
            size_t now = mappings();
            most = now > most ? now : most;
            EXPECT(now < before + MORE_MOST, "%zu mappings in round %zu, of %zu at the start", now, r, before);
        }
    }
    printf("%zu mappings at most, %zu at the start\n", most, before);
    return 0;
}
