/* A thread's life: birth at its first slow path, end when its keys are destroyed; and its way inside (gate.h). */
#ifndef FREESTONE_THREAD_LIFE_H
#define FREESTONE_THREAD_LIFE_H

#include "bits.h"

/* How a thread is inside. */
enum pass {
    PASS_REFUSED, /* not at all: what it needs comes from the shelter */
    PASS_OUTSIDER, /* without a cache: not yet, or no longer */
    PASS_CACHE,
};

/* Goes inside; the thread is born if it has not been. Every way that is not refused is left by thread_leave. */
enum pass thread_enter(void);
void thread_leave(enum pass pass);

/* The same for a caller that fails when it is refused: waits for seconds, at most, for a fork that keeps it outside (turns.h). */
enum pass thread_enter_at_last(void);

/* For who was refused: a block of so many bytes that reads as zero. If there is no memory for it, waits as thread_enter_at_last does. PASS_REFUSED
 * with the block, or with NULL when memory is out; otherwise the caller is inside now, without a block. */
enum pass thread_take_shelter(size_t bytes, size_t alignment, void **block);

/* Nobody is inside but, perhaps, the calling thread. False also where that cannot be told without waiting. */
bool thread_is_alone_inside(void);

/* Memory is out: takes over all that threads have left that are gone. The caller is inside. */
void thread_adopt_all(void);

/* Opens the library if that has not happened. False when the kernel refuses the address space. */
bool thread_start(void);

#endif
