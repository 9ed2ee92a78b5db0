/* Handlers of a program's own for faults, where blocks are guarded: each is called for what is its own, and for nothing else.
 *
 * barrier  a handler, one in front of it that passes on what is not its own, and blocks guarded in between
 * probe    a handler that is there for a moment, in which blocks are guarded
 * once     SA_RESETHAND: called once, then the process ends
 * third    a handler without SA_SIGINFO reads its third argument, which the kernel passes to every handler
 * vfork    a child of vfork sets what is by default and allocates: the parent's handler stays */
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { PAGE = 4096, DEEPEST = 100, BLOCKS = 30 };

static char *first, *second;
static struct sigaction before_second, before_first;
static volatile int calls;
static volatile bool probing;
static sigjmp_buf back;

/* Some of them guarded: as many as may be so soon after others. */
static void allocate_some(void) {
    void *blocks[BLOCKS];
    (void)usleep(20000);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = unseen(malloc(50 + 16 * i));
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
}

static char *closed_page(void) {
    char *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(page != MAP_FAILED, "no page");
    return page;
}

static void fail(const char *why) {
    ssize_t written = write(STDERR_FILENO, why, strlen(why));
    (void)written;
    _exit(1);
}

static void open_or_pass(char *page, const struct sigaction *next, int number, siginfo_t *info, void *context) {
    if ((char *)info->si_addr >= page && (char *)info->si_addr < page + PAGE) {
        (void)mprotect(page, PAGE, PROT_READ | PROT_WRITE);
    } else if (++calls == DEEPEST) {
        fail("handlers call each other for ever\n");
    } else if ((next->sa_flags & SA_SIGINFO) != 0) {
        next->sa_sigaction(number, info, context);
    } else {
        fail("passed on to nobody\n");
    }
}

static void on_first(int number, siginfo_t *info, void *context) {
    open_or_pass(first, &before_first, number, info, context);
}
static void on_second(int number, siginfo_t *info, void *context) {
    open_or_pass(second, &before_second, number, info, context);
}

static void set(void (*handler)(int, siginfo_t *, void *), struct sigaction *before) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    EXPECT(sigaction(SIGSEGV, &action, before) == 0, "sigaction");
}

static void barrier(void) {
    set(on_first, &before_first);
    allocate_some();
    set(on_second, &before_second);
    allocate_some();
    *(volatile char *)second = 1;
    *(volatile char *)first = 1;
}

static void on_probe(int number) {
    (void)number;
    if (!probing) {
        fail("called though it was taken back\n");
    }
    siglongjmp(back, 1);
}

static void probe(void) {
    set(on_first, NULL);
    allocate_some();
    struct sigaction action = {.sa_handler = on_probe}, own;
    (void)sigaction(SIGSEGV, &action, &own);
    probing = true;
    if (sigsetjmp(back, 1) == 0) {
        allocate_some();
        *(volatile char *)second = 1;
        EXPECT(false, "no fault");
    }
    probing = false;
    (void)sigaction(SIGSEGV, &own, NULL);
    allocate_some();
    *(volatile char *)first = 1;
}

static void on_once(int number) {
    (void)number;
    if (++calls > 1) {
        fail("called once more\n");
    }
}

static void once(void) {
    pid_t child = fork();
    if (child == 0) {
        struct sigaction action = {.sa_handler = on_once, .sa_flags = (int)SA_RESETHAND};
        (void)sigaction(SIGSEGV, &action, NULL);
        allocate_some();
        *(volatile char *)first = 1;
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %d",
           status);
}

static void on_third(int number, siginfo_t *info, void *context) {
    if (context == NULL || info->si_addr != first) {
        fail("called without the arguments that the kernel passes\n");
    }
    (void)number;
    (void)mprotect(first, PAGE, PROT_READ | PROT_WRITE);
}

static void third(void) {
#if defined(__x86_64__) /* elsewhere the kernel passes less */
    struct sigaction action = {.sa_sigaction = on_third};
    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
    allocate_some();
    *(volatile char *)first = 1;
#else
    (void)on_third;
#endif
}

static void of_vfork(void) {
    set(on_first, NULL);
    allocate_some();
    pid_t child = vfork();
    if (child == 0) {
        (void)signal(SIGSEGV, SIG_DFL);
        allocate_some();
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "status %d", status);
    allocate_some();
    *(volatile char *)first = 1;
}

int main(int count, char **arguments) {
    require_serving();
    const char *what = count > 1 ? arguments[1] : "";
    first = closed_page();
    second = closed_page();
    if (strcmp(what, "barrier") == 0) {
        barrier();
    } else if (strcmp(what, "probe") == 0) {
        probe();
    } else if (strcmp(what, "once") == 0) {
        once();
    } else if (strcmp(what, "third") == 0) {
        third();
    } else if (strcmp(what, "vfork") == 0) {
        of_vfork();
    } else {
        EXPECT(false, "usage: fault_handlers barrier|probe|once|third|vfork");
    }
    return 0;
}
