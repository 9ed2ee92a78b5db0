/* What happens to the library around the program's life: start, fork.
 *
 * Order of the locks, first taken first: registry (thread caches), choice (heaps), heaps by number, bookkeeping,
 * table (mappings), arena. fork holds all of them, so that the child finds everything whole. */
#include <pthread.h>
#include <stdlib.h>

#include "arena.h"
#include "freestone.h"
#include "heap.h"
#include "large.h"
#include "message.h"
#include "options.h"
#include "thread_cache.h"

static void before_fork(void) {
    thread_cache_before_fork();
    heap_before_fork();
    large_before_fork();
    arena_before_fork();
}

static void after_fork(bool child) {
    arena_after_fork(child);
    large_after_fork(child);
    heap_after_fork(child);
    thread_cache_after_fork(child); /* last: flushes what dead threads had, which takes the other locks */
}

static void after_fork_parent(void) { after_fork(false); }

static void after_fork_child(void) { after_fork(true); }

/* Early among constructors; allocations may have been served before. */
__attribute__((constructor(101))) static void start(void) {
    const char *text = secure_getenv("FREESTONE_OPTIONS");
    if (text != NULL) {
        options_read(text);
    }
    (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    if (option_value(OPTION_IDENTIFY) != 0) {
        struct message message = {0};
        message_text(&message, freestone_version());
        message_text(&message, " serves malloc");
        message_print(&message);
    }
}
