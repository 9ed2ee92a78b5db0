/* The filter answers the chosen calls with SIGSYS. The handler asks the test; a call that may pass is made again from
 * one known instruction, which the filter lets through by its address. */
#include "gate.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "expect.h"

#if defined(__x86_64__) || defined(__aarch64__)

long gate_pass(long number, long a, long b, long c, long d, long e, long f);
extern const char gate_passed[]; /* the address the kernel sees as the origin of a call by gate_pass */

#ifdef __x86_64__

enum { ARCHITECTURE = (int)AUDIT_ARCH_X86_64 };

__asm__(".text\n"
        ".type gate_pass, @function\n"
        "gate_pass:\n"
        "  mov %rdi, %rax\n"
        "  mov %rsi, %rdi\n"
        "  mov %rdx, %rsi\n"
        "  mov %rcx, %rdx\n"
        "  mov %r8, %r10\n"
        "  mov %r9, %r8\n"
        "  mov 8(%rsp), %r9\n"
        "  syscall\n"
        "gate_passed:\n"
        "  ret\n");

static void arguments_of(const ucontext_t *context, long arguments[6]) {
    static const int registers[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    for (size_t i = 0; i < 6; i++) {
        arguments[i] = (long)context->uc_mcontext.gregs[registers[i]];
    }
}

static void answer(ucontext_t *context, long result) { context->uc_mcontext.gregs[REG_RAX] = result; }

#else

enum { ARCHITECTURE = (int)AUDIT_ARCH_AARCH64 };

__asm__(".text\n"
        ".type gate_pass, %function\n"
        "gate_pass:\n"
        "  mov x8, x0\n"
        "  mov x0, x1\n"
        "  mov x1, x2\n"
        "  mov x2, x3\n"
        "  mov x3, x4\n"
        "  mov x4, x5\n"
        "  mov x5, x6\n"
        "  svc #0\n"
        "gate_passed:\n"
        "  ret\n");

static void arguments_of(const ucontext_t *context, long arguments[6]) {
    for (size_t i = 0; i < 6; i++) {
        arguments[i] = (long)context->uc_mcontext.regs[i];
    }
}

static void answer(ucontext_t *context, long result) { context->uc_mcontext.regs[0] = (unsigned long)result; }

#endif

static gate_decision *decide_call;

static void stopped(int signal, siginfo_t *info, void *context) {
    (void)signal;
    int saved = errno;
    long arguments[6];
    arguments_of(context, arguments);
    int error = decide_call(info->si_syscall, arguments);
    answer(context, error != 0 ? -error
                               : gate_pass(info->si_syscall, arguments[0], arguments[1], arguments[2], arguments[3],
                                           arguments[4], arguments[5]));
    errno = saved;
}

enum { CALLS_MOST = 64 };

void gate_close(const long *numbers, size_t count, bool all_others, gate_decision *decide) {
    EXPECT(count <= CALLS_MOST, "too many calls for one gate");
    decide_call = decide;
    struct sigaction action = {.sa_sigaction = stopped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    EXPECT(sigaction(SIGSYS, &action, NULL) == 0, "no handler for SIGSYS");

    uint64_t origin = (uint64_t)(uintptr_t)gate_passed;
    struct sock_filter filter[CALLS_MOST + 16];
    size_t at = 0;
#define LOAD(field, offset) \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, field) + (offset)))
#define EQUAL(value, yes, no) \
    (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), (uint8_t)(yes), (uint8_t)(no))
#define ANSWER(value) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, (uint32_t)(value))
    filter[at++] = LOAD(arch, 0);
    filter[at++] = EQUAL(ARCHITECTURE, 1, 0);
    filter[at++] = ANSWER(SECCOMP_RET_KILL_PROCESS);
    filter[at++] = LOAD(instruction_pointer, 0);
    filter[at++] = EQUAL(origin, 0, 3);
    filter[at++] = LOAD(instruction_pointer, 4);
    filter[at++] = EQUAL(origin >> 32, 0, 1);
    filter[at++] = ANSWER(SECCOMP_RET_ALLOW);
    filter[at++] = LOAD(nr, 0);
    for (size_t i = 0; i < count; i++) {
        filter[at++] = EQUAL(numbers[i], count - i, 0);
    }
    filter[at++] = ANSWER(all_others ? SECCOMP_RET_TRAP : SECCOMP_RET_ALLOW);
    filter[at++] = ANSWER(all_others ? SECCOMP_RET_ALLOW : SECCOMP_RET_TRAP);
    struct sock_fprog program = {.len = (unsigned short)at, .filter = filter};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs was refused");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        expect_skip("this kernel or sandbox allows no seccomp filter (errno %d)", errno);
    }
}

#else

void gate_close(const long *numbers, size_t count, bool all_others, gate_decision *decide) {
    (void)numbers;
    (void)count;
    (void)all_others;
    (void)decide;
    expect_skip("the gate knows x86-64 and aarch64 only");
}

#endif
