/* A program that closes pages of blocks that it owns, and opens them in its own handler, as databases and collectors of garbage do to learn which pages
 * were written: every such fault is the program's, whether the block is guarded or not, and nothing is said.
 *
 *   write_barrier PAGES     of each block */
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { BLOCKS = 400, CHUNK = 10, PAGES_MOST = 100 };

static char *block;
static size_t page, size;
static volatile unsigned heard[PAGES_MOST];

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    size_t at = (size_t)((char *)info->si_addr - block);
    if (at >= size) {
        _exit(2);
    }
    heard[at / page]++;
    (void)mprotect(block + at - at % page, page, PROT_READ | PROT_WRITE);
}

static bool is_guarded_more(void) {
    static size_t before;
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    bool more = stats.guarded > before;
    before = stats.guarded;
    return more;
}

int main(int count, char **arguments) {
    require_serving();
    page = (size_t)sysconf(_SC_PAGESIZE);
    size = count > 1 ? strtoul(arguments[1], NULL, 10) * page : 0;
    EXPECT(size > 0 && size <= PAGES_MOST * page, "usage: write_barrier PAGES");
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
    unsigned guarded = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (i % CHUNK == 0) {
            (void)usleep(20000); /* some more may be guarded */
        }
        (void)is_guarded_more();
        block = unseen(memalign(page, size));
        EXPECT(block != NULL, "no memory");
        guarded += is_guarded_more();
        memset(block, 1, size);
        EXPECT(mprotect(block, size, PROT_READ) == 0, "it cannot be closed");
        for (size_t at = 5; at < size; at += page) {
            unsigned before = heard[at / page];
            *(volatile char *)(block + at) = 2;
            EXPECT(heard[at / page] == before + 1, "block %u: the write to byte %zu was heard of %u times", i, at,
                   heard[at / page] - before);
        }
        free(block);
    }
    const char *options = getenv("FREESTONE_OPTIONS");
    EXPECT(guarded >= 20 || options == NULL || strncmp(options, "guard", 5) != 0, "only %u blocks were guarded",
           guarded);
    return 0;
}
