/* What the rooms of guarded blocks share. */
#ifndef FREESTONE_GUARDED_INSIDE_H
#define FREESTONE_GUARDED_INSIDE_H

#include <stdatomic.h>

#include "guarded.h"

/* Being taken or freed, a place is in one thread's hands; only an empty one and one that is freed can be had. */
enum guarded_state { GUARDED_EMPTY, GUARDED_TAKING, GUARDED_USED, GUARDED_FREEING, GUARDED_FREED };

/* One place. Changed under the pool's lock; read without by who reports. */
struct guarded_place {
    _Atomic uint32_t state; /* enum guarded_state; release when it changes: whoever sees it finds what it tells of */
    unsigned char *block;
    size_t size;
    unsigned char *from; /* the first of its pages */
    size_t bytes, room;  /* of the pages that may be touched; of all that lie between two that never may */
    struct trace taken, given;
    _Atomic bool
        parked; /* freed by who was refused, and not yet taken from what is parked; relaxed: of two who free it one is the first */
    void *instead; /* guarded_stand_in; of who has taken the block, then of who frees it */
    _Atomic bool
        mended; /* pages were made accessible after a fault, so that the program goes on; relaxed: the fault comes first */
};

/* The place whose pages, or a page beside them, hold an address; used or not. NULL where there is none. */
struct guarded_place *guarded_place_of(const void *pointer);

/* The place nearest to an address in the pool; NULL where none was ever used. */
struct guarded_place *guarded_nearest(const void *pointer);

enum guarded_fault {
    GUARDED_OVERFLOW,
    GUARDED_UNDERFLOW,
    GUARDED_AFTER_FREE,
    GUARDED_DOUBLE_FREE,
    GUARDED_INVALID_FREE,
    GUARDED_WRONG_SIZE
};

/* What was wrong, and how it came to be known. */
struct guarded_access {
    const char *how; /* "written", "freed again" */
    const struct trace
        *trace; /* NULL for a fault, whose stack is walked once the line is out, and for what was found later */
    const void *fault; /* of a fault: the handler's ucontext_t */
    /* Of a fault: who walks the stack, once the line is out. None of the keeper's, which has no thread block that a walk asks for. */
    void (*walk)(struct trace *trace, const void *fault);
};

/* Says what happened; once in a process where it is to go on (guard_recover=1), and only then comes back. `told`: the size that a wrong one is. */
void guarded_report(enum guarded_fault fault, const struct guarded_place *place, const void *pointer,
                    const struct guarded_access *access, size_t told);

/* In the child of a fork. */
void guarded_report_after_fork(void);

/* A fault at an address: reported, if it lies in the pool. True when the access may be tried again. */
bool guarded_explain(unsigned char *pointer, const struct guarded_access *access);

#endif
