/* With another function in the place of each of libc's that the library calls (replaced_functions.c), a program goes on: threads that allocate, also under
 * the lock that those functions take; forks, large blocks that grow, memory that goes back while it idles, and what the library passes on.
 *
 *   beside_replaced   ends with 0 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "entry.h"
#include "idle/field.h"
#include "replaced_functions.h"
#include "serving.h"

enum { THREADS = 4, ROUNDS = 300, FORKS = 15, LARGE = 40 << 20 };

static void (*lock)(void), (*unlock)(void);

static void grow_and_shrink(size_t bytes, uint64_t seed) {
    char *block = calloc(1, bytes);
    EXPECT(block != NULL && pattern_not_zero(block, bytes) == SIZE_MAX, "calloc(%zu)", bytes);
    pattern_fill(block, 0, bytes, seed);
    block = realloc(block, 3 * bytes);
    EXPECT(block != NULL && pattern_mismatch(block, bytes, seed) == SIZE_MAX, "realloc lost contents");
    block = realloc(block, bytes / 2 + 1);
    EXPECT(block != NULL && pattern_mismatch(block, bytes / 2 + 1, seed) == SIZE_MAX, "realloc lost contents");
    free(block);
}

static void *work(void *argument) {
    for (size_t round = 0; round < ROUNDS; round++) {
        bool locked = round % 2 != 0;
        if (locked) {
            lock();
        }
        for (size_t bytes = 1; bytes < 300000; bytes = bytes * 3 + round % 7) {
            grow_and_shrink(bytes, (uintptr_t)argument + round);
        }
        if (locked) {
            unlock();
        }
    }
    return NULL;
}

static void pass_on(void) {
    EXPECT(setuid(getuid()) == 0 && setgid(getgid()) == 0, "setuid is not passed on");
    EXPECT(syscall(SYS_getpid) == getpid(), "syscall is not passed on");
    EXPECT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) >= 0, "prctl is not passed on");
}

static void fork_beside(void) {
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        EXPECT(child >= 0, "no child");
        if (child == 0) {
            grow_and_shrink(1000 + (size_t)i, 1);
            pass_on();
            _exit(0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "a child ended with %#x", (unsigned)status);
    }
}

static void grow_large(void) {
    char *block = malloc(LARGE);
    EXPECT(block != NULL, "malloc(%d)", LARGE);
    pattern_fill(block, 0, LARGE, 7);
    block = realloc(block, (size_t)5 * LARGE);
    EXPECT(block != NULL && pattern_mismatch(block, LARGE, 7) == SIZE_MAX, "realloc lost contents");
    block = realloc(block, LARGE / 2);
    EXPECT(block != NULL && pattern_mismatch(block, LARGE / 2, 7) == SIZE_MAX, "realloc lost contents");
    free(block);
    (void)malloc_trim(0);
}

int main(void) {
    require_serving();
    lock = (void (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "replaced_lock");
    unlock = (void (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "replaced_unlock");
    EXPECT(lock != NULL && unlock != NULL, "nothing is replaced");
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, work, (void *)i) == 0, "no thread");
    }
    fork_beside();
    grow_large();
    pass_on();
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_join(thread[i], NULL) == 0, "no thread to join");
    }
    FILE *nowhere = fopen("/dev/null", "w");
    EXPECT(nowhere != NULL, "no /dev/null");
    (void)malloc_info(0, nowhere);
    fclose(nowhere);
    errno = 0;
    EXPECT(malloc((size_t)1 << 62) == NULL && errno == ENOMEM, "errno is %d", errno);
    field_fill(FIELD_MOST, 160);
    field_thin_out(200);
    for (int looks = 0; looks < 100 && tasks_keeper() == 0; looks++) {
        tasks_sleep(10);
    }
    tasks_sleep(1000);
    fork_beside();
    field_check("in the end");
    field_clear();
    return 0;
}
