/* Turns: how forks that overlap share the gate (gate.h) with threads that allocate. Forks close it
 * one within the other, and between two of them it may be open for no time at all. A refused thread
 * sets `refused`. The next fork waits until the gate was open as long as it was closed; the refused
 * thread waits a few milliseconds for that. Every wait has an end, since the other side may be
 * waiting for this thread. The turns decide how long a thread waits, never which threads are
 * inside. */
#ifndef FREESTONE_TURNS_H
#define FREESTONE_TURNS_H

#include <stdatomic.h>

#include "bits.h"

struct turns {
    _Atomic uint32_t number; /* goes up when the gate is opened; what those sleep on who wait for that */
    _Atomic uint32_t waiting; /* so many; seq_cst: who opens sees it, or who waits sees the gate open */
    /* Relaxed, all: how long somebody waits depends on them, no more. */
    _Atomic uint32_t in_vain; /* the turn in which somebody has waited long enough, plus 1 */
    _Atomic uint32_t in_vain_at_last; /* ... for seconds */
    _Atomic bool refused; /* somebody was, since the gate was closed */
    _Atomic uint64_t closed_at, open_until; /* ns */
};
extern struct turns turns INTERNAL;

/* Before a fork closes the gate: where it is closed by another's and somebody was refused, those work for as long first as they were kept out,
 * some milliseconds at most. Else forks that overlap would keep the gate closed for ever. Not by who is inside, nor within a fork. */
void turns_await(void);

/* For who was refused, is not inside and does not fork: waits some milliseconds for the gate to be opened, as most forks take no longer; once in
 * vain, nobody waits any more in this turn, since the fork may be waiting for one of those. True when it is worth another try. */
bool turns_await_opening(void);

/* The same for a caller that has found no memory elsewhere: without the wait its allocation fails. Waits for seconds, over all calls with the
 * same `patience`, because no fork that ends takes longer. A fork may also wait for the caller, by a lock of the program that another
 * library's handler takes. Then the first such wait fails after these seconds, and the others of its turn at once. */
struct patience;
bool turns_await_opening_at_last(struct patience *patience);

/* The gate's words: somebody was refused; it has been closed; it is open again; this is a child, where nobody waits. */
void turns_note_refused(void);
void turns_note_closed(void);
void turns_note_open(void);
void turns_forget(void);

#endif
