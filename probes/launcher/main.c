/* freestone-launch: starts one program, follows its tree to the end, and writes down what it cost.
 *
 * It exists because a measuring process must be small: Linux hands the high-water mark of a parent's memory on through
 * fork and exec, so a program started from Python reports Python's memory as its own. Exit status: 0 when the result
 * was written (whatever became of the program), 2 for a wrong command line, 3 when there could be none, 4 when it could
 * not be written, as where the program has filled the disk. */
#define _GNU_SOURCE
#include "census.h"
#include "counters.h"
#include "course.h"
#include "json.h"
#include "options.h"
#include "sideband.h"
#include "start.h"
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RESULT_VERSION = 1 };

static const char *state_of(const struct start *start, const struct course *course) {
    if (start->failure != START_FINE)
        return start_failure_name(start->failure);
    if (course->interrupted != 0)
        return "interrupted";
    if (course->timed_out)
        return "timeout";
    if (!course->first_ended)
        return "abandoned";
    return WIFSIGNALED(course->status) ? "signaled" : "exited";
}

static uint64_t nanoseconds(struct timeval time) {
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static void write_course(const struct course *course, struct json *json) {
    if (course->first_ended && WIFEXITED(course->status))
        json_integer(json, "exit_code", WEXITSTATUS(course->status));
    if (course->first_ended && WIFSIGNALED(course->status))
        json_integer(json, "signal", WTERMSIG(course->status));
    if (course->interrupted != 0)
        json_integer(json, "interrupted_by", course->interrupted);
    json_seconds(json, "wall_s", course->wall_ns);
    if (course->survivor_count == 0 && !course->killed)
        json_seconds(json, "tree_wall_s", course->tree_wall_ns);
    json_seconds(json, "user_s", nanoseconds(course->usage.ru_utime));
    json_seconds(json, "sys_s", nanoseconds(course->usage.ru_stime));
    json_integer(json, "peak_rss_kib", course->usage.ru_maxrss);
    json_integer(json, "minor_faults", course->usage.ru_minflt);
    json_integer(json, "major_faults", course->usage.ru_majflt);
    json_integer(json, "voluntary_switches", course->usage.ru_nvcsw);
    json_integer(json, "involuntary_switches", course->usage.ru_nivcsw);
    json_integer(json, "orphans", (int64_t)course->orphans);
    json_bool(json, "stopped", course->stopped);
    json_bool(json, "killed", course->killed);
    json_bool(json, "abandoned", course->abandoned);
    json_integer(json, "survivor_count", (int64_t)course->survivor_count);
    json_open(json, "survivors", '[');
    for (size_t i = 0; i < course->survivor_count && i < SURVIVORS_NAMED; i++) {
        json_open(json, NULL, '{');
        json_integer(json, "pid", course->survivors[i].pid);
        json_text(json, "program", course->survivors[i].program);
        json_close(json, '}');
    }
    json_close(json, ']');
    if (course->series.count > 0)
        json_integer(json, "tree_peak_rss_kib", (int64_t)course->series.peak_kib);
    series_write(&course->series, json);
}

/* Written beside its destination and renamed: a reader sees the whole result or none. */
static bool write_result(const struct options *options, const struct start *start, const struct course *course,
                         struct census *census, const char *refusal) {
    char *temporary;
    if (asprintf(&temporary, "%s.%d", options->result, (int)getpid()) < 0)
        return false;
    FILE *out = fopen(temporary, "we");
    if (out == NULL)
        return false;
    struct json json = {out, false};
    json_open(&json, NULL, '{');
    json_integer(&json, "version", RESULT_VERSION);
    json_text(&json, "state", state_of(start, course));
    if (start->failure == START_FINE) {
        json_integer(&json, "pid", start->pid);
        json_seconds(&json, "started_monotonic_s", start->at_ns);
        json_integer(&json, "floor_kib", (int64_t)start->floor_kib);
        write_course(course, &json);
        if (options->counters)
            counters_write(&json);
        census_write(census, refusal, &json);
    } else {
        json_integer(&json, "errno", start->error);
        json_text(&json, "error", strerror(start->error));
    }
    json_close(&json, '}');
    const bool written = fputc('\n', out) != EOF && ferror(out) == 0;
    if (fclose(out) == 0 && written && rename(temporary, options->result) == 0)
        return true;
    const int error = errno;
    unlink(temporary);
    errno = error;
    return false;
}

static int probe(const sigset_t *mask) {
    struct json json = {stdout, false};
    const char *perf = NULL, *ptrace = NULL;
    struct census *census = census_new("perf");
    const bool has_perf = census != NULL && sideband_open(census, &perf);
    char *const nothing[] = {"/proc/self/exe", "--help", NULL};
    struct options options = {.command = nothing, .standard = {NULL, "/dev/null", "/dev/null"}};
    struct start start = start_program(&options, mask, true);
    const bool has_ptrace = start.pid > 0 && trace_attach(census, start.pid, &ptrace);
    if (start.pid > 0) {
        kill(start.pid, SIGKILL);
        waitpid(start.pid, NULL, __WALL);
    }
    counters_open();
    json_open(&json, NULL, '{');
    json_integer(&json, "version", RESULT_VERSION);
    json_bool(&json, "perf", has_perf);
    json_text(&json, "perf_reason", has_perf ? NULL : perf);
    json_bool(&json, "ptrace", has_ptrace);
    json_text(&json, "ptrace_reason", has_ptrace ? NULL : ptrace);
    counters_names(&json);
    json_close(&json, '}');
    putchar('\n');
    return fflush(stdout) == 0 ? 0 : 3;
}

static void hold_standard_descriptors(void) {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
}

int main(int argc, char **argv) {
    hold_standard_descriptors();
    struct options options;
    if (!options_read(argc, argv, &options))
        return 2;

    sigset_t ours, inherited;
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    sigaddset(&ours, SIGCONT); /* heard by one that was stopped, as it goes on */
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    sigprocmask(SIG_BLOCK, &ours, &inherited);
    if (options.parent != 0) {
        /* The signal is sent when the parent ends from now on; it may have ended already. */
        prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
        if (getppid() != options.parent)
            return 3;
    }
    if (options.probe)
        return probe(&inherited);
    const int signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        fprintf(stderr, "freestone-launch: cannot watch over a process tree: %s\n", strerror(errno));
        return 3;
    }

    const char *refusal = "not asked for";
    struct census *census = NULL;
    bool sideband = false, traced = false;
    if (options.census == CENSUS_PERF) {
        census = census_new("perf");
        sideband = census != NULL && sideband_open(census, &refusal);
        if (!sideband)
            census = NULL;
    }
    if (options.counters)
        counters_open();

    struct start start = start_program(&options, &inherited, options.census == CENSUS_PTRACE);
    static struct course course;
    if (start.pid > 0) {
        if (options.census == CENSUS_PTRACE) {
            census = census_new("ptrace");
            traced = census != NULL && trace_attach(census, start.pid, &refusal);
            if (!traced)
                census = NULL;
            start_release(&start);
        }
        course_follow(&course, &start, &options, signals, traced, sideband);
        if (options.census == CENSUS_PTRACE)
            start_settle(&start);
    }
    if (!write_result(&options, &start, &course, census, refusal)) {
        fprintf(stderr, "freestone-launch: cannot write the result '%s': %s\n", options.result, strerror(errno));
        return 4;
    }
    return 0;
}
