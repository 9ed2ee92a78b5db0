/* Handlers for faults that the program sets after blocks were guarded: each fault in a guarded block is reported, and then the program's own handler
 * called, as it asked for; whatever the program asks of what is set, it is told what it has set itself. And a program that survives a report is
 * told of its next bug as well.
 *
 *   late_handlers told|called|once|nested|ignored|second */
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { STACK_BYTES = 64 * 1024, LINES = 1 << 16 };

typedef void handler(int number);
handler *__sysv_signal(int number, handler *action);
int set_interrupting(int number, int interrupts) __asm__("siginterrupt"); /* glibc says that it is old */

static sigjmp_buf back;
static volatile int calls;
static volatile bool on_own_stack, held_itself, held_other;
static _Alignas(16) char stack[STACK_BYTES];

static void on_fault(int number) {
    char here;
    sigset_t held;
    calls++;
    on_own_stack = (uintptr_t)&here - (uintptr_t)stack < STACK_BYTES;
    (void)sigprocmask(SIG_BLOCK, NULL, &held);
    held_itself = sigismember(&held, number) == 1;
    held_other = sigismember(&held, SIGUSR1) == 1;
    siglongjmp(back, 1);
}

static void on_fault_with_info(int number, siginfo_t *info, void *context) {
    EXPECT(info->si_signo == number && context != NULL, "no information");
    on_fault(number);
}

static void other_handler(int number) { (void)number; }

/* Each allocation is guarded. */
static void guard_one(void) { free(unseen(malloc(100))); }

static char *freed_block(void) {
    char *block = unseen(malloc(100));
    EXPECT(block != NULL, "no memory");
    free(block);
    return block;
}

/* Lines on standard error while `run` runs, which say so. */
static size_t reports_of(void (*run)(void), const char *what) {
    static char text[LINES];
    int ends[2], error = dup(STDERR_FILENO);
    EXPECT(error >= 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO, "no pipe");
    run();
    EXPECT(dup2(error, STDERR_FILENO) == STDERR_FILENO && close(ends[1]) == 0, "no standard error");
    size_t length = 0, found = 0;
    for (ssize_t more; (more = read(ends[0], text + length, LINES - 1 - length)) > 0; length += (size_t)more) {
    }
    text[length] = '\0';
    for (char *at = text; (at = strstr(at, what)) != NULL; at++) {
        found++;
    }
    close(error);
    close(ends[0]);
    return found;
}

static void fault(void) {
    char *volatile block = freed_block();
    if (sigsetjmp(back, 1) == 0) {
        *(volatile char *)block = 1;
        EXPECT(false, "no fault");
    }
}

static void expect_reported(const char *how) {
    calls = 0;
    size_t reports = reports_of(fault, "freestone: use after free");
    EXPECT(reports == 1 && calls == 1, "set by %s: %zu reports, %d calls", how, reports, calls);
}

static struct sigaction asked(int number) {
    struct sigaction action;
    EXPECT(sigaction(number, NULL, &action) == 0, "sigaction");
    return action;
}

static void told(void) {
    struct sigaction first = {.sa_sigaction = on_fault_with_info, .sa_flags = SA_SIGINFO | SA_ONSTACK}, before;
    sigaddset(&first.sa_mask, SIGUSR1);
    EXPECT(asked(SIGSEGV).sa_handler == SIG_DFL && asked(SIGBUS).sa_handler == SIG_DFL, "something is set");
    EXPECT(sigaction(SIGSEGV, &first, &before) == 0 && before.sa_handler == SIG_DFL, "something was set");
    struct sigaction seen = asked(SIGSEGV);
    EXPECT(seen.sa_sigaction == on_fault_with_info &&
               (seen.sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_RESTART)) == (SA_SIGINFO | SA_ONSTACK) &&
               sigismember(&seen.sa_mask, SIGUSR1) == 1 && sigismember(&seen.sa_mask, SIGUSR2) == 0,
           "what was set is not what is told");
    expect_reported("sigaction");
    EXPECT((void *)signal(SIGSEGV, on_fault) == (void *)on_fault_with_info, "signal does not say what was set");
    expect_reported("signal");
    for (int restarts = 0; restarts < 2; restarts++) {
        EXPECT(set_interrupting(SIGSEGV, !restarts) == 0, "siginterrupt");
        seen = asked(SIGSEGV);
        EXPECT(seen.sa_handler == on_fault && ((seen.sa_flags & SA_RESTART) != 0) == (restarts != 0),
               "what siginterrupt has set is not what is told");
    }
    expect_reported("siginterrupt");
    EXPECT(__sysv_signal(SIGSEGV, on_fault) == on_fault, "__sysv_signal does not say what was set");
    expect_reported("__sysv_signal");
