/* What the library asks of the kernel, where the kernel refuses. */
#include "os.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "faults/filter.h"
#include "pattern.h"
#include "scenario.h"

static size_t resident_pages(char *at, size_t pages) {
    size_t count = 0;
    for (size_t i = 0; i < pages; i++) {
        unsigned char resident = 0;
        EXPECT(mincore(at + i * os_page_bytes(), 1, &resident) == 0, "page %zu is not mapped", i);
        count += resident & 1;
    }
    return count;
}

/* As where the process has as many mappings as it may, and one is to be split. */
static void memory_goes_where_no_mapping_does(void) {
    enum { PAGES = 16 };
    if (SCENARIO_SANITIZED) {
        expect_skip("a sanitizer unmaps by itself");
    }
    static const long calls[] = {SYS_munmap};
    static const struct filter filter = {calls, 1, false, ENOMEM};
    size_t page = os_page_bytes();
    char *at = os_map(PAGES * page, page);
    EXPECT(at != NULL, "no mapping");
    memset(at, 1, PAGES * page);
    filter_enter(&filter, false);
    os_unmap(at + page, (PAGES - 2) * page);
    size_t left = resident_pages(at, PAGES);
    EXPECT(left == 2, "%zu of %d pages are in memory, and 2 are in use", left, PAGES);
    EXPECT(at[0] == 1 && at[PAGES * page - 1] == 1, "what was in use has changed");
}

enum { HUGE_PAGE = 2 << 20, TAIL = 1 << 16 };

/* `bytes` that begin with a huge page's place, with as much again behind that is nobody's. */
static char *alone(size_t bytes) {
    char *at = os_map(2 * bytes, HUGE_PAGE);
    EXPECT(at != NULL, "no mapping");
    os_unmap(at + bytes, bytes);
    pattern_fill(at, 0, bytes, 3);
    return at;
}

static void expect_moved(const char *moved, const char *at, size_t bytes) {
    EXPECT(moved != NULL && moved != at, "it was moved from %p to %p", (const void *)at, (const void *)moved);
    size_t mismatch = pattern_mismatch(moved, bytes, 3);
    EXPECT(mismatch == SIZE_MAX, "byte %zu of %zu has changed", mismatch, bytes);
}

static void expect_nobodys(char *at, size_t bytes) {
    unsigned char resident;
    for (size_t i = 0; i < bytes; i += os_page_bytes()) {
        EXPECT(mincore(at + i, 1, &resident) != 0, "byte %zu is mapped", i);
    }
}

enum { PIECES = 5 * HUGE_PAGE + TAIL };

/* A kernel before 6.17, which moves no range beyond an edge. */
static struct {
    char *edge;
    unsigned calls, crossed;
} kernel;
void *__real_memory_hooks_mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, void *to);
void *__wrap_memory_hooks_mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, void *to);

void *__wrap_memory_hooks_mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, void *to) {
    char *from = at;
    bool crosses = from < kernel.edge && from + old_bytes > kernel.edge;
    kernel.calls++;
    kernel.crossed += crosses;
    return crosses ? NULL : __real_memory_hooks_mremap(at, old_bytes, new_bytes, flags, to);
}

/* Where one mapping ends and another begins. */
static char *split(char *at, size_t bytes, size_t edge) {
    EXPECT(madvise(at + edge, bytes - edge, MADV_DONTFORK) == 0, "one mapping is not made two");
    return at + edge;
}

/* What lies in several mappings moves all the same. The kernel is asked for no piece that crosses an edge, but for the whole at first. */
static void pieces_move(void) {
    static const size_t edges[] = {4096 * 16, TAIL, HUGE_PAGE, 2 * HUGE_PAGE + TAIL, 5 * HUGE_PAGE};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        char *at = alone(PIECES);
        kernel.edge = split(at, PIECES, edges[i]);
        kernel.calls = kernel.crossed = 0;
        char *moved = os_move_away(at, PIECES, 2 * PIECES);
        expect_moved(moved, at, PIECES);
        EXPECT(kernel.calls < 64 && kernel.crossed == 1, "%u calls, of which %u cross the edge", kernel.calls,
               kernel.crossed);
        moved[2 * PIECES - 1] = 1;
        expect_nobodys(at, PIECES);
        os_unmap(moved, 2 * PIECES);
    }
    kernel.edge = NULL;
}

/* The kernel may let it grow into addresses behind it, which are not its own. */
static void nothing_grows_where_it_is(void) {
    size_t bytes = 2 * HUGE_PAGE;
    char *at = alone(bytes), *moved = os_move_away(at, bytes, bytes + TAIL);
    EXPECT(moved != at, "it has grown where it is");
    expect_moved(moved == NULL ? at : moved, moved == NULL ? NULL : at, bytes);
    if (moved != NULL) { /* perhaps to behind where it was */
        os_unmap(moved, bytes + TAIL);
    }
    expect_nobodys(at + bytes, bytes);
}

/* Read without a system call, unless the kernel maps no vDSO. */
static void clock_is_read_in_user_space(void) {
    if (getauxval(AT_SYSINFO_EHDR) == 0) {
        return;
    }
    static const long calls[] = {SYS_clock_gettime};
    static const struct filter filter = {calls, 1, false, ENOSYS};
    filter_enter(&filter, false);
    uint64_t before = os_nanoseconds(), milliseconds = os_milliseconds();
    os_nap(20);
    EXPECT(before != 0 && os_nanoseconds() - before >= 10000000, "%llu ns in a nap of 20 ms",
           (unsigned long long)(os_nanoseconds() - before));
    EXPECT(milliseconds != 0 && os_milliseconds() > milliseconds, "%llu ms, and no more after a nap",
           (unsigned long long)milliseconds);
    struct timespec now;
    EXPECT(clock_gettime(CLOCK_MONOTONIC, &now) == 0 && (uint64_t)now.tv_sec + 1 - milliseconds / 1000 < 60,
           "%llu ms, and libc says %lld s", (unsigned long long)milliseconds, (long long)now.tv_sec);
}

int main(void) {
    clock_is_read_in_user_space();
    pieces_move();
    nothing_grows_where_it_is();
    memory_goes_where_no_mapping_does();
    return 0;
}
