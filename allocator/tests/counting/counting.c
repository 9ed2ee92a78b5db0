/* What the counted library did between counting_begin and counting_end, written as text.
 *
 * The program lets one thread go on at a time and says which (counting_turn), so all of this is plain data. Of each line that an atomic
 * touches it is known who may have a copy: a touch by who has none, or a change by who is not its only holder, makes the line travel.
 * Where several threads run at once nothing here may be called. */
#include "counting.h"

#undef __atomic_load_n

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT ((void)0)
#endif

enum {
    SITES = 1 << 10,
    LINES = 1 << 20,
    LOCKS = 1 << 9,
    NAMES = 16,
    EVENTS = 1 << 22,
    THREADS_MOST = 64,
    LINE_BITS = 6
};

#define EXPORTED __attribute__((visibility("default")))

struct site {
    const char *name;
    uint64_t loads, stores, changes, travels;
};

struct line {
    uintptr_t number;
    uint64_t holders; /* bit t: thread t may have a copy */
};

struct lock_count {
    const volatile void *lock;
    const char *name;
    uint64_t taken, handovers;
    unsigned last; /* its holder */
};

struct call_count {
    const char *name;
    uint64_t made;
};

struct event {
    uint32_t call; /* of the thread */
    uint16_t lock;
    uint8_t thread;
    uint8_t takes;
};

static struct {
    bool on;
    const char *holds; /* of locks of this name instructions are counted, and nothing else */
    unsigned thread;
    uint32_t call;
    uint64_t lost; /* events without a place */
    uint64_t count;
    struct site sites[SITES];
    struct lock_count locks[LOCKS];
    struct call_count calls[NAMES];
    struct line *lines;
    struct event *events;
} counting;

