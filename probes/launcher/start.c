#define _GNU_SOURCE
#include "start.h"

#include "moment.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* What the child needs and what it reports. In memory both sides see. */
struct launch {
    const struct options *options;
    const sigset_t *mask;
    char **candidates; /* paths to try, in the order of PATH; NULL-terminated */
    int files[3];      /* already open */
    int gate;          /* read end of a pipe a traced child waits on; -1: none */
    uint64_t at_ns;
    enum start_failure failure;
    int error;
};

static _Alignas(16) char child_stack[64 * 1024];

static enum start_failure classify(int error, bool exists) {
    switch (error) {
    case ENOENT:
        return exists ? START_NO_INTERPRETER : START_NOT_FOUND;
    case ENOTDIR:
        return START_NOT_FOUND;
    case EACCES: /* the file may not be executed, or a folder on the way to it not be entered */
    case EPERM:
        return exists ? START_NOT_EXECUTABLE : START_NOT_FOUND;
    case ENOEXEC:
        return START_BAD_FORMAT;
    default:
        return START_OTHER;
    }
}

/* Tries the candidates as execvp does: a missing one is passed over, a forbidden one is remembered. Returns only when
 * none could be executed. */
static void execute(struct launch *launch) {
    int error = ENOENT;
    enum start_failure failure = START_NOT_FOUND;
    for (char **path = launch->candidates; *path != NULL; path++) {
        execve(*path, launch->options->command, environ);
        const int why = errno;
        const enum start_failure kind = classify(why, access(*path, F_OK) == 0);
        if (kind == START_NOT_FOUND)
            continue;
        error = why;
        failure = kind;
        if (kind != START_NOT_EXECUTABLE)
            break;
    }
    launch->error = error;
    launch->failure = failure;
}

/* A program measured by a background job or under nohup is the program measured in a terminal: what the launcher's
 * ancestors chose to ignore is not handed on. In its own session no terminal's signals reach it. */
static void hear_all_signals(void) {
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL); /* refused for a few, which cannot be ignored either */
}

static int become_the_program(void *argument) {
    struct launch *launch = argument;
    /* A session of its own: a group to signal, and no terminal that could stop it for reading in the background. */
    setsid();
    /* A launcher that was killed cannot end the program any more: then the kernel does. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (int i = 0; i < 3; i++) {
        if (launch->files[i] >= 0 && dup2(launch->files[i], i) < 0) {
            launch->failure = START_FILES;
            launch->error = errno;
            _exit(127);
        }
    }
    if (launch->options->directory != NULL && chdir(launch->options->directory) != 0) {
        launch->failure = START_DIRECTORY;
        launch->error = errno;
        _exit(127);
    }
    if (launch->gate >= 0) {
        char go;
        while (read(launch->gate, &go, 1) < 0 && errno == EINTR) {
        }
    }
    hear_all_signals();
    sigprocmask(SIG_SETMASK, launch->mask, NULL);
    launch->at_ns = moment_now();
    execute(launch);
    _exit(127);
}

/* "name" as given when it holds a slash, otherwise "dir/name" for every directory of PATH. NULL without memory. */
static char **candidates_for(const char *name) {
    if (strchr(name, '/') != NULL || name[0] == '\0') {
        char **one = calloc(2, sizeof *one);
        if (one != NULL)
            one[0] = strdup(name);
        return one;
    }
    const char *path = getenv("PATH");
    if (path == NULL)
        path = "/usr/local/bin:/usr/bin:/bin";
    size_t count = 1;
    for (const char *s = path; *s != '\0'; s++)
        count += *s == ':';
    char **list = calloc(count + 1, sizeof *list);
    if (list == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strcspn(path, ":");
        /* An empty element of PATH means the current directory. */
        if (asprintf(&list[i], "%.*s%s%s", (int)length, path, length == 0 ? "./" : "/", name) < 0) {
            while (i > 0)
                free(list[--i]);
            free(list);
            return NULL;
        }
        path += length + (path[length] == ':');
    }
    return list;
}

static bool open_files(struct launch *launch) {
    static const int flags[3] = {O_RDONLY, O_WRONLY | O_CREAT | O_TRUNC, O_WRONLY | O_CREAT | O_TRUNC};
    for (int i = 0; i < 3; i++) {
        const char *path = launch->options->standard[i];
        if (path == NULL && i == 0)
            path = "/dev/null";
        launch->files[i] = path == NULL ? -1 : open(path, flags[i] | O_CLOEXEC, 0644);
        if (path != NULL && launch->files[i] < 0) {
            launch->failure = START_FILES;
            launch->error = errno;
            return false;
        }
    }
    return true;
}

/* VmHWM of this process. Not ru_maxrss: that one was itself inherited from whoever started the launcher. */
static uint64_t high_water_kib(void) {
    char buffer[4096];
    const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const ssize_t got = read(fd, buffer, sizeof buffer - 1);
    close(fd);
    if (got <= 0)
        return 0;
    buffer[got] = '\0';
    const char *line = strstr(buffer, "VmHWM:");
    return line == NULL ? 0 : strtoull(line + 6, NULL, 10);
}

static struct start failed(enum start_failure failure, int error) {
    return (struct start){.pid = -1, .gate = -1, .failure = failure, .error = error};
}

struct start start_program(const struct options *options, const sigset_t *mask, bool traced) {
    struct start start = {.pid = -1, .gate = -1};
    /* Shared, because a traced child is forked and still has to report. */
    struct launch *launch = mmap(NULL, sizeof *launch, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (launch == MAP_FAILED)
        return failed(START_OTHER, errno);
    *launch = (struct launch){.options = options, .mask = mask, .gate = -1};
    launch->candidates = candidates_for(options->command[0]);
    if (launch->candidates == NULL)
        return failed(START_OTHER, ENOMEM);
    if (!open_files(launch))
        return failed(launch->failure, launch->error);
    start.launch = launch;
    if (traced) {
        int gate[2];
        if (pipe2(gate, O_CLOEXEC) != 0)
            return failed(START_OTHER, errno);
        launch->gate = gate[0];
        start.gate = gate[1];
        start.pid = fork();
        if (start.pid == 0) {
            close(gate[1]); /* so that the gate opens by itself if the launcher dies */
            become_the_program(launch);
        }
        close(gate[0]);
    } else {
        start.floor_kib = high_water_kib();
        start.pid =
            clone(become_the_program, child_stack + sizeof child_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, launch);
    }
    if (start.pid < 0)
        return failed(START_OTHER, errno);
    start_settle(&start);
    return start;
}

void start_release(struct start *start) {
    const char go = 1;
    while (write(start->gate, &go, 1) < 0 && errno == EINTR) {
    }
    close(start->gate);
    start->gate = -1;
}

void start_settle(struct start *start) {
    start->at_ns = start->launch->at_ns;
    start->failure = start->launch->failure;
    start->error = start->launch->error;
}

const char *start_failure_name(enum start_failure failure) {
    static const char *const names[] = {
        [START_FINE] = "fine",
        [START_NOT_FOUND] = "not-found",
        [START_NO_INTERPRETER] = "no-interpreter",
        [START_NOT_EXECUTABLE] = "not-executable",
        [START_BAD_FORMAT] = "bad-format",
        [START_FILES] = "files",
        [START_DIRECTORY] = "directory",
        [START_OTHER] = "not-started",
    };
    return names[failure];
}
