#include "run.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults.h"
#include "fibers.h"
#include "scheduler.h"

enum { SECONDS_MOST = 100 }; /* of one run: it hangs where the simulator itself does */

unsigned simulator_fault;

void run_open(void) {
    outcome = mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcome == MAP_FAILED) {
        outcome = NULL;
    }
    EXPECT_HERE(outcome != NULL);
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* else pages may come with their neighbours, and be there */
    fibers_open();
}

struct outcome run_script(const struct script *script, unsigned every) {
    memset(outcome, 0, sizeof *outcome);
    fflush(NULL);
    pid_t child = fork();
    EXPECT_HERE(child >= 0);
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        alarm(SECONDS_MOST);
        scheduler_play(script, every);
        _exit(0);
    }
    int status = 0;
    EXPECT_HERE(waitpid(child, &status, 0) == child);
    if (status != 0 && outcome->text[0] == '\0') {
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
            snprintf(outcome->text, sizeof outcome->text, "stalls: the run does not end");
        } else {
            snprintf(outcome->text, sizeof outcome->text, "killed: wait status %#x", (unsigned)status);
        }
    }
    return *outcome;
}

bool run_is_alike(const struct outcome *one, const struct outcome *other) {
    size_t kind = strcspn(one->text, ":");
    return kind > 0 && strncmp(one->text, other->text, kind + 1) == 0;
}

bool run_is_of_kind(const struct outcome *run, const char *kind) {
    size_t length = strlen(kind);
    return strncmp(run->text, kind, length) == 0 && run->text[length] == ':';
}

bool run_shows_fault(const struct outcome *run, unsigned fault) {
    const char *const *kind = faults[fault - 1].found_as;
    bool shows = false;
    for (int i = 0; i < KINDS_MOST && kind[i] != NULL; i++) {
        shows |= run_is_of_kind(run, kind[i]);
    }
    return shows;
}

void run_add(struct totals *totals, const struct outcome *run) {
    totals->runs++;
    totals->steps += run->steps;
    totals->yields += run->yields;
    totals->audits += run->audits;
    totals->forks += run->forks;
    totals->calls += run->calls;
    totals->refusals += run->refusals;
}

void run_print(const struct totals *totals) {
    printf("%lu runs, %llu steps, %llu yields, %llu audits, %llu forks, %llu requests to the kernel, %llu refused\n",
           totals->runs, (unsigned long long)totals->steps, (unsigned long long)totals->yields,
           (unsigned long long)totals->audits, (unsigned long long)totals->forks, (unsigned long long)totals->calls,
           (unsigned long long)totals->refusals);
}