#ifdef __GLIBC__ /* musl's is signal by another name */
    EXPECT(asked(SIGSEGV).sa_handler == SIG_DFL, "it is set once more");
#endif
    EXPECT(signal(SIGSEGV, SIG_DFL) != SIG_ERR && signal(SIGSEGV, other_handler) == SIG_DFL &&
               signal(SIGSEGV, on_fault) == other_handler,
           "signal");
    struct sigaction both = {.sa_handler = other_handler};
    EXPECT(sigaction(SIGSEGV, &both, unseen(&both)) == 0 && both.sa_handler == on_fault, "where both are the same");
    EXPECT(sigaction(SIGSEGV, &both, NULL) == 0 && sigaction(SIGSEGV, &before, &seen) == 0 &&
               seen.sa_handler == on_fault,
           "nowhere to tell");
    EXPECT(sigaction(SIGKILL, &both, NULL) != 0 && sigaction(-1, NULL, &both) != 0, "errors");
    EXPECT(sigaction(SIGUSR1, &both, &seen) == 0 && seen.sa_handler == SIG_DFL && asked(SIGUSR1).sa_handler == on_fault,
           "another signal");
}

static void called(void) {
    stack_t own = {.ss_sp = stack, .ss_size = STACK_BYTES};
    EXPECT(sigaltstack(&own, NULL) == 0, "sigaltstack");
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    sigaddset(&action.sa_mask, SIGUSR1);
    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
    expect_reported("sigaction");
    EXPECT(on_own_stack && held_itself && held_other, "%d, %d, %d", on_own_stack, held_itself, held_other);
    action = (struct sigaction){.sa_sigaction = on_fault_with_info, .sa_flags = SA_SIGINFO | SA_NODEFER};
    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
    expect_reported("sigaction, with information");
    EXPECT(!on_own_stack && !held_itself && !held_other, "%d, %d, %d", on_own_stack, held_itself, held_other);
}

static void once(void) {
    for (int round = 0; round < 2; round++) {
        struct sigaction action = {.sa_handler = on_fault, .sa_flags = (int)SA_RESETHAND};
        EXPECT(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
        expect_reported("sigaction, once");
        EXPECT(asked(SIGSEGV).sa_handler == SIG_DFL, "it stays");
    }
}

/* A handler that passes on to whoever was there before, as it was told. */
static struct sigaction passed_to;

static void pass_on(int number) {
    EXPECT(passed_to.sa_handler == on_fault, "not the program's");
    passed_to.sa_handler(number);
}

static void nested(void) {
    EXPECT(signal(SIGSEGV, on_fault) == SIG_DFL, "signal");
    struct sigaction action = {.sa_handler = pass_on};
    EXPECT(sigaction(SIGSEGV, &action, &passed_to) == 0, "sigaction");
    expect_reported("one that passes on");
    guard_one();
    expect_reported("one that passes on, again");
}

static void ignored(void) {
    EXPECT(signal(SIGSEGV, SIG_IGN) == SIG_DFL, "signal");
    EXPECT(asked(SIGSEGV).sa_handler == SIG_IGN, "not ignored");
    EXPECT(raise(SIGSEGV) == 0, "raise");
    pid_t child = fork();
    if (child == 0) {
        execle("/bin/sh", "sh", "-c", "kill -SEGV $$; exit 7", (char *)NULL, (char *[]){NULL});
        _exit(1);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7,
           "what it executes does not ignore the signal: %#x", (unsigned)status);
    EXPECT(signal(SIGSEGV, on_fault) == SIG_IGN, "signal");
    expect_reported("signal, after it was ignored");
}

static pid_t child;

static void free_twice(void) {
    child = fork();
    if (child == 0) {
        free(freed_block());
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %#x",
           (unsigned)status);
}

static void second(void) {
    EXPECT(signal(SIGSEGV, on_fault) == SIG_DFL, "signal");
    for (int round = 0; round < 3; round++) {
        expect_reported("signal");
        size_t reports = reports_of(free_twice, "freestone: double free");
        EXPECT(reports == 1, "%zu lines of a double free after a report that the program has survived", reports);
    }
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {{"told", told},     {"called", called},   {"once", once},
                     {"nested", nested}, {"ignored", ignored}, {"second", second}};
    require_serving();
    guard_one(); /* from now on the library's own handler is there */
    for (size_t s = 0; count > 1 && s < sizeof scenarios / sizeof *scenarios; s++) {
        if (strcmp(arguments[1], scenarios[s].name) == 0) {
            scenarios[s].run();
            return 0;
        }
    }
    EXPECT(false, "usage: late_handlers told|called|once|nested|ignored|second");
    return 1;
}
