/* What the library asks of the kernel, where the kernel refuses. */
#include "os.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "faults/filter.h"
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

int main(void) {
    memory_goes_where_no_mapping_does();
    return 0;
}
