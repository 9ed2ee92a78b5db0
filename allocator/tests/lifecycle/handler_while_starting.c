/* A signal comes while malloc starts the keeper, between the claim and the thread, and its handler calls setuid, which handlers may, and for which
 * the keeper has to leave. The call must not wait for the frame that it has interrupted: signals come so often that this would never go
 * on. A tracer sends the first at the call which the library makes there (RLIMIT_NPROC is asked for). */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "faults/syscall_info.h"
#include "idle/tasks.h"

enum { ROUNDS = 40, BLOCKS = 64, SIZE = 300000, WAIT_MS = 10000, PERIOD_US = 5000 };

static volatile sig_atomic_t calls;

static void handler(int number) {
    (void)number;
    (void)!setuid(getuid());
    calls++;
}

static void set_timer(int microseconds) {
    struct itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, NULL);
}

__attribute__((noreturn)) static void work(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    EXPECT(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0, "not traced");
    raise(SIGSTOP);
    set_timer(PERIOD_US);
    char *block[BLOCKS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            block[i] = malloc(SIZE);
            EXPECT(block[i] != NULL, "no block");
            block[i][0] = 1;
        }
        for (int i = 0; i < BLOCKS; i++) {
            free(block[i]);
        }
        tasks_sleep(1);
    }
    set_timer(0);
    EXPECT(calls > 0, "no signal came");
    _exit(0);
}

static bool asks_for_tasks(pid_t child) {
    struct syscall_info info = {0};
    return ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0 && info.stop == STOP_ENTRY &&
           info.number == SYS_prlimit64 && info.arguments[1] == RLIMIT_NPROC;
}

int main(void) {
    require_serving();
    pid_t child = fork();
    if (child == 0) {
        work();
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "the child did not stop");
    EXPECT(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0, "no options");
    bool sent = false;
    (void)ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    for (long waited = 0; waited < WAIT_MS;) {
        if (waitpid(child, &status, WNOHANG) == 0) {
            tasks_sleep(1);
            waited++;
            continue;
        }
        if (!WIFSTOPPED(status)) {
            break;
        }
        int stop = WSTOPSIG(status);
        long deliver = stop == (SIGTRAP | 0x80) || stop == SIGSTOP ? 0 : stop;
        if (!sent && stop == (SIGTRAP | 0x80) && asks_for_tasks(child)) {
            kill(child, SIGALRM);
            sent = true;
        }
        (void)ptrace(sent ? PTRACE_CONT : PTRACE_SYSCALL, child, NULL, deliver);
    }
    EXPECT(sent, "the keeper was never started");
    EXPECT(!WIFSTOPPED(status) && WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "no end after %d ms, or an end with wait status %#x", WAIT_MS, (unsigned)status);
    return 0;
}
