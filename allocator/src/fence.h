/* Fences, for readers that look at a word, at what it is about, and at the word again.
 *
 * The thread sanitizer knows no fences (gcc refuses to compile one for it). There each is an exchange of a word of its
 * own, of which it does know that it orders. */
#ifndef FREESTONE_FENCE_H
#define FREESTONE_FENCE_H

#include <stdatomic.h>

#if defined(__SANITIZE_THREAD__)

static _Atomic unsigned fence_word;

static inline void fence_release(void) { atomic_fetch_add_explicit(&fence_word, 1, memory_order_acq_rel); }

static inline void fence_acquire(void) { atomic_fetch_add_explicit(&fence_word, 1, memory_order_acq_rel); }

#else

static inline void fence_release(void) { atomic_thread_fence(memory_order_release); }

static inline void fence_acquire(void) { atomic_thread_fence(memory_order_acquire); }

#endif

#endif
