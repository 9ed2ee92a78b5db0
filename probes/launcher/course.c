#define _GNU_SOURCE
#include "course.h"

#include "moment.h"
#include "sideband.h"
#include "trace.h"
#include "tree.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum phase { RUNNING, LINGERING, TERMINATING, KILLING, DONE };

struct follower {
    struct course *course;
    struct start *start;
    const struct options *options;
    bool traced, sideband;
    enum phase phase;
    uint64_t phase_ends_ns;   /* when the phase gives way to the next one; UINT64_MAX: never by itself */
    uint64_t give_up_ns; /* while killing */
};

static const uint64_t never = UINT64_MAX;
static const uint64_t kill_again_ns = 5000000;
static const uint64_t give_up_after_ns = 5000000000;

static uint64_t later(uint64_t from, uint64_t by) { return by >= never - from ? never : from + by; }

static void add_time(struct timeval *sum, struct timeval more) {
    sum->tv_sec += more.tv_sec;
    sum->tv_usec += more.tv_usec;
    if (sum->tv_usec >= 1000000) {
        sum->tv_usec -= 1000000;
        sum->tv_sec++;
    }
}

static void add_usage(struct rusage *sum, const struct rusage *more) {
    add_time(&sum->ru_utime, more->ru_utime);
    add_time(&sum->ru_stime, more->ru_stime);
    if (more->ru_maxrss > sum->ru_maxrss)
        sum->ru_maxrss = more->ru_maxrss;
    sum->ru_minflt += more->ru_minflt;
    sum->ru_majflt += more->ru_majflt;
    sum->ru_nvcsw += more->ru_nvcsw;
    sum->ru_nivcsw += more->ru_nivcsw;
}

static void enter(struct follower *f, enum phase phase, uint64_t now) {
    struct tree tree = {0};
    f->phase = phase;
    switch (phase) {
    case LINGERING:
        f->phase_ends_ns = later(now, f->options->linger_ns);
        break;
    case TERMINATING:
        f->phase_ends_ns = later(now, f->options->grace_ns);
        kill(-f->start->pid, SIGTERM); /* the group first: it may hold processes that are being born just now */
        tree_list(&tree);
        tree_signal(&tree, SIGTERM);
        /* A stopped process takes no signal but this one before it dies. */
        tree_signal(&tree, SIGCONT);
        break;
    case KILLING:
        f->course->killed = true;
        f->phase_ends_ns = now;
        f->give_up_ns = later(now, give_up_after_ns);
        break;
    case RUNNING:
    case DONE:
        f->phase_ends_ns = never;
        break;
    }
    tree_free(&tree);
}

static void name_survivors(struct course *course) {
    struct tree tree = {0};
    tree_list(&tree);
    course->survivor_count = tree.count;
    for (size_t i = 0; i < tree.count && i < SURVIVORS_NAMED; i++) {
        course->survivors[i].pid = tree.pids[i];
        tree_program(tree.pids[i], course->survivors[i].program, sizeof course->survivors[i].program);
    }
    tree_free(&tree);
}

/* Called when the current phase has lasted long enough. */
static void advance(struct follower *f, uint64_t now) {
    switch (f->phase) {
    case RUNNING:
        f->course->timed_out = true;
        enter(f, TERMINATING, now);
        break;
    case LINGERING:
        name_survivors(f->course);
        enter(f, TERMINATING, now);
        break;
    case TERMINATING:
        enter(f, KILLING, now);
        break;
    case KILLING:
        if (now >= f->give_up_ns) {
            f->course->abandoned = true;
            f->phase = DONE;
        } else {
            /* Again and again: a process may have forked between the listing and the signal. */
            struct tree tree = {0};
            tree_list(&tree);
            tree_signal(&tree, SIGKILL);
            tree_free(&tree);
            f->phase_ends_ns = later(now, kill_again_ns);
        }
        break;
    case DONE:
        break;
    }
}

static void first_ended(struct follower *f, int status, uint64_t now) {
    if (f->traced)
        start_settle(f->start);
    f->course->first_ended = true;
    f->course->status = status;
    f->course->wall_ns = f->course->tree_wall_ns = now - f->start->at_ns;
    /* Who was ended by a signal has not handed its work to whom it left behind. */
    if (f->phase == RUNNING && !(f->options->whole_tree && WIFEXITED(status)))
        enter(f, LINGERING, now);
}

/* Takes every status there is. Done when no child is left. */
static void reap(struct follower *f) {
    for (;;) {
        int status;
        struct rusage usage;
        const pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &usage);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            f->phase = DONE;
        if (pid <= 0)
            return;
        if (f->traced)
            trace_status(pid, status);
        if (WIFSTOPPED(status))
            continue;
        if (pid == f->start->pid) {
            add_usage(&f->course->usage, &usage);
            first_ended(f, status, moment_now());
        } else if (!f->traced) { /* a tracer also sees the end of processes whose parents will count them */
            add_usage(&f->course->usage, &usage);
            f->course->orphans++;
            if (f->course->first_ended)
                f->course->tree_wall_ns = moment_now() - f->start->at_ns;
        }
    }
}

static void take_signals(struct follower *f, int signals) {
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCONT)
            f->course->stopped = true;
        if (info.ssi_signo == SIGCHLD || info.ssi_signo == SIGCONT)
            continue;
        f->course->interrupted = (int)info.ssi_signo;
        const uint64_t now = moment_now();
        /* The second one does not wait for the grace to pass. */
        enter(f, f->phase == TERMINATING || f->phase == KILLING ? KILLING : TERMINATING, now);
    }
}

static void wait_until(uint64_t until_ns, struct pollfd *polled, size_t count) {
    const uint64_t now = moment_now();
    const uint64_t left = until_ns <= now ? 0 : until_ns - now;
    const struct timespec limit = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    ppoll(polled, (nfds_t)count, until_ns == never ? NULL : &limit, NULL);
}

void course_follow(struct course *course, struct start *start, const struct options *options, int signals, bool traced,
                   bool sideband) {
    enum { POLLED = 1 + 1024 };
    static struct pollfd polled[POLLED];
    struct follower f = {.course = course, .start = start, .options = options, .traced = traced, .sideband = sideband};
    uint64_t begin = start->at_ns != 0 ? start->at_ns : moment_now();
    enter(&f, RUNNING, begin);
    if (options->timeout_ns != 0)
        f.phase_ends_ns = later(begin, options->timeout_ns);
    series_start(&course->series, begin, options->sample_ns);

    polled[0] = (struct pollfd){signals, POLLIN, 0};
    const size_t count = 1 + (sideband ? sideband_poll(polled + 1, POLLED - 1) : 0);
    for (;;) {
        reap(&f);
        if (f.phase == DONE) {
            take_signals(&f, signals); /* it may have ended while the launcher was stopped */
            break;
        }
        const uint64_t now = moment_now();
        if (now >= f.phase_ends_ns)
            advance(&f, now);
        /* What outlives the first process is of the tree, and of its peak. */
        const bool sampling = f.phase == RUNNING || f.phase == LINGERING;
        if (sampling && now >= course->series.next_ns) {
            series_sample(&course->series, begin);
            if (sideband)
                sideband_drain();
        }
        uint64_t until = f.phase_ends_ns;
        if (sampling && course->series.next_ns < until)
            until = course->series.next_ns;
        wait_until(until, polled, count);
        if (polled[0].revents != 0)
            take_signals(&f, signals);
        if (sideband)
            sideband_drain();
    }
    if (sideband)
        sideband_drain();
}
