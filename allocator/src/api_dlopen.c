/* dlopen without RTLD_DEEPBIND. An object opened with that flag takes malloc and free from libc, past every preload: its blocks and those of
 * the rest of the process are freed by the wrong malloc. Without the flag all objects take both from here.
 *
 * The real function is reached by a jump, since it finds the caller by the return address: the caller's search path (RUNPATH) and namespace
 * apply. An object with a malloc of its own takes malloc and free from here as well, as it does if it is opened without the flag; which file
 * that is cannot be known before the linker has searched for it and for all that it needs. Only in the shared library; musl knows no such flag. */
#include <dlfcn.h>

#include "api_process.h"

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)

typedef void *dlopen_function(const char *file, int flags);

/* Each is written once at load, and read by instructions below; relaxed: every thread would store the same value. */
dlopen_function *dlopen_next INTERNAL;
int dlopen_kept_flags INTERNAL = ~RTLD_DEEPBIND;

dlopen_function *dlopen_find(void) INTERNAL;

static void *refuse(const char *file, int flags) {
    (void)file;
    (void)flags;
    return NULL;
}

/* Another library's constructor may call dlopen before ours has run. */
__attribute__((constructor)) dlopen_function *dlopen_find(void) {
    options_read_environment();
    if (option_value(OPTION_DEEPBIND) != 0) {
        __atomic_store_n(&dlopen_kept_flags, ~0, __ATOMIC_RELAXED);
    }
    dlopen_function *next = BEHIND(dlopen, dlopen_function *);
    next = next != NULL ? next : refuse; /* before glibc 2.34, if the program does not load libdl */
    __atomic_store_n(&dlopen_next, next, __ATOMIC_RELAXED);
    return next;
}

#if defined(__x86_64__)
__asm__(".text\n\t"
        ".globl dlopen\n\t"
        ".type dlopen, @function\n"
        "dlopen:\n\t"
        ".cfi_startproc\n\t"
        "endbr64\n\t"
        "mov dlopen_next(%rip), %rax\n\t"
        "test %rax, %rax\n\t"
        "jnz 1f\n\t"
        "push %rdi\n\tpush %rsi\n\tsub $8, %rsp\n\t"
        ".cfi_adjust_cfa_offset 24\n\t"
        "call dlopen_find\n\t"
        "add $8, %rsp\n\tpop %rsi\n\tpop %rdi\n\t"
        ".cfi_adjust_cfa_offset -24\n"
        "1:\n\t"
        "and dlopen_kept_flags(%rip), %esi\n\t"
        "jmp *%rax\n\t"
        ".cfi_endproc\n\t"
        ".size dlopen, .-dlopen\n");
#else
__asm__(".text\n\t"
        ".globl dlopen\n\t"
        ".type dlopen, %function\n"
        "dlopen:\n\t"
        ".cfi_startproc\n\t"
        "hint #34\n\t" /* bti c */
        "adrp x16, dlopen_next\n\t"
        "ldr x16, [x16, #:lo12:dlopen_next]\n\t"
        "cbnz x16, 1f\n\t"
        "stp x0, x1, [sp, #-32]!\n\t"
        ".cfi_adjust_cfa_offset 32\n\t"
        "str x30, [sp, #16]\n\t"
        ".cfi_rel_offset x30, 16\n\t"
        "bl dlopen_find\n\t"
        "mov x16, x0\n\t"
        "ldr x30, [sp, #16]\n\t"
        "ldp x0, x1, [sp], #32\n\t"
        ".cfi_adjust_cfa_offset -32\n\t"
        ".cfi_restore x30\n"
        "1:\n\t"
        "adrp x17, dlopen_kept_flags\n\t"
        "ldr w17, [x17, #:lo12:dlopen_kept_flags]\n\t"
        "and w1, w1, w17\n\t"
        "br x16\n\t"
        ".cfi_endproc\n\t"
        ".size dlopen, .-dlopen\n");
#endif

#endif
