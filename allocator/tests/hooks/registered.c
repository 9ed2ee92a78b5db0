#include "registered.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/uio.h>

#include "expect.h"

enum { PAGES_MOST = 4096, IN_PIPE = 16, PAGE_MOST = 65536 };

static struct {
    _Atomic(char *) page; /* NULL once it has ended */
    int pipe[2];          /* of the first of IN_PIPE, for all of them */
} registrations[PAGES_MOST];
static size_t count;

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static int *pipe_of(size_t registration) {
    int *ends = registrations[registration - registration % IN_PIPE].pipe;
    if (ends[1] == 0 && pipe2(ends, O_CLOEXEC) != 0) {
        expect_skip("no pipe");
    }
    return ends;
}

void registered_page(char *page) {
    EXPECT(count < PAGES_MOST && (uintptr_t)page % page_bytes() == 0, "%p is registered as the %zuth page",
           (void *)page, count);
    struct iovec whole = {page, page_bytes()};
    if (vmsplice(pipe_of(count)[1], &whole, 1, SPLICE_F_NONBLOCK) != (ssize_t)page_bytes()) {
        expect_skip("pipes hold no pages here");
    }
    atomic_store(&registrations[count++].page, page);
}

void registered_lost(const char *at, size_t bytes) {
    for (size_t i = 0; i < count; i++) {
        char *page = atomic_load(&registrations[i].page);
        if (page != NULL && (uintptr_t)page + page_bytes() > (uintptr_t)at && (uintptr_t)page < (uintptr_t)at + bytes) {
            atomic_store(&registrations[i].page, NULL);
        }
    }
}

size_t registered_check(void) {
    static char held[PAGE_MOST], there[PAGE_MOST];
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    EXPECT(memory >= 0, "/proc/self/mem cannot be opened");
    size_t valid = 0;
    for (size_t i = 0; i < count; i++) {
        ssize_t length = read(pipe_of(i)[0], held, page_bytes());
        EXPECT(length == (ssize_t)page_bytes(), "the pipe has %zd bytes of page %zu", length, i);
        char *page = atomic_exchange(&registrations[i].page, NULL);
        if (page == NULL) {
            continue;
        }
        valid++;
        length = pread(memory, there, page_bytes(), (off_t)(uintptr_t)page);
        EXPECT(length == (ssize_t)page_bytes(), "page %zu at %p is gone, and no hook has seen it", i, (void *)page);
        EXPECT(memcmp(held, there, page_bytes()) == 0, "another page %zu lies at %p, and no hook has seen that", i,
               (void *)page);
    }
    close(memory);
    count = 0;
    return valid;
}
