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

struct dlopen_call { /* in two registers */
    dlopen_function *function;
    long flags; /* all of the register, as PASS_OTHER has it */
};
struct dlopen_call dlopen_find(const char *file, long flags) INTERNAL;

static void *refuse(const char *file, int flags) {
    (void)file;
    (void)flags;
    return NULL;
}

__attribute__((used)) struct dlopen_call dlopen_find(const char *file, long flags) {
    (void)file;
    options_read_environment(); /* another library's constructor may call dlopen before ours has run */
    dlopen_function *next = (dlopen_function *)libc_function(LIBC_dlopen);
    bool keeps = option_value(OPTION_DEEPBIND) != 0 || (libc_is_other(LIBC_dlopen) && !is_int(flags));
    return (struct dlopen_call){
        next != NULL ? next : refuse, /* before glibc 2.34, if the program does not load libdl */
        keeps ? flags : flags & ~(long)RTLD_DEEPBIND,
    };
}

#if defined(__x86_64__)
__asm__(".text\n\t"
        ".globl dlopen\n\t"
        ".type dlopen, @function\n"
        "dlopen:\n\t"
        ".cfi_startproc\n\t"
        "endbr64\n\t"
        "push %rdi\n\tpush %rdx\n\tpush %rcx\n\tpush %r8\n\tpush %r9\n\t"
        ".cfi_adjust_cfa_offset 40\n\t"
        "call dlopen_find\n\t"
        "mov %rdx, %rsi\n\t"
        "pop %r9\n\tpop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rdi\n\t"
        ".cfi_adjust_cfa_offset -40\n\t"
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
        "stp x0, x30, [sp, #-64]!\n\t"
        ".cfi_adjust_cfa_offset 64\n\t"
        ".cfi_rel_offset x30, 8\n\t"
        "stp x2, x3, [sp, #16]\n\tstp x4, x5, [sp, #32]\n\tstp x6, x7, [sp, #48]\n\t"
        "bl dlopen_find\n\t"
        "mov x16, x0\n\t"
        "ldp x2, x3, [sp, #16]\n\tldp x4, x5, [sp, #32]\n\tldp x6, x7, [sp, #48]\n\t"
        "ldp x0, x30, [sp], #64\n\t"
        ".cfi_adjust_cfa_offset -64\n\t"
        ".cfi_restore x30\n\t"
        "br x16\n\t"
        ".cfi_endproc\n\t"
        ".size dlopen, .-dlopen\n");
#endif

#endif
