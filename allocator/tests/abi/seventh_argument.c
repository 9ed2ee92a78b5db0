/* syscall takes up to seven arguments, and callers with fewer have something else where the last would be, on their stack: it may be read
 * and is never written. Results, errno and all arguments are as libc's. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

#if defined(__x86_64__)

static const long sentinel = 0x5ca1ab1e5ca1ab1e;

/* What `syscall` returns; the slot of its seventh argument, on the stack, holds `*slot` before and is read afterwards. */
static long call(long number, long a, long b, long c, long d, long e, long *slot) {
    register long r8 __asm__("r8") = d;
    register long r9 __asm__("r9") = e;
    register long *place __asm__("rbx") = slot;
    register long stack __asm__("r12");
    long result;
    __asm__ volatile("mov %%rsp, %%r12\n\t"
                     "sub $128, %%rsp\n\t" /* what the compiler keeps below the stack pointer */
                     "and $-16, %%rsp\n\t"
                     "push (%%rbx)\n\t"
                     "push (%%rbx)\n\t"
                     "call syscall@PLT\n\t"
                     "pop (%%rbx)\n\t"
                     "mov %%r12, %%rsp\n\t"
                     : "=a"(result), "+D"(number), "+S"(a), "+d"(b), "+c"(c), "+r"(r8), "+r"(r9), "+r"(place),
                       "=r"(stack)
                     :
                     : "r10", "r11", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                       "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return result;
}

static void expect_call(const char *what, long number, long a, long b, long result, int error) {
    long slot = sentinel;
    errno = 0;
    long found = call(number, a, b, 0, 0, 0, &slot);
    EXPECT(found == result && errno == error, "%s: %ld, errno %d", what, found, errno);
    EXPECT(slot == sentinel, "%s: the caller's stack holds %#lx", what, (unsigned long)slot);
}

static void all_six_arrive(void) {
    enum { PAGE = 4096 };
    static char second[PAGE];
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    EXPECT(file >= 0 && pread(file, second, PAGE, PAGE) == PAGE, "the program cannot read itself");
    long slot = PAGE; /* where the mapping begins in the file */
    char *at = (char *)call(SYS_mmap, 0, PAGE, PROT_READ, MAP_PRIVATE, file, &slot);
    EXPECT(at != MAP_FAILED, "mmap: errno %d", errno);
    EXPECT(memcmp(at, second, PAGE) == 0, "the sixth argument of a system call has changed");
    EXPECT(slot == PAGE, "the seventh of syscall was written");
    munmap(at, PAGE);
    close(file);
}

int main(void) {
    require_serving();
    (void)&syscall; /* so that it is linked: the assembly is not seen */
    char name[16] = "";
    for (int turn = 0; turn < 2; turn++) { /* the keeper may come between */
        EXPECT(prctl(PR_SET_NAME, "seventh") == 0, "PR_SET_NAME fails");
        expect_call("prctl(PR_GET_NAME)", SYS_prctl, PR_GET_NAME, (long)name, 0, 0);
        EXPECT(strcmp(name, "seventh") == 0, "the name is '%s'", name);
        expect_call("prctl(-1)", SYS_prctl, -1, 0, -1, EINVAL);
        expect_call("prctl(PR_SET_NO_NEW_PRIVS, 7)", SYS_prctl, PR_SET_NO_NEW_PRIVS, 7, -1, EINVAL);
        expect_call("unshare(0)", SYS_unshare, 0, 0, 0, 0);
        expect_call("unshare of what there is not", SYS_unshare, 1, 0, -1, EINVAL);
        expect_call("setns(-1)", SYS_setns, -1, 0, -1, EBADF);
        expect_call("seccomp(99)", SYS_seccomp, 99, 0, -1, EINVAL);
        expect_call("capset(NULL)", SYS_capset, 0, 0, -1, EFAULT);
        expect_call("getpid", SYS_getpid, 0, 0, getpid(), 0);
        expect_call("close(-1)", SYS_close, -1, 0, -1, EBADF);
        free(unseen(malloc(100)));
    }
    all_six_arrive();
    return 0;
}

#else

int main(void) { expect_skip("on this processor all seven arguments are in registers"); }

#endif
