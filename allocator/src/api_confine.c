/* What the threads of the process may do. Once filters may have come, no keeper is started any more: it would make calls of which nobody knows
 * whether they are punished. Some namespaces are only for a process with one thread, and a table of descriptors that is copied for one thread
 * leaves the old one, with its files and the locks on them, to the others.
 *
 * Who comes here by a system call of its own, without libc, is not seen; unprivileged programs have to say first that they want no new
 * privileges, which most do by prctl. Weak: a program that is linked with the static library may bring functions of these
 * names. */
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "api_process.h"
#include "os.h"

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

enum {
    COPY_TABLE = 2, /* CLOSE_RANGE_UNSHARE, since Linux 5.9 */
};

#define WEAK PUBLIC __attribute__((weak))

typedef long libc_syscall(long number, long a, long b, long c, long d, long e, long f);

libc_syscall confine_syscall INTERNAL;

/* Those that put filters on, or are made by who is about to. */
static bool option_confines(unsigned long option) { return option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS; }

static bool mode_confines(long mode) { return mode == SECCOMP_SET_MODE_STRICT || mode == SECCOMP_SET_MODE_FILTER; }

/* Whether it is not a child of vfork, which would confine its parent. Asked before the call, whose filter might punish the question; under
 * filters that are there already it is not asked: who confines itself further there may cost a parent the keeper, not its life. */
static bool is_own_process(void) { return !keeper_may_ask() || gate_is_own_process(false); }

/* In between nobody starts a keeper, so the next to start one sees it. */
static long confined(bool own, long result) {
    if ((int)result >= 0 && own) { /* none of these calls returns more than an int */
        keeper_confine();
    }
    return result;
}

/* A call that may put a filter on, which may say of purging that it was done, and do nothing. */
#define CONFINING(call)                      \
    __extension__({                          \
        bool own = is_own_process();         \
        os_doubt_purging();                  \
        WITHOUT_KEEPER(confined(own, call)); \
    })

WEAK FORWARDED(capset, true, WITHOUT_KEEPER) /* two addresses */
WEAK FORWARDED(unshare, is_int(a), WITHOUT_KEEPER)
WEAK FORWARDED(setns, is_int(a) && is_int(b), WITHOUT_KEEPER)

/* libc has it since glibc 2.34; who asks whether there is one would find ours. */
WEAK OFFERED(close_range) {
    PASS_OTHER(close_range, is_int(a) && is_int(b) && is_int(c));
    any_function *libc = BEHIND(close_range);
    if (libc == NULL) {
        return confine_syscall(SYS_close_range, a, b, c, 0, 0, 0);
    }
    bool copies = ((unsigned)c & COPY_TABLE) != 0;
    return copies ? WITHOUT_KEEPER(libc(a, b, c, d, e, f)) : libc(a, b, c, d, e, f);
}

WEAK OFFERED(prctl) {
    PASS_OTHER(prctl, is_int(a));
    any_function *libc = BEHIND(prctl);
    if (unlikely(libc == NULL)) {
        return process_missing();
    }
    if (unlikely(option_confines((unsigned)a))) {
        return CONFINING(libc(a, b, c, d, e, f));
    }
    return libc(a, b, c, d, e, f);
}

#define CLONE3_LEAST 64 /* bytes of struct clone_args as it was first; CLONE_ARGS_SIZE_VER0 of later headers */

bool confine_is_plain_clone3(long a, long b) INTERNAL;

/* The kernel reads the struct, and answers EFAULT if it cannot: so nothing is read here that it could not read. Once the process is under
 * filters of its own no keeper is started any more. */
bool confine_is_plain_clone3(long a, long b) {
    const char *asked = (const char *)a; /* NULL and 0 is a question */
    uint64_t flags, stack;
    const char *flags_at = asked + offsetof(struct clone_args, flags),
               *stack_at = asked + offsetof(struct clone_args, stack);
    if ((unsigned long)b < CLONE3_LEAST || keeper_is_confined() || !os_can_read(flags_at) || !os_can_read(stack_at)) {
        return false;
    }
    memcpy(&flags, flags_at, sizeof flags);
    memcpy(&stack, stack_at, sizeof stack);
    return (flags & CLONE_VM) == 0 && stack == 0;
}

/* One that gives the new process memory and a stack of its own comes back from an ordinary call. Without the keeper what it copies is as whole as
 * under a libc without one. */
static bool is_plain_fork(long number, long a, long b) {
#ifdef SYS_fork
    if (number == SYS_fork) {
        return true;
    }
#endif
    if (number == SYS_clone3) {
        return confine_is_plain_clone3(a, b);
    }
    return number == SYS_clone && ((unsigned long)a & CLONE_VM) == 0 && b == 0;
}

/* Without libc, for the calling thread alone. */
static bool changes_identity(long number) {
    return number == SYS_setuid || number == SYS_setgid || number == SYS_setreuid || number == SYS_setregid ||
           number == SYS_setresuid || number == SYS_setresgid || number == SYS_setgroups || number == SYS_capset;
}

static bool is_watched(long number, long a, long b, long c) {
    if (number == SYS_close_range) {
        return ((unsigned long)c & COPY_TABLE) != 0;
    }
    return number == SYS_prctl || number == SYS_seccomp || number == SYS_unshare || number == SYS_setns ||
           number == SYS_exit || changes_identity(number) || is_plain_fork(number, a, b);
}

