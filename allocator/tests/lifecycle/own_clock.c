/* A program's own clock_gettime and getauxval, as of libfaketime or of a simulation, may allocate, lock, need a thread that libc knows, or stand still. The
 * library calls neither: in calls, at thread ends, beside forks, and in its own thread.
 *
 *   own_clock   ends with 0 */
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <time.h>

/* The test's own questions for the time go to the kernel. */
static int kernel_clock(clockid_t clock, struct timespec *now);
#define clock_gettime kernel_clock
#include "idle/field.h"
#include "serving.h"
#undef clock_gettime

static int kernel_clock(clockid_t clock, struct timespec *now) { return (int)syscall(SYS_clock_gettime, clock, now); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    (void)clock, (void)now;
    expect_failed(__FILE__, __LINE__, "the program's clock is its own", "the library has called clock_gettime");
}

unsigned long getauxval(unsigned long type) {
    expect_failed(__FILE__, __LINE__, "the program's functions are its own", "getauxval(%lu) was called", type);
}

enum { THREADS = 4, FORKS = 20 };

static void *allocate_some(void *argument) {
    for (size_t i = 0; i < 20000; i++) {
        free(malloc(i % 3000));
    }
    return argument;
}

static void fork_beside_threads(void) {
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread[i], NULL, allocate_some, NULL) == 0, "no thread");
    }
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        EXPECT(child >= 0, "no child");
        if (child == 0) {
            (void)allocate_some(NULL);
            _exit(0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with wait status %#x",
               (unsigned)status);
    }
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_join(thread[i], NULL) == 0, "no thread to join");
    }
}

int main(void) {
    require_serving();
    fork_beside_threads();
    field_fill(FIELD_MOST, 160);
    field_thin_out(200);
    if (getenv("FREESTONE_OPTIONS") == NULL) {
        field_await_return(field.before_kib, field.full_kib, 70);
    }
    fork_beside_threads();
    field_check("after the forks");
    field_clear();
    return 0;
}