static unsigned hash(uintptr_t key, unsigned places) {
    return (unsigned)((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (places - 1);
}

static void full(const char *what) {
    (void)fprintf(stderr, "counting: too many %s; make room in counting.c\n", what);
    abort();
}

static struct site *site_of(const char *name) {
    for (unsigned i = 0, at = hash((uintptr_t)name, SITES); i < SITES; i++, at = (at + 1) & (SITES - 1)) {
        struct site *site = &counting.sites[at];
        if (site->name == NULL) {
            site->name = name;
        }
        if (site->name == name) {
            return site;
        }
    }
    full("sites");
    return NULL;
}

static struct line *line_of(const volatile void *place) {
    uintptr_t number = (uintptr_t)place >> LINE_BITS;
    for (unsigned i = 0, at = hash(number, LINES); i < LINES; i++, at = (at + 1) & (LINES - 1)) {
        struct line *line = &counting.lines[at];
        if (line->number == 0) {
            line->number = number;
        }
        if (line->number == number) {
            return line;
        }
    }
    full("lines");
    return NULL;
}

static struct lock_count *lock_of(const volatile void *lock, const char *name) {
    for (unsigned i = 0, at = hash((uintptr_t)lock, LOCKS); i < LOCKS; i++, at = (at + 1) & (LOCKS - 1)) {
        struct lock_count *found = &counting.locks[at];
        if (found->lock == NULL && name != NULL) {
            *found = (struct lock_count){.lock = lock, .name = name, .last = THREADS_MOST};
        }
        if (found->lock == lock || found->lock == NULL) {
            return found;
        }
    }
    full("locks");
    return NULL;
}

void counting_touch(const char *site_name, enum counted kind, const volatile void *place) {
    if (!counting.on) {
        return;
    }
    struct site *site = site_of(site_name);
    struct line *line = line_of(place);
    uint64_t self = UINT64_C(1) << counting.thread;
    site->loads += kind == COUNTED_LOAD;
    site->stores += kind == COUNTED_STORE;
    site->changes += kind == COUNTED_CHANGE;
    if (kind == COUNTED_LOAD) {
        site->travels += line->holders != 0 && (line->holders & self) == 0;
        line->holders |= self;
    } else {
        site->travels += line->holders != 0 && line->holders != self;
        line->holders = self;
    }
}

static void note(const struct lock_count *lock, bool takes) {
    if (counting.count == EVENTS) {
        counting.lost++;
        return;
    }
    counting.events[counting.count++] =
        (struct event){counting.call, (uint16_t)(lock - counting.locks), (uint8_t)counting.thread, takes};
}

void counting_take(const char *site, const volatile void *lock) {
    if (!counting.on) {
        return;
    }
    struct lock_count *found = lock_of(lock, site);
    found->taken++;
    found->handovers += found->last != THREADS_MOST && found->last != counting.thread;
    found->last = counting.thread;
    note(found, true);
}

void counting_taken(const char *site, const volatile void *lock) {
    if (counting.holds != NULL && strstr(site, counting.holds) != NULL) {
        (void)lock_of(lock, site);
        CALLGRIND_TOGGLE_COLLECT;
    }
}

void counting_free(const volatile void *lock) {
    if (counting.on || counting.holds != NULL) {
        struct lock_count *found = lock_of(lock, NULL);
        if (found->lock != NULL && counting.on) {
            note(found, false);
        } else if (found->lock != NULL && counting.holds != NULL) {
            CALLGRIND_TOGGLE_COLLECT;
            found->taken++;
        }
    }
}

/* Few names, and seldom. */
void counting_call(const char *name) {
    for (unsigned i = 0; counting.on && i < NAMES; i++) {
        struct call_count *calls = &counting.calls[i];
        if (calls->name == NULL || strcmp(calls->name, name) == 0) {
            calls->name = name;
            calls->made++;
            return;
        }
    }
}

/* -- for the program ----------------------------------------------------------------------------------------- */

/* `holds`: only instructions while locks are held whose name has this in it, under callgrind, which collects from the start; NULL: everything
 * else. */
EXPORTED void counting_begin(const char *holds);

/* The thread goes on, with its call of this number. */
EXPORTED void counting_turn(unsigned thread, uint32_t call);
EXPORTED void counting_end(FILE *out);

void counting_begin(const char *holds) {
    if (holds != NULL) {
        counting.holds = holds;
        return;
    }
    counting.lines =
        mmap(NULL, LINES * sizeof(struct line), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    counting.events =
        mmap(NULL, EVENTS * sizeof(struct event), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (counting.lines == MAP_FAILED || counting.events == MAP_FAILED) {
        full("pages in use");
    }
    counting.on = true;
}

void counting_turn(unsigned thread, uint32_t call) {
    counting.thread = thread;
    counting.call = call;
}

void counting_end(FILE *out) {
    bool events = counting.on;
    counting.on = false;
    counting.holds = NULL;
    for (unsigned i = 0; i < SITES; i++) {
        const struct site *site = &counting.sites[i];
        if (site->name != NULL) {
            (void)fprintf(out, "site\t%s\t%lu\t%lu\t%lu\t%lu\n", site->name, site->loads, site->stores, site->changes,
                          site->travels);
        }
    }
    for (unsigned i = 0; i < LOCKS; i++) {
        const struct lock_count *lock = &counting.locks[i];
        if (lock->lock != NULL) {
            (void)fprintf(out, "lock\t%u\t%s\t%lu\t%lu\n", i, lock->name, lock->taken, lock->handovers);
        }
    }
    for (unsigned i = 0; i < NAMES && counting.calls[i].name != NULL; i++) {
        (void)fprintf(out, "call\t%s\t%lu\n", counting.calls[i].name, counting.calls[i].made);
    }
    for (uint64_t i = 0; events && i < counting.count; i++) {
        const struct event *event = &counting.events[i];
        (void)fprintf(out, "%s\t%u\t%u\t%u\n", event->takes ? "take" : "free", event->thread, event->call, event->lock);
    }
    (void)fprintf(out, "lost\t%lu\n", counting.lost);
}