static long no_jump(long result) {
    __asm__ volatile("" : "+r"(result));
    return result;
}

/* syscall, for the few numbers that are watched, and before libc's is known. */
long confine_syscall(long number, long a, long b, long c, long d, long e, long f) {
    libc_syscall *libc = (libc_syscall *)libc_function(LIBC_syscall);
    if (libc == NULL) {
        return process_missing();
    }
    if (os_thread_itself() == 0) { /* nothing of this library's runs in such a task */
        return no_jump(libc(number, a, b, c, d, e, f));
    }
    bool ends = number == SYS_exit;
    if (ends && keeper_give_way(thread_is_inside())) { /* or it is the last thread, whose status is the process's */
        keeper_return(false);
    }
    if (ends || !is_watched(number, a, b, c)) {
        return no_jump(libc(number, a, b, c, d, e, f));
    }
    bool confines =
        (number == SYS_prctl && option_confines((unsigned long)a)) || (number == SYS_seccomp && mode_confines(a));
    if (confines) {
        return CONFINING(no_jump(libc(number, a, b, c, d, e, 0)));
    }
    if (number == SYS_prctl || number == SYS_seccomp) {
        return no_jump(libc(number, a, b, c, d, e, 0));
    }
    if (is_plain_fork(number, a, b)) {
        return COPYING_PROCESS(no_jump(libc(number, a, b, c, d, e, 0)));
    }
    return WITHOUT_KEEPER(no_jump(libc(number, a, b, c, d, e, 0)));
}

/* All others are passed on by a jump, arguments as they are: a new process may return from there a second time, on this stack. */
#if defined(__x86_64__)
/* The last argument lies on the stack, where a caller with fewer has something else: it may be read, and is never written. Compilers do
 * write it, when they jump; and a call of confine_syscall that ended in a jump would. */
#define AS_TEXT(number) #number
#define TEXT_OF(number) AS_TEXT(number)
#define COMPARE(number) "cmp $" TEXT_OF(number) ", %rdi\n\t"
#define JUMP_IF(number) COMPARE(number) "je confine_syscall\n\t"
#define TEST_FLAG(flag) "test $" TEXT_OF(flag) ", %esi\n\t"
/* As is_plain_fork has it. */
#define JUMP_IF_PLAIN_CLONE \
    COMPARE(SYS_clone) "jne 1f\n\t" TEST_FLAG(CLONE_VM) "jnz 1f\n\ttest %rdx, %rdx\n\tjz confine_syscall\n1:\n\t"
/* Calls that function, arguments and stack as they were afterwards. */
#define JUMP_IF_PLAIN_CLONE3                                                                    \
    COMPARE(SYS_clone3)                                                                         \
    "jne 2f\n\t"                                                                                \
    "push %rdi\n\tpush %rsi\n\tpush %rdx\n\tpush %rcx\n\tpush %r8\n\tpush %r9\n\tpush %rax\n\t" \
    ".cfi_adjust_cfa_offset 56\n\t"                                                             \
    "mov %rsi, %rdi\n\tmov %rdx, %rsi\n\tcall confine_is_plain_clone3\n\tmov %eax, %r11d\n\t"   \
    "pop %rax\n\tpop %r9\n\tpop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n\t"        \
    ".cfi_adjust_cfa_offset -56\n\t"                                                            \
    "test %r11b, %r11b\n\tjnz confine_syscall\n2:\n\t"
__asm__(".text\n\t"
        ".weak syscall\n\t"
        ".type syscall, @function\n"
        "syscall:\n\t"
        ".cfi_startproc\n\t"
        "endbr64\n\t"
        "mov libc_syscall_function(%rip), %rax\n\t"
        "test %rax, %rax\n\t"
        "jz confine_syscall\n\t" /* */
        JUMP_IF(SYS_prctl) JUMP_IF(SYS_seccomp) JUMP_IF(SYS_unshare) JUMP_IF(SYS_setns) JUMP_IF(SYS_capset) /* */
        JUMP_IF(SYS_setuid) JUMP_IF(SYS_setgid) JUMP_IF(SYS_setreuid) JUMP_IF(SYS_setregid) /* */
        JUMP_IF(SYS_setresuid) JUMP_IF(SYS_setresgid) JUMP_IF(SYS_setgroups) /* */
        JUMP_IF(SYS_close_range) JUMP_IF(SYS_exit) JUMP_IF(SYS_fork) JUMP_IF_PLAIN_CLONE JUMP_IF_PLAIN_CLONE3 /* */
        "jmp *%rax\n\t"
        ".cfi_endproc\n\t"
        ".size syscall, .-syscall\n");
#else
WEAK libc_syscall offered_syscall __asm__("syscall");
long offered_syscall(long number, long a, long b, long c, long d, long e, long f) {
    libc_syscall *libc = (libc_syscall *)__atomic_load_n(&libc_syscall_function, __ATOMIC_RELAXED);
    if (unlikely(libc == NULL || is_watched(number, a, b, c))) {
        return confine_syscall(number, a, b, c, d, e, f);
    }
    return libc(number, a, b, c, d, e, f);
}
#endif

#endif
