/* refuse CALL PROGRAM [ARGUMENT ...]: runs a program under a kernel that refuses one kind of call, as a container's does:
 *
 *   clone   new threads, by any call (EPERM)
 *   purge   MADV_DONTNEED (EINVAL)
 *   huge    MADV_HUGEPAGE and MADV_NOHUGEPAGE (EINVAL)
 *   place   mmap with a flag that libc's malloc does not pass, MAP_FIXED_NOREPLACE (EPERM)
 *   handler a handler of a signal, set or asked for (EPERM) */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "../expect.h"

static const struct {
    const char *name;
    long number;
    int place; /* of the argument that decides; -1: none does */
    uint32_t mask, value; /* refused if it has this value under the mask */
    int error;
} refusals[] = {
    {"clone", SYS_clone, -1, 0, 0, EPERM},
    {"clone", SYS_clone3, -1, 0, 0, EPERM},
    {"purge", SYS_madvise, 2, UINT32_MAX, MADV_DONTNEED, EINVAL},
    {"huge", SYS_madvise, 2, UINT32_MAX, MADV_HUGEPAGE, EINVAL},
    {"huge", SYS_madvise, 2, UINT32_MAX, MADV_NOHUGEPAGE, EINVAL},
    {"handler", SYS_rt_sigaction, -1, 0, 0, EPERM},
    {"place", SYS_mmap, 3, MAP_FIXED_NOREPLACE, MAP_FIXED_NOREPLACE, EPERM},
};

/* One filter each: the kernel asks all there are, and the sternest answer counts. */
static void refuse(size_t i) {
    size_t place = refusals[i].place < 0 ? 0 : (size_t)refusals[i].place;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refusals[i].number, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * place)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, refusals[i].mask),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refusals[i].value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)refusals[i].error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs was refused");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        expect_skip("this kernel or sandbox allows no seccomp filter (errno %d)", errno);
    }
}

int main(int count, char **arguments) {
    EXPECT(count >= 3, "usage: refuse CALL PROGRAM [ARGUMENT ...]");
    size_t refused = 0;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (strcmp(arguments[1], refusals[i].name) == 0) {
            refuse(i);
            refused++;
        }
    }
    EXPECT(refused > 0, "'%s' is no call that can be refused", arguments[1]);
    execv(arguments[2], arguments + 2);
    EXPECT(0, "%s cannot be run (errno %d)", arguments[2], errno);
}
