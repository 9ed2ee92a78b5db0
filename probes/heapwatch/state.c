#define _GNU_SOURCE
#include "state.h"
#include "tally.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Tallies that have a place in the file from the beginning. */
enum { FIRST_TALLIES = 32 };

struct state state;

static char path[4096];
static bool is_shared;

_Static_assert(offsetof(struct state, points) == 376, "as heap_watch.py reads it");
_Static_assert(offsetof(struct tally, pending) == (14 + 2 * STATE_SIZES + STATE_LIFETIMES) * sizeof(uint64_t),
               "counts come first");

static size_t tallies_end(uint32_t tallies) { return offsetof(struct state, tallies) + tallies * sizeof(struct tally); }

static size_t used_bytes(void) {
    const uint32_t claimed = atomic_load_explicit(&state.claimed, memory_order_relaxed);
    return tallies_end(claimed > FIRST_TALLIES ? claimed : FIRST_TALLIES);
}

static bool is_written(int file, const void *bytes, size_t size, off_t at) {
    for (size_t done = 0; done < size;) {
        const ssize_t written = pwrite(file, (const char *)bytes + done, size - done, at + (off_t)done);
        if (written <= 0)
            return false;
        done += (size_t)written;
    }
    return true;
}

void state_share(const char *folder) {
    struct rlimit files;
    if ((uintptr_t)&state % (uintptr_t)sysconf(_SC_PAGESIZE) != 0 || getrlimit(RLIMIT_FSIZE, &files) != 0 ||
        files.rlim_cur < sizeof state)
        return;
    memcpy(state.magic, "heapwat2", sizeof state.magic);
    state.points_at = offsetof(struct state, points);
    state.tallies_at = offsetof(struct state, tallies);
    state.point_bytes = sizeof(struct point);
    state.tally_bytes = sizeof(struct tally);
    const int length =
        snprintf(path, sizeof path, "%s/%d-%llu", folder, (int)getpid(), (unsigned long long)tally_now());
    if (length < 0 || (size_t)length >= sizeof path)
        return;
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return;
    is_shared = is_written(file, &state, used_bytes(), 0) && ftruncate(file, sizeof state) == 0 &&
                mmap(&state, sizeof state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    close(file);
    if (!is_shared)
        unlink(path);
}

bool state_keep(void) {
    if (!is_shared)
        return true;
    void *copy = mmap(NULL, sizeof state, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return false;
    memcpy(copy, &state, used_bytes());
    is_shared = false;
    return mremap(copy, sizeof state, sizeof state, MREMAP_MAYMOVE | MREMAP_FIXED, &state) != MAP_FAILED;
}

/* The file is opened anew: one that was kept open might meanwhile be closed by the program, and be another. */
bool state_reserve(uint32_t tally) {
    static const struct tally nothing;
    if (!is_shared || tally < FIRST_TALLIES)
        return true;
    const int error = errno, file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    const bool reserved = file >= 0 && is_written(file, &nothing, sizeof nothing, (off_t)tallies_end(tally));
    if (file >= 0)
        close(file);
    errno = error;
    return reserved;
}
