/* A signal's handler forks wherever it happens to interrupt a program of one thread, also in the middle of malloc
 * and free, as fork in such a program may (glibc goes on). The child, inside the handler, allocates, frees, forks
 * again, execs or ends; the parent goes on where it was, and its blocks are as they were.
 *
 *   fork_in_handler FORKS|soak           the child stays in the handler
 *   fork_in_handler FORKS|soak returns   it forks once more, goes on where its parent was, and ends later */
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "soak.h"

extern char **environ;

enum { TABLE = 2000, KEPT = 300, PATIENCE_SECONDS = 30, EXEC_EVERY = 64, FORK_EVERY = 16 };

static volatile size_t forks;
static volatile bool done;
static bool returns; /* children do */
static volatile size_t last_steps; /* of a child that has returned */
static struct soak soak;
static struct {
    unsigned char *address;
    size_t size;
} table[TABLE];
static unsigned char *kept[KEPT];

static size_t size_of(size_t i) { return 8 + i * 131 % 5000; }

static void await(pid_t process, const char *whose) {
    int status = 0;
    pid_t ended;
    while ((ended = waitpid(process, &status, 0)) < 0) {
    }
    EXPECT(ended == process, "waitpid failed");
    EXPECT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "%s %zu hangs", whose, (size_t)forks);
    EXPECT(status == 0, "%s %zu ended with status 0x%x", whose, (size_t)forks, (unsigned)status);
}

static void use_heap(uint64_t random) {
    void *block[200];
    for (size_t i = 0; i < 200; i++) {
        size_t size = 1 + pattern_below(&random, (size_t)1 << (4 + pattern_below(&random, i % 20 == 0 ? 17 : 9)));
        block[i] = calloc(1, size);
        EXPECT(block[i] != NULL && pattern_not_zero(block[i], size) == SIZE_MAX, "calloc(%zu) fails in the child",
               size);
        memset(block[i], 1, size);
    }
    for (size_t i = 0; i < 200; i++) {
        free(block[i]);
    }
    (void)freestone_purge();
}

static void fork_again(uint64_t random) {
    pid_t grandchild = fork();
    if (grandchild == 0) {
        alarm(PATIENCE_SECONDS);
        use_heap(random);
        _exit(0);
    }
    await(grandchild, "grandchild");
}

static void child(size_t number) {
    signal(SIGALRM, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(PATIENCE_SECONDS);
    if (returns) {
        fork_again(number);
        last_steps = 3;
        return;
    }
    if (number % EXEC_EVERY == 0) {
        char *command[] = {(char[]){"fork_in_handler"}, (char[]){"nothing"}, NULL};
        execve("/proc/self/exe", command, environ);
        _exit(1);
    }
    if (number % 8 == 1) {
        _exit(0);
    }
    use_heap(number);
    for (size_t i = 0; i < KEPT; i++) {
        EXPECT(pattern_mismatch(kept[i], size_of(i), i) == SIZE_MAX, "block %zu changed in the child", i);
        free(kept[i]);
    }
    if (number % FORK_EVERY == 2) {
        fork_again(number + 1);
    }
    _exit(0);
}

static void set_timer(suseconds_t microseconds) {
    struct itimerval timer = {.it_value.tv_usec = microseconds};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void interrupt(int signal) {
    (void)signal;
    pid_t process = fork();
    EXPECT(process >= 0, "fork failed");
    if (process == 0) {
        child(forks);
        return;
    }
    await(process, "child");
    forks++;
    done = !soak_goes_on(&soak, forks);
    if (!done) {
        uint64_t random = forks;
        set_timer(1 + (suseconds_t)pattern_below(&random, 150));
    }
}

/* Mostly slow paths: blocks of many classes, each class in bursts, and spans. */
static void churn(uint64_t *random) {
    size_t bits = 4 + pattern_below(random, 15), first = pattern_below(random, TABLE);
    for (size_t i = 0; i < TABLE / 4; i++) {
        size_t t = (first + i) % TABLE;
        EXPECT(table[t].address == NULL || pattern_mismatch(table[t].address, table[t].size, t) == SIZE_MAX,
               "a block has changed after %zu forks", (size_t)forks);
        free(table[t].address);
        table[t].size = 1 + pattern_below(random, (size_t)1 << bits);
        table[t].address = malloc(table[t].size);
        EXPECT(table[t].address != NULL, "malloc failed");
        if (table[t].size > 512) {
            table[t].size = 512;
        }
        pattern_fill(table[t].address, 0, table[t].size, t);
        if (i % 400 == 0) {
            (void)freestone_purge();
        }
    }
}

/* Nothing but fast paths, nearly: small blocks, of which one byte is looked at. */
static void churn_small(uint64_t *random) {
    for (size_t i = 0; i < 2 * (size_t)TABLE; i++) {
        size_t t = pattern_below(random, TABLE);
        if (table[t].address == NULL) {
            table[t].address = malloc(1 + t * 7 % 900);
            EXPECT(table[t].address != NULL, "malloc failed");
            table[t].address[0] = (unsigned char)t;
        } else {
            EXPECT(table[t].address[0] == (unsigned char)t, "a block has changed after %zu forks", (size_t)forks);
            free(table[t].address);
            table[t].address = NULL;
        }
    }
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2 || count == 3, "usage: fork_in_handler FORKS|soak [returns]");
    returns = count == 3;
    if (strcmp(arguments[1], "nothing") == 0) { /* started by a child */
        free(unseen(malloc(100)));
        return 0;
    }
    for (size_t i = 0; i < KEPT; i++) {
        kept[i] = malloc(size_of(i));
        EXPECT(kept[i] != NULL, "malloc failed");
        pattern_fill(kept[i], 0, size_of(i), i);
    }
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    EXPECT(sigaction(SIGALRM, &action, NULL) == 0, "no handler");
    soak = soak_begin(arguments[1]);
    set_timer(1000);
    uint64_t random = 1;
    while (!done) {
        if (returns) {
            churn_small(&random);
        } else {
            churn(&random);
        }
        if (last_steps > 0 && --last_steps == 0) {
            _exit(0);
        }
    }
    for (size_t i = 0; i < KEPT; i++) {
        EXPECT(pattern_mismatch(kept[i], size_of(i), i) == SIZE_MAX, "block %zu changed in the parent", i);
    }
    printf("%zu forks\n", (size_t)forks);
    return 0;
}
