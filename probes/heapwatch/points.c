#define _GNU_SOURCE
#include "points.h"
#include "tally.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POINTS = 512, FIRST_NS = 2000000, DEAREST = 100, NOT_SAID = -1 };

struct point {
    uint64_t at_ns;
    int64_t live;
    uint64_t asked;
    int64_t held, free, top, mapped, resident; /* bytes; NOT_SAID where nobody said */
};

static struct point points[POINTS];
static size_t count;
static uint64_t apart_ns = FIRST_NS, begun_ns;
static _Atomic uint64_t next_ns;
/* When anything happened last, and what was in use then: how the heap was while nothing happened. Relaxed: one that is
 * a little behind the other is as good. */
static _Atomic uint64_t active_ns;
static _Atomic int64_t active_live;
static _Atomic bool taking, left;
static char folder[3840];
static pid_t owner;

/* The child is a process of its own, with one thread. */
static void forked(void) {
    owner = getpid();
    begun_ns = tally_now();
    count = 0;
    apart_ns = FIRST_NS;
    atomic_store_explicit(&taking, false, memory_order_relaxed);
    atomic_store_explicit(&next_ns, begun_ns, memory_order_relaxed);
    tally_forked();
}

__attribute__((constructor)) static void begin(void) {
    const char *named = getenv("FREESTONE_HEAPWATCH");
    if (named == NULL || named[0] != '/' || strlen(named) >= sizeof folder)
        return;
    memcpy(folder, named, strlen(named) + 1);
    owner = getpid();
    begun_ns = tally_now();
    pthread_atfork(NULL, NULL, forked);
    tally_before_end(points_due);
    atomic_store_explicit(&next_ns, begun_ns, memory_order_release); /* what it needs is there */
}

static int64_t resident(void) {
    char text[128];
    const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NOT_SAID;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return NOT_SAID;
    text[length] = '\0';
    const char *second = strchr(text, ' ');
    return second == NULL ? NOT_SAID : strtoll(second, NULL, 10) * sysconf(_SC_PAGESIZE);
}

static struct point now(void) {
    const struct mallinfo2 said = mallinfo2();
    return (struct point){
        .at_ns = tally_now() - begun_ns,
        .live = tally_in_use(),
        .asked = tally_asked(),
        .held = (int64_t)(said.arena + said.hblkhd),
        .free = (int64_t)said.fordblks,
        .top = (int64_t)said.keepcost,
        .mapped = (int64_t)said.hblkhd,
        .resident = resident(),
    };
}

static void note_activity(uint64_t at_ns) {
    atomic_store_explicit(&active_ns, at_ns, memory_order_relaxed);
    atomic_store_explicit(&active_live, tally_in_use(), memory_order_relaxed);
}

static void halve(void);

/* Keep a point, and before it the beginning of the quiet time that it ends, if it ends one. */
static void keep(const struct point *point) {
    const uint64_t quiet_ns = atomic_load_explicit(&active_ns, memory_order_relaxed);
    if (quiet_ns > begun_ns && point->at_ns > quiet_ns - begun_ns + apart_ns) {
        if (count == POINTS)
            halve();
        points[count] = *point; /* the kernel and the C library had no reason to change anything since */
        points[count].at_ns = quiet_ns - begun_ns;
        points[count++].live = atomic_load_explicit(&active_live, memory_order_relaxed);
    }
    if (count == POINTS)
        halve();
    points[count++] = *point;
}

/* Half as many, twice as far apart; of two the one with more in use stays. */
static void halve(void) {
    for (size_t i = 0; i < count / 2; i++)
        points[i] = points[2 * i].live > points[2 * i + 1].live ? points[2 * i] : points[2 * i + 1];
    count /= 2;
    apart_ns *= 2;
}

void points_due(void) {
    const uint64_t due = atomic_load_explicit(&next_ns, memory_order_acquire);
    if (due == 0)
        return;
    const uint64_t before = tally_now();
    if (before < due || atomic_exchange_explicit(&taking, true, memory_order_acquire)) {
        note_activity(before);
        return; /* acquire and release of `taking`: one thread at a time has the points */
    }
    if (owner == getpid()) {
        const struct point point = now();
        keep(&point);
        note_activity(before);
        /* The C library walks its lists of free blocks: where that takes long, it is asked seldom. */
        const uint64_t took = tally_now() - before, pause = DEAREST * took;
        atomic_store_explicit(&next_ns, before + took + (pause > apart_ns ? pause : apart_ns), memory_order_relaxed);
    }
    atomic_store_explicit(&taking, false, memory_order_release);
}

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

