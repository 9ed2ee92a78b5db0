#define _GNU_SOURCE
#include "points.h"
#include "libc_heap.h"
#include "tally.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_NS = 2000000, DEAREST = 50 };

static uint64_t apart_ns = FIRST_NS;
static _Atomic uint64_t next_ns;
static _Atomic bool taking, left;

static void thread_ends(void);
static char folder[3840];
static pid_t owner;

/* A curve with a hole would be read as a flat one: where the C library once could not say how large its heap is, there is none. Written and
 * read by whoever has the points. */
static bool unsaid;

static void opened(void) {
    owner = getpid();
    state.pid = owner;
    state.begun_ns = tally_now();
    state_share(folder);
    atomic_store_explicit(&next_ns, state.begun_ns, memory_order_release); /* what it needs is there */
}

/* The child is a process of its own, with one thread. */
static void forked(void) {
    if (!state_keep())
        return; /* no memory: it writes into its parent's, until its end */
    tally_forked();
    atomic_store_explicit(&state.count, 0, memory_order_relaxed);
    apart_ns = FIRST_NS;
    unsaid = false;
    atomic_store_explicit(&taking, false, memory_order_relaxed);
    opened();
}

__attribute__((constructor)) static void begin(void) {
    const char *named = getenv("FREESTONE_HEAPWATCH");
    if (named == NULL || named[0] != '/' || strlen(named) >= sizeof folder)
        return;
    memcpy(folder, named, strlen(named) + 1);
    pthread_atfork(NULL, NULL, forked);
    tally_before_end(thread_ends);
    opened();
}

static int64_t resident(void) {
    char text[128];
    const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return STATE_NOT_SAID;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return STATE_NOT_SAID;
    text[length] = '\0';
    const char *second = strchr(text, ' ');
    return second == NULL ? STATE_NOT_SAID : strtoll(second, NULL, 10) * sysconf(_SC_PAGESIZE);
}

/* False where nobody says how large the heap is; what the watcher counts itself is there all the same. */
static bool now(struct point *point) {
    struct libc_heap heap = {STATE_NOT_SAID, STATE_NOT_SAID, STATE_NOT_SAID, STATE_NOT_SAID};
    if (!unsaid && !libc_heap_read(&heap)) {
        unsaid = true;
        atomic_store_explicit(&state.count, 0, memory_order_relaxed);
    }
    *point = (struct point){
        .at_ns = tally_now() - state.begun_ns,
        .live = tally_in_use(),
        .asked = tally_asked(),
        .held = heap.held,
        .free = heap.free,
        .top = heap.top,
        .mapped = heap.mapped,
        .resident = resident(),
    };
    return !unsaid;
}

static void note_activity(uint64_t at_ns) {
    atomic_store_explicit(&state.active_ns, at_ns, memory_order_relaxed);
    atomic_store_explicit(&state.active_live, tally_in_use(), memory_order_relaxed);
}

/* Half as many, twice as far apart; of two the one with more in use stays. */
static void halve(void) {
    struct point *points = state.points;
    for (size_t i = 0; i < STATE_POINTS / 2; i++)
        points[i] = points[2 * i].live > points[2 * i + 1].live ? points[2 * i] : points[2 * i + 1];
    atomic_store_explicit(&state.count, STATE_POINTS / 2, memory_order_relaxed);
    apart_ns *= 2;
}

static void add(const struct point *point) {
    if (atomic_load_explicit(&state.count, memory_order_relaxed) == STATE_POINTS)
        halve();
    const uint32_t count = atomic_load_explicit(&state.count, memory_order_relaxed);
    state.points[count] = *point;
    atomic_store_explicit(&state.count, count + 1, memory_order_relaxed);
}

/* Keep a point, and before it the beginning of the quiet time that it ends, if it ends one. */
static void keep(const struct point *point) {
    const uint64_t quiet_ns = atomic_load_explicit(&state.active_ns, memory_order_relaxed);
    if (quiet_ns > state.begun_ns && point->at_ns > quiet_ns - state.begun_ns + apart_ns) {
        struct point quiet = *point; /* the kernel and the C library had no reason to change anything since */
        quiet.at_ns = quiet_ns - state.begun_ns;
        quiet.live = atomic_load_explicit(&state.active_live, memory_order_relaxed);
        add(&quiet);
    }
    add(point);
}

/* Processor time of this thread, in nanoseconds: waiting for others' locks, or for a processor, is no work of ours. */
static uint64_t worked(void) {
    struct timespec spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec;
}

/* Takes a point where one is due, and notes activity where none is. */
static void look(bool is_activity) {
    const uint64_t due = atomic_load_explicit(&next_ns, memory_order_acquire);
    if (due == 0)
        return;
    const uint64_t before = tally_now();
    if (before < due || atomic_exchange_explicit(&taking, true, memory_order_acquire)) {
        if (is_activity)
            note_activity(before);
        return; /* acquire and release of `taking`: one thread at a time has the points */
    }
    if (owner == getpid()) {
        const uint64_t worked_before = worked();
        /* It reads a file, and malloc is no place where a thread may be cancelled: its caller holds locks. */
        int cancellable;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellable);
        struct point point;
        const bool told = now(&point);
        pthread_setcancelstate(cancellable, NULL);
        if (told)
            keep(&point);
        note_activity(before);
        /* The C library walks its lists of free blocks: where that takes long, it is asked seldom. */
        const uint64_t pause = DEAREST * (worked() - worked_before);
        atomic_store_explicit(&next_ns, tally_now() + (pause > apart_ns ? pause : apart_ns), memory_order_relaxed);
    }
    atomic_store_explicit(&taking, false, memory_order_release);
}

void points_due(void) { look(true); }

/* A thread that ends asks for nothing, and how long it had been quiet before is what a diagnosis wants to know. */
static void thread_ends(void) { look(false); }

static unsigned arenas(void) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL)
        return 0;
    const int told = malloc_info(0, stream);
    fclose(stream);
    unsigned found = 0;
    for (const char *at = text; told == 0 && at != NULL && (at = strstr(at, "<heap nr=")) != NULL; at++)
        found++;
    free(text);
    return found;
}

void points_leave(void) {
    if (tally_depth > 0)
        return; /* a signal's handler ends the process, from within malloc: what is in the file has to do */
    if (folder[0] == '\0' || owner != getpid() || atomic_exchange_explicit(&left, true, memory_order_relaxed))
        return;
    /* For good: no other thread takes a point any more. One that is at it is waited for, but not for ever. */
    for (unsigned i = 0; atomic_exchange_explicit(&taking, true, memory_order_acquire); i++) {
        if (i == 1000)
            return;
        usleep(1000);
    }
    struct point last;
    const bool told = now(&last);
    last.live += tally_pending();
    if (told)
        keep(&last);
    state.end_live = last.live;
    state.arenas = arenas();
    const int64_t before = resident();
    malloc_trim(0);
    const int64_t after = resident();
    state.trimmed = before == STATE_NOT_SAID || after == STATE_NOT_SAID ? STATE_NOT_SAID : before - after;
    atomic_store_explicit(&state.left, 1, memory_order_release); /* what was known at the end is there */
}
