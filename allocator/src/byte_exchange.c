/* One byte exchanged atomically, where the machine exchanges words alone and the compiler calls libatomic for less: GCC before 13 on RISC-V.
 * The library needs nothing but libc. Weak: whoever links libatomic as well has one of the two, which do the same. */
#include "bits.h"

#if defined(__riscv)
unsigned char byte_exchange(volatile void *at, unsigned char value, int order) __asm__("__atomic_exchange_1");

__attribute__((weak)) INTERNAL unsigned char byte_exchange(volatile void *at, unsigned char value, int order) {
    (void)order; /* the strictest does for all */
    unsigned shift = 8 * (unsigned)((uintptr_t)at % sizeof(uint32_t));
    volatile uint32_t *word = (volatile uint32_t *)((uintptr_t)at - (uintptr_t)at % sizeof(uint32_t));
    uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    uint32_t wanted;
    do { /* acquire and release as the order of the call may ask for; a neighbour that has changed is seen, and kept */
        wanted = (seen & ~(UINT32_C(0xFF) << shift)) | (uint32_t)value << shift;
    } while (!__atomic_compare_exchange_n(word, &seen, wanted, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return (unsigned char)(seen >> shift);
}
#endif
