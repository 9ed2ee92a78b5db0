/* A process at its limit: nothing is left that the library could still give. */
#ifndef FREESTONE_TESTS_USE_UP_H
#define FREESTONE_TESTS_USE_UP_H

#include <sys/resource.h>

#include "../entry.h"
#include "../expect.h"

/* Sets limits that are passed already, and takes blocks of each size down to the least. */
static inline void use_up(rlim_t bytes) {
    struct rlimit limit = {bytes, bytes};
    EXPECT(setrlimit(RLIMIT_DATA, &limit) == 0 && setrlimit(RLIMIT_AS, &limit) == 0, "no limit");
    for (size_t size = 1 << 30; size > 0; size /= 2) {
        while (unseen(malloc(size)) != NULL) {
        }
    }
}

#endif
