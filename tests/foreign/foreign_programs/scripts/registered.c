/* A cache of registered memory. UCX hooks the calls that return memory to the kernel or move it, and each event ends the registrations there. A
 * registered page lies in a pipe, as a network card would hold it, whatever becomes of its address. Prints how many pages the address and the
 * pipe do not share, though no event was seen: 0. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <ucm/api/ucm.h>
#include <unistd.h>

enum { BLOCKS = 600, PAGE_MOST = 65536 };

static struct {
    char *volatile page; /* NULL once the registration has ended */
    int pipe[2];
} registered[BLOCKS];
static char *block[BLOCKS];
static volatile int events;

static void memory_lost(ucm_event_type_t type, ucm_event_t *event, void *unused) {
    (void)type, (void)unused;
    const char *from = event->vm_unmapped.address, *to = from + event->vm_unmapped.size;
    events = 1;
    for (size_t i = 0; i < BLOCKS; i++) {
        if (registered[i].page >= from && registered[i].page < to) {
            registered[i].page = NULL;
        }
    }
}

static size_t size_of(size_t number) {
    static const size_t sizes[] = {20000, 300000, 60000, 9000, 1 << 20, 40000};
    return number == 0 ? (size_t)150 << 20 : sizes[number % (sizeof sizes / sizeof *sizes)];
}

static void take(unsigned char value) {
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(size_of(i));
        if (block[i] == NULL) {
            exit(3);
        }
        memset(block[i], value + (int)(i % 50), size_of(i));
    }
}

static void register_all(size_t page) {
    for (size_t i = 0; i < BLOCKS; i++) {
        char *first = block[i] + (page - (uintptr_t)block[i] % page) % page;
        struct iovec whole = {first, page};
        if (vmsplice(registered[i].pipe[1], &whole, 1, 0) != (ssize_t)page) {
            exit(4);
        }
        registered[i].page = first;
    }
}

static int count_stale(size_t page, int memory) {
    static char held[PAGE_MOST], there[PAGE_MOST];
    int stale = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        if (read(registered[i].pipe[0], held, page) != (ssize_t)page) {
            exit(5);
        }
        char *at = registered[i].page;
        registered[i].page = NULL;
        bool gone = at != NULL && pread(memory, there, page, (off_t)(uintptr_t)at) != (ssize_t)page;
        stale += at != NULL && (gone || memcmp(held, there, page) != 0);
    }
    return stale;
}

int main(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int memory = open("/proc/self/mem", O_RDONLY), stale = 0;
    if (memory < 0 || page > PAGE_MOST || ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED, 1000, memory_lost, NULL) != 0) {
        return 2;
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (pipe(registered[i].pipe) != 0) {
            return 6;
        }
    }
    for (int turn = 0; turn < 4; turn++) {
        take(1);
        register_all(page);
        for (size_t i = 0; i < BLOCKS; i++) {
            if (turn % 2 != 0 && i % 3 == 0) {
                block[i] = realloc(block[i], 3 * size_of(i));
            }
            free(block[i]);
        }
        if (turn < 2) {
            malloc_trim(0);
        } else {
            usleep(2500000); /* as long as memory is kept by those that return it later */
        }
        take(101);
        stale += count_stale(page, memory);
        for (size_t i = 0; i < BLOCKS; i++) {
            free(block[i]);
        }
    }
    printf("events: %s, stale pages: %d\n", events ? "some" : "none", stale);
    return 0;
}
