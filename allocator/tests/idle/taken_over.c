/* An attacker chooses what the library's own thread runs. The program has given its privileges up, as its libc or its own code does, unseen by
 * the library: the thread is still what the program was. Whatever system call it is made to try, it is refused all but those that the
 * library needs. A tracer stands for the attacker: it puts other numbers into the thread's calls. */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "faults/syscall_info.h"
#include "serving.h"
#include "tasks.h"

#if defined(__x86_64__) || defined(__aarch64__)

enum { OTHER = 65534, WAKING_MS = 5000, STOP_CALL = SIGTRAP | 0x80 };

/* Made with the arguments of a wait: an address comes first. Not refused, none does harm. */
static const struct {
    const char *name;
    long number;
} calls[] = {
    {"execve", SYS_execve},
    {"openat", SYS_openat},
    {"getuid", SYS_getuid},
    {"socket", SYS_socket},
    {"ptrace", SYS_ptrace},
    {"dup", SYS_dup},
    {"write to no terminal", SYS_write},
    {"clone", SYS_clone3},
};
enum { CALLS = sizeof calls / sizeof *calls };

static void set_number(pid_t thread, long number) {
#ifdef __x86_64__
    (void)ptrace(PTRACE_POKEUSER, thread, offsetof(struct user, regs.orig_rax), number);
#else
    int word = (int)number;
    struct iovec whole = {&word, sizeof word};
    (void)ptrace(PTRACE_SETREGSET, thread, 0x404 /* NT_ARM_SYSTEM_CALL */, &whole);
#endif
}

/* The thread goes on to the next entry or exit of a call. */
static struct syscall_info next_stop(pid_t thread) {
    struct syscall_info info = {0};
    for (;;) {
        int status = 0;
        EXPECT(ptrace(PTRACE_SYSCALL, thread, 0, 0) == 0, "errno %d", errno);
        EXPECT(waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status), "the thread has ended: %#x",
               (unsigned)status);
        if (WSTOPSIG(status) == STOP_CALL) {
            EXPECT(ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) > 0, "errno %d", errno);
            return info;
        }
    }
}

static void try_call(pid_t thread, size_t call) {
    struct syscall_info info;
    do {
        info = next_stop(thread);
    } while (info.stop != STOP_ENTRY || info.number != SYS_futex);
    set_number(thread, calls[call].number);
    info = next_stop(thread);
    EXPECT(info.stop == STOP_EXIT, "no exit of %s", calls[call].name);
    long result = (long)info.number; /* there, at an exit */
    EXPECT(result == -EPERM, "%s by a thread of another user than the program's: %ld", calls[call].name, result);
}

static void take_over(pid_t thread) {
    if (ptrace(PTRACE_SEIZE, thread, NULL, PTRACE_O_TRACESYSGOOD) != 0) {
        expect_skip("threads are not traced here (errno %d)", errno);
    }
    int status = 0;
    EXPECT(ptrace(PTRACE_INTERRUPT, thread, 0, 0) == 0 && waitpid(thread, &status, __WALL) == thread, "errno %d",
           errno);
    for (size_t call = 0; call < CALLS; call++) {
        try_call(thread, call);
    }
    EXPECT(ptrace(PTRACE_DETACH, thread, 0, 0) == 0, "errno %d", errno);
}

/* By a large block that is freed: it wishes for the keeper at once. */
static long wake_keeper(void) {
    long keeper = 0;
    for (long end = tasks_clock() + WAKING_MS; (keeper = tasks_keeper()) == 0 && tasks_clock() < end; tasks_sleep(1)) {
        free(unseen(malloc(8 << 20)));
    }
    EXPECT(keeper != 0, "nobody came");
    return keeper;
}

/* For the calling thread alone, and unseen: not by libc's syscall, before which the thread would end. */
static long give_up(void) {
    long result;
#ifdef __x86_64__
    register long user __asm__("rdx") = OTHER;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_setresuid), "D"((long)OTHER), "S"((long)OTHER), "r"(user)
                     : "rcx", "r11", "memory");
#else
    register long number __asm__("x8") = SYS_setresuid;
    register long real __asm__("x0") = OTHER;
    register long effective __asm__("x1") = OTHER;
    register long saved __asm__("x2") = OTHER;
    __asm__ volatile("svc #0" : "+r"(real) : "r"(number), "r"(effective), "r"(saved) : "memory");
    result = real;
#endif
    return result;
}

static void serve(int told, int ended) {
    long keeper = wake_keeper();
    EXPECT(give_up() == 0, "root cannot become another user");
    EXPECT(write(told, &keeper, sizeof keeper) == sizeof keeper, "errno %d", errno);
    char end;
    long deadline = tasks_clock() + IDLE_MS; /* the keeper stays while there is something to return */
    while (read(ended, &end, 1) < 0 && errno == EAGAIN && tasks_clock() < deadline) {
        free(unseen(malloc(8 << 20)));
        tasks_sleep(10);
    }
}

int main(void) {
    require_serving();
    if (geteuid() != 0) {
        expect_skip("only root has something to give up");
    }
    if (strstr(getenv("FREESTONE_OPTIONS") != NULL ? getenv("FREESTONE_OPTIONS") : "", "keeper") != NULL) {
        expect_skip("the thread is asked for otherwise");
    }
    int told[2], ended[2];
    EXPECT(pipe(told) == 0 && pipe2(ended, O_NONBLOCK) == 0, "no pipes");
    pid_t process = fork();
    EXPECT(process >= 0, "fork failed");
    if (process == 0) {
        close(told[0]);
        close(ended[1]);
        serve(told[1], ended[0]);
        _exit(0);
    }
    close(told[1]);
    long keeper = 0;
    EXPECT(read(told[0], &keeper, sizeof keeper) == sizeof keeper, "nothing was told");
    take_over((pid_t)keeper);
    close(ended[1]);
    int status = 0;
    EXPECT(waitpid(process, &status, 0) == process && status == 0, "the program ended with status %#x",
           (unsigned)status);
    return 0;
}

#else

int main(void) { expect_skip("there is no such thread on this processor"); }

#endif
