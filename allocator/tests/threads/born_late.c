/* Threads that allocate nothing until they end, and then in a late pass over the destructors of their keys, or when no key was to be had, or that end
 * by a system call of their own: what each leaves is found sooner or later, and the process does not grow with their number.
 *
 *   born_late [PASS|no-key]      without: each way, in a process of its own */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"

enum { THREADS = 3000, BLOCKS = 50, KIB_A_THREAD = 1 };

static pthread_key_t key;
static uintptr_t pass_wanted;

static void work(void) {
    void *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = unseen(malloc(16 + i * 40));
        EXPECT(block[i] != NULL, "no block");
        memset(block[i], 1, 16 + i * 40);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
}

static void at_the_end(void *pass) {
    if ((uintptr_t)pass == pass_wanted) {
        work();
    } else {
        EXPECT(pthread_setspecific(key, (char *)pass + 1) == 0, "the key is not set again");
    }
}

static void *ends_late(void *unused) {
    EXPECT(pthread_setspecific(key, (void *)1) == 0, "the key is not set");
    return unused;
}

static void *works(void *unused) {
    work();
    return unused;
}

static void in_turn(size_t threads, void *(*run)(void *)) {
    for (size_t t = 0; t < threads; t++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, run, NULL) == 0, "no thread");
        EXPECT(pthread_join(thread, NULL) == 0, "no end");
    }
}

static void grow_little(void *(*run)(void *), const char *what) {
    in_turn(THREADS / 10, run);
    size_t before = resident_kib();
    in_turn(THREADS, run);
    size_t after = resident_kib();
    EXPECT(after < before + (size_t)THREADS * KIB_A_THREAD, "%s: %d threads, and %zu KiB have become %zu", what,
           THREADS, before, after);
}

/* Before the library's first allocation, which is when it takes its own. */
__attribute__((constructor(101))) static void take_all_keys(void) {
    pthread_key_t one;
    while (getenv("BORN_LATE_WITHOUT_KEY") != NULL && pthread_key_create(&one, NULL) == 0) {
    }
}

static void run_all(void) {
    static const char *const ways[] = {"1", "2", "3", "4", "no-key"};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        pid_t process = fork();
        EXPECT(process >= 0, "fork failed");
        if (process == 0) {
            EXPECT(strcmp(ways[w], "no-key") != 0 || setenv("BORN_LATE_WITHOUT_KEY", "1", 1) == 0, "no variable");
            execl("/proc/self/exe", "born_late", ways[w], NULL);
            _exit(127);
        }
        int status = 0;
        EXPECT(waitpid(process, &status, 0) == process && status == 0, "%s: wait status %#x", ways[w],
               (unsigned)status);
    }
}

int main(int count, char **arguments) {
    require_serving();
    if (count == 1) {
        run_all();
    } else if (strcmp(arguments[1], "no-key") == 0) {
        EXPECT(pthread_key_create(&key, NULL) != 0, "there are keys left");
        grow_little(works, "without a key");
    } else {
        pass_wanted = strtoul(arguments[1], NULL, 10);
        EXPECT(pthread_key_create(&key, at_the_end) == 0, "no key");
        grow_little(ends_late, "born in a late pass");
    }
    return 0;
}
