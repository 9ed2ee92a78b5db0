#include "filter.h"

#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "expect.h"

enum { NUMBERS_MOST = 120 };

static uint32_t answer(int refusal) {
    return refusal == FILTER_KILLS ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | (uint32_t)refusal;
}

struct code {
    struct sock_filter steps[NUMBERS_MOST + 3];
    struct sock_fprog program;
};

static void write_code(const struct filter *filter, struct code *code) {
    EXPECT(filter->count <= NUMBERS_MOST, "too many calls for one filter");
    struct sock_filter *step = code->steps;
    uint32_t refused = answer(filter->refusal);
    *step++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < filter->count; i++) {
        *step++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)filter->numbers[i],
                                               (uint8_t)(filter->count - i), 0);
    }
    *step++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, filter->only_these ? refused : SECCOMP_RET_ALLOW);
    *step++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, filter->only_these ? SECCOMP_RET_ALLOW : refused);
    code->program = (struct sock_fprog){.len = (unsigned short)(step - code->steps), .filter = code->steps};
}

void filter_enter(const struct filter *filter, bool all_threads) {
    struct code code;
    write_code(filter, &code);
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs was refused");
    unsigned flags = all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &code.program) != 0) {
        expect_skip("this kernel or sandbox allows no seccomp filter (errno %d)", errno);
    }
}

/* What libc's syscall does, without it. */
static long own_call(long number, long a, long b, long c) {
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long result __asm__("x0") = a;
    __asm__ volatile("svc #0" : "+r"(result) : "r"(x8), "r"(x1), "r"(x2) : "memory");
#else
    expect_skip("no system call without libc is written for this processor");
    long result = number + a + b + c;
#endif
    errno = result < 0 ? (int)-result : 0;
    return result < 0 ? -1 : result;
}

static long want_no_privileges(enum filter_way way) {
    return way == FILTER_BY_PRCTL || way == FILTER_BY_ITSELF ? prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L)
                                                             : syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L);
}

static long put_on(const struct sock_fprog *program, enum filter_way way) {
    switch (way) {
    case FILTER_BY_PRCTL:
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program);
    case FILTER_BY_SYSCALL:
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0L, program);
    case FILTER_BY_SYSCALL_PRCTL:
        return syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0L, 0L);
    default:
        return own_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)program);
    }
}

void filter_enter_by(const struct filter *filter, enum filter_way way) {
    struct code code;
    write_code(filter, &code);
    if (way != FILTER_BY_ITSELF && put_on(&code.program, way) == 0) {
        return;
    }
    EXPECT(want_no_privileges(way) == 0, "no_new_privs was refused");
    if (put_on(&code.program, way) != 0) {
        expect_skip("this kernel or sandbox allows no seccomp filter (errno %d)", errno);
    }
}
