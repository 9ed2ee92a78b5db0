#define _GNU_SOURCE
#include "spent.h"

#include "image.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t nanoseconds(struct timeval time) {
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static void report_usage(struct report *report, const char *word, int whose) {
    struct rusage usage;
    if (getrusage(whose, &usage) != 0)
        return;
    report_word(report, word);
    report_number(report, nanoseconds(usage.ru_utime));
    report_number(report, nanoseconds(usage.ru_stime));
    report_number(report, (uint64_t)usage.ru_minflt);
    report_number(report, (uint64_t)usage.ru_majflt);
    report_number(report, (uint64_t)usage.ru_maxrss);
    report_line(report);
}

/* The kernel forgets children of such a process as they end: what they have used is added to nobody. */
static bool drops_children(void) {
    struct sigaction now;
    return sigaction(SIGCHLD, NULL, &now) == 0 && (now.sa_handler == SIG_IGN || (now.sa_flags & SA_NOCLDWAIT) != 0);
}

/* Whether a process ignores SIGCHLD, by its stat: the 33rd field holds its ignored signals below 32 as one number. */
static bool ignores_children(int pid) {
    char path[32], text[1024];
    struct report name = {.text = path, .size = sizeof path - 1};
    report_word(&name, "/proc/");
    name.used--; /* the space behind the word */
    report_number(&name, (uint64_t)pid);
    name.used--;
    report_word(&name, "/stat");
    path[name.used - 1] = '\0';
    const long descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (descriptor < 0)
        return false;
    const long got = syscall(SYS_read, descriptor, text, sizeof text - 1);
    syscall(SYS_close, descriptor);
    if (got <= 0)
        return false;
    text[got] = '\0';
    const char *field = strrchr(text, ')'); /* the second one is a name, of any characters */
    for (int number = 2; field != NULL && number < 33; number++) {
        field = strchr(field, ' ');
        field += field != NULL;
    }
    uint64_t ignored = 0;
    for (; field != NULL && *field >= '0' && *field <= '9'; field++)
        ignored = 10 * ignored + (uint64_t)(*field - '0');
    return (ignored >> (SIGCHLD - 1) & 1) != 0;
}

void spent_report(struct report *report) {
    report_usage(report, "spent", RUSAGE_SELF);
    report_usage(report, "waited", RUSAGE_CHILDREN);
    const bool drops = drops_children();
    const int parent = image_parent();
    report_word(report, "ends");
    report_number(report, (uint64_t)parent);
    report_word(report, drops ? "drops" : "hears");
    /* A child inherits that SIGCHLD is ignored: only then is its parent worth a look. */
    report_word(report, drops && ignores_children(parent) ? "dropped" : "-");
    report_line(report);
}
