/* A program in a sandbox: its allocator makes no call that the sandbox ends it for, and serves on where one is refused.
 *
 *   sandboxed service      a service of systemd's: the filter is there before the program is
 *   sandboxed container    a container of Docker's: likewise; nothing is ended, calls are refused
 *   sandboxed strict       the filter of OpenSSH, put on by the program beside its threads, for all of them
 *   sandboxed malloc       likewise; what glibc's malloc calls by itself, and nothing else
 *
 * In each it allocates and frees in four threads, those of service and container born inside, and leaves much free for a while. */
#include "hazard.h"

#include <errno.h>
#include <sys/prctl.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "churn.h"
#include "profiles.h"

enum { THREADS = 3, STEPS = 20000, BLOCKS = 100000, BLOCK = 400, REST_MS = 1500, STEPS_MOST = 1024 };
enum { KILL = -1, ALLOW = 0 }; /* else an errno value */

struct rule {
    const long *calls;
    size_t count;
    int answer;
};

struct profile {
    const char *name;
    struct rule rules[2];
    int else_answer;
    bool before; /* the program is started inside */
};

#define CALLS(list) list, sizeof(list) / sizeof *(list)

static const long clone_calls[] = {SYS_clone3};
static const struct profile profiles[] = {
    {"service", {{CALLS(service_calls), ALLOW}}, KILL, true},
    {"container", {{CALLS(container_refuses), EPERM}, {CALLS(clone_calls), ENOSYS}}, ALLOW, true},
    {"strict", {{CALLS(strict_calls), ALLOW}, {CALLS(strict_refuses), EACCES}}, KILL, false},
    {"malloc", {{CALLS(malloc_calls), ALLOW}}, KILL, false},
};

static uint32_t code_of(int answer) {
    return answer == KILL    ? SECCOMP_RET_KILL_PROCESS
           : answer == ALLOW ? SECCOMP_RET_ALLOW
                             : SECCOMP_RET_ERRNO | (uint32_t)answer;
}

static void enter(const struct profile *profile) {
    static struct sock_filter code[STEPS_MOST];
    size_t steps = 0;
    code[steps++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t r = 0; r < 2; r++) {
        const struct rule *rule = &profile->rules[r];
        for (size_t i = 0; i < rule->count; i++) {
            EXPECT(steps + 3 <= STEPS_MOST, "the filter is too long");
            code[steps++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rule->calls[i], 0, 1);
            code[steps++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, code_of(rule->answer));
        }
    }
    code[steps++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, code_of(profile->else_answer));
    struct sock_fprog program = {.len = (unsigned short)steps, .filter = code};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs was refused");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        expect_skip("this kernel or sandbox allows no seccomp filter (errno %d)", errno);
    }
}

static void work(uint64_t random) {
    struct churn churn = {.random = random, .most_bits = 26};
    for (size_t i = 0; i < STEPS; i++) {
        churn_step(&churn);
    }
    churn_end(&churn);
}

static pthread_barrier_t ready, done;

static void *in_thread(void *argument) {
    work((uintptr_t)argument);
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&ready); /* the filter is there */
    work((uintptr_t)argument + 10);
    pthread_barrier_wait(&done);
    return NULL; /* where a thread may be born, it may end */
}

static void *in_thread_of_the_start(void *argument) {
    in_thread(argument);
    for (;;) { /* the end of a thread takes calls of libc's own */
        tasks_sleep(1000);
    }
    return argument;
}

static void leave_much_free(void) {
    TABLE(block, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(BLOCK);
        EXPECT(block[i] != NULL, "malloc failed");
        memset(block[i], 1, BLOCK);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % 100 != 0) {
            free(block[i]);
        }
    }
    for (long end = tasks_clock() + REST_MS; tasks_clock() < end; tasks_sleep(50)) {
        free(unseen(malloc(1 << 20)));
    }
    for (size_t i = 0; i < BLOCKS; i += 100) {
        free(block[i]);
    }
}

static void live(const struct profile *profile) {
    pthread_t thread[THREADS];
    pthread_barrier_init(&ready, NULL, THREADS + 1);
    pthread_barrier_init(&done, NULL, THREADS + 1);
    for (uintptr_t t = 0; t < THREADS; t++) {
        EXPECT(pthread_create(&thread[t], NULL, profile->before ? in_thread : in_thread_of_the_start,
                              (void *)(t + 2)) == 0,
               "no thread");
    }
    pthread_barrier_wait(&ready);
    if (!profile->before) {
        leave_much_free(); /* whoever likes to have a thread for that has one */
        enter(profile);
    }
    pthread_barrier_wait(&ready);
    work(1);
    leave_much_free();
    pthread_barrier_wait(&done);
    for (size_t t = 0; profile->before && t < THREADS; t++) {
        pthread_join(thread[t], NULL);
    }
    leave_much_free();
    char said[64]; /* no stream: its first look at a file would be a call of libc's */
    int length = snprintf(said, sizeof said, "%s: lives on\n", profile->name);
    _exit(write(STDOUT_FILENO, said, (size_t)length) < 0);
}

int main(int count, char **arguments) {
    const struct profile *profile = NULL;
    for (size_t i = 0; count >= 2 && i < sizeof profiles / sizeof *profiles; i++) {
        profile = strcmp(arguments[1], profiles[i].name) == 0 ? &profiles[i] : profile;
    }
    EXPECT(profile != NULL, "usage: sandboxed service|container|strict|malloc");
    require_serving();
    if (profile->before && count == 2) {
        enter(profile);
        execl("/proc/self/exe", arguments[0], arguments[1], "inside", NULL);
        _exit(127);
    }
    live(profile);
}
