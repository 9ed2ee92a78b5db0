/* All that the watcher knows of a process, at one place and in a file that it is mapped to: what is written is in the
 * file at once, so that any end leaves the last state, SIGKILL too. Its reader is src/freestone/doctor/heap_watch.py. */
#ifndef FREESTONE_HEAPWATCH_STATE_H
#define FREESTONE_HEAPWATCH_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STATE_SIZES = 48, STATE_LIFETIMES = 48, STATE_KNOBS = 32, STATE_POINTS = 512, STATE_TALLIES = 1024 };
enum { STATE_NOT_SAID = -1 };

/* The largest page there is, as the linker takes it: a mapping can be put in the place of the state. */
#ifdef __aarch64__
#define STATE_PAGE 65536
#else
#define STATE_PAGE 4096
#endif

/* What one thread has done with the heap. Written by one thread at a time, read by whoever sums up: relaxed everywhere,
 * since they are counts and order nothing. Kept when its thread ends and handed to the next one. */
struct tally {
    _Atomic uint64_t mallocs, callocs, frees, reallocs;
    _Atomic uint64_t moved, copied, small_steps, cleared, asked;
    _Atomic uint64_t looked, waited, waited_ns;
    _Atomic uint64_t sampled_frees, remote_frees;
    _Atomic uint64_t size_calls[STATE_SIZES], size_bytes[STATE_SIZES]; /* by the bits of size - 1 */
    _Atomic uint64_t lifetimes[STATE_LIFETIMES];                       /* by the bits of bytes asked for meanwhile */
    int64_t pending;   /* bytes in use that the sum does not know yet */
    uint32_t turn;     /* calls, for choosing those that are looked at */
    uint32_t number;   /* of the tally, from 1; 0: never used */
    _Atomic bool used; /* by a living thread; taken by exchange, so that one thread has it */
    bool shared;       /* the first one: of all threads for which there is none of their own; a lower bound */
};

/* The heap as a whole at one moment, in bytes; STATE_NOT_SAID where nobody said. */
struct point {
    uint64_t at_ns;
    int64_t live;
    uint64_t asked;
    int64_t held, free, top, mapped, resident;
};

struct state {
    char magic[8];
    uint32_t points_at, tallies_at; /* where those begin, from here */
    uint32_t point_bytes, tally_bytes;
    uint64_t begun_ns; /* of CLOCK_MONOTONIC */
    /* When anything happened last, and what was in use then. Relaxed: one that is a little behind the other is as good. */
    _Atomic uint64_t active_ns;
    _Atomic int64_t active_live;
    /* Bytes in use, the most so far, and bytes ever asked for, as far as threads have said. Relaxed: they are sums. */
    _Atomic int64_t in_use, most;
    _Atomic uint64_t asked;
    _Atomic uint32_t threads, most_threads;
    _Atomic uint32_t knob_count;
    _Atomic uint32_t count; /* of points; written when the point is whole, by the one thread that has the points */
    _Atomic uint32_t claimed; /* tallies from the first to the last that was ever used */
    int32_t pid;
    /* What is known at an end that could be foreseen. `left` is written last. */
    int64_t end_live, trimmed;
    uint32_t arenas;
    _Atomic uint32_t left;
    int32_t knobs[STATE_KNOBS][2];
    struct point points[STATE_POINTS];
    struct tally tallies[STATE_TALLIES];
} __attribute__((aligned(STATE_PAGE)));

extern struct state state;

/* Put the state into a new file of a folder, as far as it is used; what is written from then on is there. Nothing
 * happens where that cannot be: the folder is closed to the process, the disk is full, files must not be so large. */
void state_share(const char *folder);

/* Take it out again, as it is: of a child that shares it with its parent. */
bool state_keep(void);

/* A place in the file for a tally that was never used: false where there is none, and a write would end the process. */
bool state_reserve(uint32_t tally);

#endif
