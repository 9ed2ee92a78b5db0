/* A limit is used up to the last page, also by mappings of the program's own, and nothing at the heap's end is free: free blocks between blocks in use
 * serve a larger one all the same.
 *
 *   used_up_limit address-space | data */
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { MIB = 1 << 20, LIMIT_MIB = 256, BLOCKS = 60, EACH_MIB = 2, WANTED_MIB = 40 };

static void fill_by_mappings(size_t bytes) {
    while (mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
    }
}

int main(int count, char **argument) {
    require_serving();
    bool data = count > 1 && strcmp(argument[1], "data") == 0;
    struct rlimit limit = {(rlim_t)LIMIT_MIB * MIB, (rlim_t)LIMIT_MIB * MIB};
    EXPECT(setrlimit(data ? RLIMIT_DATA : RLIMIT_AS, &limit) == 0, "no limit");
    char *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = unseen(malloc(EACH_MIB * MIB));
        EXPECT(block[i] != NULL, "no block %zu", i);
        memset(block[i], 1, EACH_MIB * MIB);
    }
    for (size_t bytes = 64 * MIB; bytes >= 4096; bytes /= 2) {
        fill_by_mappings(bytes);
    }
    for (size_t bytes = 16 * MIB; bytes >= 16; bytes /= 2) {
        while (unseen(malloc(bytes)) != NULL) {
        }
    }
    fill_by_mappings(4096);
    for (size_t i = 0; i < BLOCKS; i += 2) {
        free(block[i]);
    }
    char *wanted = unseen(malloc(WANTED_MIB * MIB));
    EXPECT(wanted != NULL, "%d MiB are refused, and %d are free", WANTED_MIB, BLOCKS / 2 * EACH_MIB);
    memset(wanted, 2, WANTED_MIB * MIB);
    return 0;
}
