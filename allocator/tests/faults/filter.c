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

void filter_enter(const struct filter *filter, bool all_threads) {
    EXPECT(filter->count <= NUMBERS_MOST, "too many calls for one filter");
    struct sock_filter code[NUMBERS_MOST + 3];
    size_t at = 0;
    uint32_t refused = answer(filter->refusal);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < filter->count; i++) {
        code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)filter->numbers[i],
                                                  (uint8_t)(filter->count - i), 0);
    }
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, filter->only_these ? refused : SECCOMP_RET_ALLOW);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, filter->only_these ? SECCOMP_RET_ALLOW : refused);
    struct sock_fprog program = {.len = (unsigned short)at, .filter = code};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs was refused");
    unsigned flags = all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) != 0) {
        expect_skip("this kernel or sandbox allows no seccomp filter (errno %d)", errno);
    }
}