static void write_rows(FILE *out, const char *name, const _Atomic uint64_t *counts, const _Atomic uint64_t *bytes,
                       unsigned rows) {
    for (unsigned row = 0; row < rows; row++) {
        const uint64_t calls = atomic_load_explicit(&counts[row], memory_order_relaxed);
        if (calls == 0)
            continue;
        fprintf(out, "%s %u %llu", name, row, (unsigned long long)calls);
        if (bytes != NULL)
            fprintf(out, " %llu", (unsigned long long)atomic_load_explicit(&bytes[row], memory_order_relaxed));
        fputc('\n', out);
    }
}

static void write_count(FILE *out, const char *name, const _Atomic uint64_t *counter) {
    fprintf(out, "%s %llu\n", name, (unsigned long long)atomic_load_explicit(counter, memory_order_relaxed));
}

static void write_all(FILE *out, struct tally *sum, const struct point *last, int64_t in_use, unsigned heaps,
                      int64_t trimmed) {
    fprintf(out, "heapwatch 1 %d\n", (int)owner);
    fprintf(out, "wall %llu\n", (unsigned long long)last->at_ns);
    write_count(out, "mallocs", &sum->mallocs);
    write_count(out, "callocs", &sum->callocs);
    write_count(out, "frees", &sum->frees);
    write_count(out, "asked", &sum->asked);
    write_count(out, "cleared", &sum->cleared);
    write_count(out, "reallocs", &sum->reallocs);
    write_count(out, "moved", &sum->moved);
    write_count(out, "copied", &sum->copied);
    write_count(out, "small_steps", &sum->small_steps);
    write_count(out, "looked", &sum->looked);
    write_count(out, "waited", &sum->waited);
    write_count(out, "waited_ns", &sum->waited_ns);
    write_count(out, "sampled_frees", &sum->sampled_frees);
    write_count(out, "remote_frees", &sum->remote_frees);
    fprintf(out, "threads %u\n", tally_most_threads());
    const int64_t peak = tally_most() > in_use ? tally_most() : in_use;
    fprintf(out, "in_use %lld %lld\n", (long long)in_use, (long long)peak);
    fprintf(out, "arenas %u\n", heaps);
    fprintf(out, "trimmed %lld\n", (long long)trimmed);
    int knobs[TALLY_KNOBS][2];
    const size_t turned = tally_knobs(knobs);
    for (size_t i = 0; i < turned; i++)
        fprintf(out, "mallopt %d %d\n", knobs[i][0], knobs[i][1]);
    write_rows(out, "size", sum->size_calls, sum->size_bytes, TALLY_SIZES);
    write_rows(out, "lifetime", sum->lifetimes, NULL, TALLY_LIFETIMES);
    for (size_t i = 0; i < count; i++) {
        const struct point *each = i + 1 < count ? &points[i] : last; /* the last one knows what was pending */
        fprintf(out, "point %llu %lld %llu %lld %lld %lld %lld %lld\n", (unsigned long long)each->at_ns,
                (long long)each->live, (unsigned long long)each->asked, (long long)each->held, (long long)each->free,
                (long long)each->top, (long long)each->mapped, (long long)each->resident);
    }
    fprintf(out, "end\n");
}

void points_leave(void) {
    if (folder[0] == '\0' || owner != getpid() || atomic_exchange_explicit(&left, true, memory_order_relaxed))
        return;
    /* For good: no other thread takes a point any more. One that is at it is waited for, but not for ever. */
    for (unsigned i = 0; atomic_exchange_explicit(&taking, true, memory_order_acquire); i++) {
        if (i == 1000)
            return;
        usleep(1000);
    }
    static struct tally sum;
    tally_sum(&sum);
    struct point last = now();
    keep(&last);
    last.live = tally_in_use() + sum.pending;
    const int64_t in_use = last.live;
    const unsigned heaps = arenas();
    const int64_t before = resident();
    malloc_trim(0);
    const int64_t after = resident();
    char path[sizeof folder + 64];
    snprintf(path, sizeof path, "%s/%d-%llu", folder, (int)owner, (unsigned long long)begun_ns);
    FILE *out = fopen(path, "wxe");
    if (out == NULL)
        return;
    write_all(out, &sum, &last, in_use, heaps, before == NOT_SAID || after == NOT_SAID ? NOT_SAID : before - after);
    fclose(out);
}
