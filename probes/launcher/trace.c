#define _GNU_SOURCE
#include "trace.h"

#include "moment.h"
#include "tree.h"

#include <errno.h>
#include <linux/limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static struct census *target;

bool trace_attach(struct census *census, pid_t pid, const char **refusal) {
    target = census;
    /* EXITKILL: nothing of the tree outlives a launcher that was killed. */
    const long options =
        PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, pid, NULL, options) == 0)
        return true;
    *refusal =
        errno == EPERM ? "ptrace is refused (kernel.yama.ptrace_scope, or a sandbox)" : "ptrace does not work here";
    return false;
}

/* Value of a numeric field of /proc/PID/status, -1 when it cannot be read. */
static long status_field(pid_t pid, const char *name) {
    char path[48], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    long value = -1;
    const size_t length = strlen(name);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            value = strtol(line + length + 1, NULL, 10);
            break;
        }
    }
    fclose(file);
    return value;
}

static void note_new_task(pid_t parent) {
    unsigned long message = 0;
    if (ptrace(PTRACE_GETEVENTMSG, parent, NULL, &message) != 0)
        return;
    const pid_t task = (pid_t)message;
    const long group = status_field(task, "Tgid");
    if (group == (long)task) {
        const long whose = status_field(parent, "Tgid");
        census_add(target, CENSUS_FORK, moment_now(), task, whose > 0 ? (pid_t)whose : parent, NULL);
    } else if (group < 0) {
        census_incomplete(target, "a new process could not be looked at");
    }
}

static void note_exec(pid_t pid) {
    char program[PATH_MAX], path[48], name[64] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(name, sizeof name, file) == NULL)
            name[0] = '\0';
        fclose(file);
    }
    name[strcspn(name, "\n")] = '\0';
    tree_program(pid, program, sizeof program);
    const uint64_t now = moment_now();
    census_add(target, CENSUS_EXEC, now, pid, 0, name);
    if (program[0] == '/')
        census_add(target, CENSUS_IMAGE, now, pid, 0, program);
}

static bool stops_a_group(int signal) {
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

void trace_status(pid_t pid, int status) {
    if (!WIFSTOPPED(status)) {
        census_add(target, CENSUS_EXIT, moment_now(), pid, 0, NULL);
        return;
    }
    const int signal = WSTOPSIG(status);
    long deliver = 0;
    switch (status >> 16) {
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
        note_new_task(pid);
        break;
    case PTRACE_EVENT_EXEC:
        note_exec(pid);
        break;
    case PTRACE_EVENT_STOP:
        /* The first stop of a new task (SIGTRAP) is passed over; a stop of its whole group stays in force. */
        if (stops_a_group(signal)) {
            ptrace(PTRACE_LISTEN, pid, NULL, NULL);
            return;
        }
        break;
    default:
        deliver = signal; /* a signal on its way to the program */
    }
    ptrace(PTRACE_CONT, pid, NULL, deliver);
}
