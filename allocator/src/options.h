/* The knobs: FREESTONE_OPTIONS=key=value,... and what mallopt maps to them. Leaf beside message.
 *
 * Read once, at the first allocation or from the library's constructor, whichever comes first. Values are plain words read
 * with relaxed atomics: each is meaningful by itself and a reader may see a change a little late. */
#ifndef FREESTONE_OPTIONS_H
#define FREESTONE_OPTIONS_H

#include "bits.h"

enum option {
    OPTION_RETAIN_MIB,     /* freed memory kept for reuse whatever the size of the program */
    OPTION_RETAIN_PERCENT, /* ... and this share of what is in use on top */
    OPTION_RETAIN_MS,      /* kept about this long, up to six times if soon needed again: decay.h */
    OPTION_HEAPS,          /* heaps at most; 0: by the number of CPUs */
    OPTION_HUGE_FROM_MIB,  /* memory in use from which on it is given huge pages; HUGE_NEVER: none at all */
    OPTION_POPULATE_KIB,   /* pages brought in ahead of a program that grows, at most; 0: none */
    OPTION_RESERVE_GIB,    /* address space reserved at start; 0: none, taken piece by piece */
    OPTION_LIMIT_MIB,      /* what the heap may hold; 0: whatever the kernel gives (limit.h) */
    OPTION_KEEPER, /* 1: a thread of the library's own returns memory while the program idles; KEEPER_ALWAYS */
    OPTION_IDENTIFY, /* 1: one line on standard error at start that says the library is in force */
    OPTION_HARDEN, /* 1: every block by the hardened heap (hardened.h); what follows are its parts, 0 leaves one out */
    OPTION_QUARANTINE_KIB, /* of freed blocks held back, of each class, twice */
    OPTION_CANARIES, /* behind each block, and what lies before it is looked at */
    OPTION_CLEAR, /* what is freed is cleared, and must be clear still when it is taken */
    OPTION_GUARD_PAGES, /* behind each slab, and before and behind each large block */
    OPTION_GUARD_SMALL, /* and some small blocks have pages of their own between such pages (hard_share.c) */
    OPTION_KINDS, /* freed as it was made, and by its size where that is told */
    OPTION_RANDOM, /* slots are chosen at random */
    OPTION_GUARD, /* one allocation in so many is guarded (guarded.h); 0: none */
    OPTION_GUARD_RECOVER, /* 1: the process goes on after a report */
    OPTION_DEEPBIND, /* 1: dlopen keeps RTLD_DEEPBIND */
    OPTION_HUGE_SLOW_US, /* a huge page that takes longer is too dear */
    OPTION_COUNT,
};

enum {
    HUGE_NEVER = 1 << 24,
    RETAIN_ALL_MIB = 1 << 24,
    LIMIT_MOST_MIB = 1 << 24,
    RETAIN_DEFAULT_MIB = 128,
    RETAIN_DEFAULT_PERCENT = 50,
    RETAIN_DEFAULT_MS = 1000
};

/* guard=auto: a rate for a service in production. */
enum { GUARD_AUTO = 5000 };

/* Of OPTION_RETAIN_MS, by mallopt alone. */
static const uint32_t RETAIN_FOR_EVER = UINT32_MAX;

/* Also where filters watch the process's system calls, of which nothing is known. */
enum { KEEPER_ALWAYS = 2 };

extern uint32_t options[OPTION_COUNT] INTERNAL;

/* What the slow paths do otherwise than by default; MODES_UNREAD before the environment was read. Relaxed: it is set before there is a second
 * thread, or the first block. */
enum { MODES_UNREAD = 1, MODE_HARDENED = 2, MODE_GUARDED = 4 };
extern uint32_t options_modes INTERNAL;
static inline uint32_t modes(void) { return __atomic_load_n(&options_modes, __ATOMIC_RELAXED); }

static inline uint32_t option_value(enum option which) { return __atomic_load_n(&options[which], __ATOMIC_RELAXED); }

static inline void option_set(enum option which, uint32_t value) {
    __atomic_store_n(&options[which], value, __ATOMIC_RELAXED);
}

/* Reads the program's own options, if it has any, and the environment, once: what opens the library calls it before anything is chosen. */
void options_read_environment(void);

/* Changes what may be changed while the program runs, the limit and what is retained: all of `text`, or nothing and false if a part of it cannot be
 * understood. */
bool options_change(const char *text);

/* Reads `text` ("key=value,key=value"); a part it does not understand costs one warning line and changes nothing. */
void options_read(const char *text);

#endif
