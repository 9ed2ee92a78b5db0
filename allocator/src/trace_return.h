/* Where a frame returns to, told before anybody reads there. A coroutine's outermost frame may have a return address that is none, since it never
 * returns; the unwinder of libgcc reads the code at it, wherever that is. Leaf above os. */
#ifndef FREESTONE_TRACE_RETURN_H
#define FREESTONE_TRACE_RETURN_H

#include "bits.h"

/* What the unwinder knows of a frame. `at`: an address within the instruction that it is in, or has called from. `sp`: its stack pointer there, 0
 * where that is not known.
 * `word`: the value of one of the registers that calls keep, by its number in the tables, from `context`. */
struct trace_frame {
    uintptr_t at, sp;
    uintptr_t (*word)(void *context, int number);
    void *context;
};

/* The stack pointer of a frame, of whom the unwinder has `cfa` (_Unwind_GetCFA): which on aarch64 is another address in one that a signal has
 * interrupted. */
static inline uintptr_t trace_stack_pointer(uintptr_t cfa, bool interrupted) {
#if defined(__aarch64__)
    return interrupted ? 0 : cfa;
#else
    (void)interrupted;
    return cfa;
#endif
}

/* Where the frame keeps its return address, by the entry of the tables that covers `at` (_Unwind_Find_FDE) and the start of its function; 0
 * where that is not as simple, or not known. Reads tables and registers only. */
uintptr_t trace_return_slot(const struct trace_frame *frame, const void *entry, uintptr_t function);

#endif
