/* System calls by `syscall`, which the library watches: what they point to may not be there, and a task that a raw clone made may have no
 * thread-local data. */
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { STACK = 64 * 1024 };

static void refused(void *asked, size_t bytes) {
    errno = 0;
    long result = syscall(SYS_clone3, asked, bytes);
    EXPECT(result == -1 && (errno == EFAULT || errno == ENOSYS || errno == EPERM), "clone3 at %p: %ld, errno %d", asked,
           result, errno);
}

static void ask_with_bad_pointers(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = sizeof(struct clone_args);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0, "no pages");
    refused(NULL, bytes);
    refused((void *)8, bytes);
    refused((void *)-8, bytes);
    refused(pages + page, bytes);
    for (size_t readable = 1; readable < 64; readable++) {
        refused(pages + page - readable, bytes);
    }
}

/* Has no thread-local data, so calls nothing that has; and no canary of the compiler's. */
static __attribute__((no_stack_protector)) int run(void *argument) {
    (void)argument;
    (void)syscall(SYS_exit, 0);
    return 0;
}

static void end_without_thread_data(void) {
    enum {
        FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SETTLS | CLONE_CHILD_CLEARTID
    };
    static char stack[STACK] __attribute__((aligned(16))), data[STACK] __attribute__((aligned(64)));
    volatile int number = 1;
    int made = clone(run, stack + sizeof stack, FLAGS, NULL, NULL, data + sizeof data / 2, (int *)&number);
    EXPECT(made > 0, "no task: errno %d", errno);
    while (number != 0) { /* a hang is a failure: the alarm */
        (void)usleep(1000);
    }
}

int main(void) {
    require_serving();
    (void)alarm(60);
    free(unseen(malloc(1000)));
    ask_with_bad_pointers();
    end_without_thread_data();
    free(unseen(malloc(1000)));
    return 0;
}
