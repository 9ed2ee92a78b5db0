/* Bits and powers of two. Leaf: includes nothing of ours but the platform. */
#ifndef FREESTONE_BITS_H
#define FREESTONE_BITS_H

#include "platform.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Internal to the library: lets the compiler address it relative to the program counter, without a GOT load. */
#define INTERNAL __attribute__((visibility("hidden")))

/* For zeroed data of which a process touches little: linkers lay it behind all other, whose pages are thus few. */
#define LAID_LAST __attribute__((common, visibility("hidden")))

/* Kept out of line so that a hot caller needs no stack frame: the call to it becomes a jump. */
#define OUT_OF_LINE __attribute__((noinline, cold))

/* The word as another thread may be changing it, where any value it had will do. An aligned word is read whole by every machine we run on; an
 * atomic read would say so, but compilers do not fold that into the comparison: an instruction on every hot path. */
#if defined(__has_feature)
#define IS_THREAD_SANITIZED __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define IS_THREAD_SANITIZED 1
#else
#define IS_THREAD_SANITIZED 0
#endif
#if IS_THREAD_SANITIZED
#define GLANCE(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#else
#define GLANCE(word) (word)
#endif

/* For the body of a loop that runs for every block. */
#define INLINE_ALWAYS __attribute__((always_inline)) inline

/* Index of the lowest set bit; `word` is not 0. */
static inline unsigned bits_lowest(uint64_t word) { return (unsigned)__builtin_ctzll(word); }

/* Index of the highest set bit; `word` is not 0. */
static inline unsigned bits_highest(uint64_t word) { return 63u - (unsigned)__builtin_clzll(word); }

/* A word with the lowest `count` bits set; `count` is 0 to 64. */
static inline uint64_t bits_low(unsigned count) { return count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1; }

static inline bool bits_is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

/* `value` rounded up to a multiple of `unit`, a power of two; the sum must not overflow. */
static inline size_t bits_round_up(size_t value, size_t unit) { return (value + unit - 1) & ~(unit - 1); }

static inline size_t bits_round_down(size_t value, size_t unit) { return value & ~(unit - 1); }

static inline size_t bits_min(size_t a, size_t b) { return a < b ? a : b; }

static inline size_t bits_max(size_t a, size_t b) { return a > b ? a : b; }

#endif
