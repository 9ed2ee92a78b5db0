/* The caller of a frame, by the tables that compilers write for exceptions (.eh_frame). libgcc's unwinder reads the same
 * tables, but takes a lock of its own and allocates under it if a program has registered frames. This one takes no lock,
 * allocates nothing, and reads the stack only through the function that it is given. Leaf above os. */
#ifndef FREESTONE_UNWIND_STEP_H
#define FREESTONE_UNWIND_STEP_H

#include "bits.h"

/* Registers by their number in the tables. UNWIND_CAPTURED: those that unwind_here stores. */
#if defined(__x86_64__)
enum { UNWIND_REGISTERS = 17, UNWIND_SP = 7, UNWIND_RETURN = 16, UNWIND_CAPTURED = 0xF0C8 };
#elif defined(__aarch64__)
enum { UNWIND_REGISTERS = 32, UNWIND_SP = 31, UNWIND_RETURN = 30 };
#define UNWIND_CAPTURED UINT64_C(0xBFF80000)
#elif defined(__riscv)
enum { UNWIND_REGISTERS = 32, UNWIND_SP = 2, UNWIND_RETURN = 1, UNWIND_CAPTURED = 0xFFC0304 };
#elif defined(__powerpc64__) /* the link register is number 65 */
enum { UNWIND_REGISTERS = 66, UNWIND_SP = 1, UNWIND_RETURN = 65 };
#define UNWIND_CAPTURED UINT64_C(0xFFFFC002)
#else
enum { UNWIND_REGISTERS = 1, UNWIND_SP = 0, UNWIND_RETURN = 0, UNWIND_CAPTURED = 0 };
#endif

/* The number of the frame pointer, if the word that it points to is the caller's and the next one the return address;
 * else -1. */
#if defined(__x86_64__)
enum { UNWIND_FRAME_POINTER = 6 };
#elif defined(__aarch64__)
enum { UNWIND_FRAME_POINTER = 29 };
#else
enum { UNWIND_FRAME_POINTER = -1 };
#endif

struct unwind_frame {
    uintptr_t pc; /* 0 behind the outermost frame */
    bool interrupted; /* pc is of the next instruction; else of the one behind a call */
    bool known[UNWIND_REGISTERS];
    uintptr_t words[UNWIND_REGISTERS];
};

/* Reads a word of the stack; false if it cannot be read. */
typedef bool unwind_read(void *context, uintptr_t address, uintptr_t *word);

/* An address within the instruction that the frame is in, or has called from. */
static inline uintptr_t unwind_address(const struct unwind_frame *frame) { return frame->pc - !frame->interrupted; }

/* Goes on to the caller, by the table (.eh_frame_hdr) of the object that the frame's code lies in. False if the table
 * does not cover the code, or holds an unknown instruction; then the frame is unchanged. */
bool unwind_step(struct unwind_frame *frame, const unsigned char *table, unwind_read *read, void *context);

/* Goes on to the caller by the frame pointer, for code without a table. */
bool unwind_step_by_pointer(struct unwind_frame *frame, unwind_read *read, void *context);

/* The frame of the function that calls this, and that must not return before the walk ends. */
static inline __attribute__((always_inline)) void unwind_here(struct unwind_frame *frame) {
    uintptr_t *words = frame->words;
#if defined(__x86_64__)
    __asm__ volatile("mov %%rbx, 3*8(%1)\n\tmov %%rbp, 6*8(%1)\n\tmov %%rsp, 7*8(%1)\n\t"
                     "mov %%r12, 12*8(%1)\n\tmov %%r13, 13*8(%1)\n\tmov %%r14, 14*8(%1)\n\tmov %%r15, 15*8(%1)\n\t"
                     "lea 0f(%%rip), %0\n0:"
                     : "=&r"(frame->pc)
                     : "r"(words)
                     : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("stp x19, x20, [%1, #19*8]\n\tstp x21, x22, [%1, #21*8]\n\tstp x23, x24, [%1, #23*8]\n\t"
                     "stp x25, x26, [%1, #25*8]\n\tstp x27, x28, [%1, #27*8]\n\tmov %0, sp\n\t"
                     "str x29, [%1, #29*8]\n\tstr %0, [%1, #31*8]\n\tadr %0, ."
                     : "=&r"(frame->pc)
                     : "r"(words)
                     : "memory");
#elif defined(__riscv)
    __asm__ volatile("sd sp, 2*8(%1)\n\tsd s0, 8*8(%1)\n\tsd s1, 9*8(%1)\n\tsd s2, 18*8(%1)\n\tsd s3, 19*8(%1)\n\t"
                     "sd s4, 20*8(%1)\n\tsd s5, 21*8(%1)\n\tsd s6, 22*8(%1)\n\tsd s7, 23*8(%1)\n\tsd s8, 24*8(%1)\n\t"
                     "sd s9, 25*8(%1)\n\tsd s10, 26*8(%1)\n\tsd s11, 27*8(%1)\n\tauipc %0, 0"
                     : "=&r"(frame->pc)
                     : "r"(words)
                     : "memory");
#elif defined(__powerpc64__)
    __asm__ volatile("std 1, 8(%1)\n\tstd 14, 14*8(%1)\n\tstd 15, 15*8(%1)\n\tstd 16, 16*8(%1)\n\tstd 17, 17*8(%1)\n\t"
                     "std 18, 18*8(%1)\n\tstd 19, 19*8(%1)\n\tstd 20, 20*8(%1)\n\tstd 21, 21*8(%1)\n\t"
                     "std 22, 22*8(%1)\n\tstd 23, 23*8(%1)\n\tstd 24, 24*8(%1)\n\tstd 25, 25*8(%1)\n\t"
                     "std 26, 26*8(%1)\n\tstd 27, 27*8(%1)\n\tstd 28, 28*8(%1)\n\tstd 29, 29*8(%1)\n\t"
                     "std 30, 30*8(%1)\n\tstd 31, 31*8(%1)\n\tbcl 20, 31, .+4\n\tmflr %0"
                     : "=&r"(frame->pc)
                     : "b"(words)
                     : "lr", "memory");
#else
    frame->pc = 0;
    (void)words;
#endif
    frame->interrupted = true;
    for (unsigned number = 0; number < UNWIND_REGISTERS; number++) {
        frame->known[number] = number < 64 && (UNWIND_CAPTURED >> number & 1) != 0;
    }
}

#endif
