/* Moves a block of several mappings. The kernel refuses one or two calls of the move, or calls by chance, and another thread maps the addresses that the
 * block has left. Then all of the block has moved, or none. No byte of it has changed, and no byte of the other thread's mapping. */
#include "os.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "faults/gate.h"
#include "pattern.h"
#include "scenario.h"

enum { PAGES = 9, SCRIPT = 64, SEED = 3, OTHER = 9 };

/* Which of the next calls are refused. Behind its end none is. */
static struct {
    bool refused[SCRIPT];
    unsigned calls;
} script;

/* The block's first page, and the call before which another thread maps a page there if that has become nobody's. */
static struct {
    char *at;
    unsigned before;
    bool mapped;
} other;

static void map_beside(void) {
    size_t page = os_page_bytes();
    unsigned calls = script.calls;
    script.calls = SCRIPT; /* these calls pass */
    if (other.at != NULL && os_map_at(other.at, page) == OS_DONE) {
        memset(other.at, OTHER, page);
        other.mapped = true;
    }
    script.calls = calls;
}

static int decide(long number, const long arguments[6]) {
    (void)arguments;
    unsigned call = script.calls++;
    if (call >= SCRIPT) {
        return 0;
    }
    if (call == other.before) {
        map_beside();
    }
    if (!script.refused[call]) {
        return 0;
    }
    static const int errors[] = {EINVAL, EAGAIN, ENOMEM};
    return number == SYS_madvise ? errors[call % 3] : ENOMEM;
}

/* Neighbours differ in one flag, so that they are not joined. */
static char *in_mappings_of(size_t pages_each) {
    size_t page = os_page_bytes();
    char *at = os_map(2 * PAGES * page, page);
    EXPECT(at != NULL, "no mapping");
    os_unmap(at + PAGES * page, PAGES * page);
    for (size_t i = pages_each; i < PAGES; i += 2 * pages_each) {
        size_t pages = bits_min(pages_each, PAGES - i);
        EXPECT(madvise(at + i * page, pages * page, MADV_DONTFORK) == 0, "one mapping is not made two");
    }
    pattern_fill(at, 0, PAGES * page, SEED);
    return at;
}

/* The first byte of another thread's page that has changed, or SIZE_MAX. */
static size_t changed_of_other(const char *at) {
    for (size_t i = 0; i < os_page_bytes(); i++) {
        if (at[i] != OTHER) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Whether it has moved. */
static bool move(size_t pages_each, const char *name, unsigned number) {
    size_t bytes = PAGES * os_page_bytes();
    script.calls = SCRIPT;
    char *at = in_mappings_of(pages_each);
    other.at = at;
    other.before = number % SCRIPT;
    other.mapped = false;
    script.calls = 0;
    char *moved = os_move_away(at, bytes, 2 * bytes);
    script.calls = SCRIPT;
    char *there = moved == NULL ? at : moved;
    EXPECT(there != at || moved == NULL, "%s %u: it has grown where it is", name, number);
    size_t mismatch = pattern_mismatch(there, bytes, SEED);
    EXPECT(mismatch == SIZE_MAX, "%s %u: byte %zu has changed, and it has %s", name, number, mismatch,
           moved == NULL ? "not moved" : "moved");
    os_unmap(there, moved == NULL ? bytes : 2 * bytes);
    if (other.mapped) {
        mismatch = changed_of_other(at);
        EXPECT(mismatch == SIZE_MAX, "%s %u: byte %zu of the other thread's page has changed", name, number, mismatch);
        os_unmap(at, os_page_bytes());
    }
    return moved != NULL;
}

static void refuse_by_chance(size_t pages_each) {
    enum { SCRIPTS = 600 };
    unsigned moved = 0;
    for (unsigned i = 0; i < SCRIPTS; i++) {
        uint64_t random = i;
        for (unsigned call = 0; call < SCRIPT; call++) {
            script.refused[call] = pattern_random(&random) % 4 <= i % 3;
        }
        moved += move(pages_each, "script", i);
    }
    EXPECT(moved > 0 && moved < SCRIPTS, "%u of %d have moved", moved, SCRIPTS);
}

static void refuse_two(size_t pages_each) {
    for (unsigned pair = 0; pair < SCRIPT * SCRIPT; pair++) {
        for (unsigned call = 0; call < SCRIPT; call++) {
            script.refused[call] = call == pair / SCRIPT || call == pair % SCRIPT;
        }
        (void)move(pages_each, "pair", pair);
    }
}

int main(void) {
    static const long calls[] = {SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise};
    script.calls = SCRIPT;
    gate_close(calls, sizeof calls / sizeof *calls, false, decide);
    for (size_t pages_each = 1; pages_each <= PAGES; pages_each += 2) {
        refuse_two(pages_each);
        refuse_by_chance(pages_each);
    }
    return 0;
}
