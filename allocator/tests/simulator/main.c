/* The simulator: scripts by chance, or from a file, each played in a process of its own.
 *
 *     simulator [--seed N] [--runs N] [--steps N] [--every N] [--seconds N] [--fault NAME] [--keep FOLDER] [--clock MS]    by chance
 *     simulator [--fault NAME] FILE...             what was kept
 *     simulator --campaigns N [--seed N] [--runs N] [--steps N]             every planted fault
 *
 * --finds NAME is --fault NAME, and it is well when it is found as what variants.toml says, or as the kind of --as,
 * and the library as it is does not show that; it ends with 3 when something else is found. --today 1 begins at a seed
 * of the day, which is told. Ends with 0 when all was well; else it says what was not, and leaves the shortest script that shows it. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "campaign.h"
#include "chance.h"
#include "failure.h"
#include "faults.h"
#include "fibers.h"
#include "run.h"
#include "shrink.h"
#include "world.h"

static struct {
    uint64_t seed;
    unsigned long runs, steps, every, seconds, campaigns;
    bool finds; /* something is to be found */
    const char *as;   /* the kind of failure it is to be found as; NULL: one of the fault's */
    const char *keep; /* folder for what was shrunk */
} wanted = {.seed = 1, .runs = 100, .steps = 2000, .every = 1, .keep = "."};

enum { FOUND_OTHERWISE = 3 }; /* status: something was found, and not as what it has to be */

static unsigned fault_named(const char *name) {
    for (unsigned i = 0; faults[i].name != NULL; i++) {
        if (strcmp(faults[i].name, name) == 0) {
            return i + 1;
        }
    }
    fprintf(stderr, "simulator: there is no fault '%s'\n", name);
    exit(2);
}

/* A number alone, and not below `least`; else one line, and the status of wrong use. */
static unsigned long number_of(const char *name, const char *value, unsigned long least) {
    char *end = NULL;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (strspn(value, "0123456789") == 0 || *end != '\0' || errno != 0 || number < least) {
        fprintf(stderr, "simulator: --%s takes a number from %lu on, not '%s'\n", name, least, value);
        exit(2);
    }
    return number;
}

/* Every choice among the ranges from that step on; the first that fails. */
static struct outcome play_choices(struct script *script, size_t from) {
    while (from < script->count && script->step[from].last == 0) {
        from++;
    }
    if (from == script->count) {
        return run_script(script, 1);
    }
    struct step *step = &script->step[from];
    struct step range = *step;
    struct outcome verdict = {0};
    step->last = 0;
    for (uint32_t yields = range.yields; yields <= range.last && verdict.text[0] == '\0'; yields++) {
        step->yields = yields;
        verdict = play_choices(script, from + 1);
    }
    *step = range;
    return verdict;
}

/* What a script that showed something is worth as a finding: it has to be of the right kind, and without the fault to
 * show nothing, or it were a defect of the library's. 0 when it is well. */
static int judge(const struct script *script, const struct outcome *found) {
    if (wanted.as != NULL ? !run_is_of_kind(found, wanted.as) : !run_shows_fault(found, simulator_fault)) {
        printf("found, and not as what it has to be\n");
        return FOUND_OTHERWISE;
    }
    unsigned planted = simulator_fault;
    struct script same = *script;
    simulator_fault = 0;
    struct outcome verdict = play_choices(&same, 0);
    simulator_fault = planted;
    if (verdict.text[0] != '\0') {
        printf("without the fault too: %s\n", verdict.text);
    }
    return verdict.text[0] != '\0';
}

static int replay(const char *name) {
    struct script script = {0};
    unsigned line;
    FILE *file = fopen(name, "r");
    if (file == NULL || !script_read(&script, file, &line)) {
        fprintf(stderr, "simulator: %s: %s\n", name, file == NULL ? strerror(errno) : "a line is no step");
        return 2;
    }
    fclose(file);
    struct outcome verdict = play_choices(&script, 0);
    bool found = verdict.text[0] != '\0';
    printf("%s: %s\n", name, found ? verdict.text : "as it should be");
    int status = wanted.finds && found ? judge(&script, &verdict) : wanted.finds != found;
    free(script.step);
    return status;
}

/* Leaves the shortest script that fails alike. */
static void keep(struct script *script, struct outcome *failed, uint64_t seed) {
    enum { TRIES = 6000 };
    char name[256];
    shrink(script, failed, TRIES);
    snprintf(name, sizeof name, "%s/seed-%llu.script", wanted.keep, (unsigned long long)seed);
    FILE *file = fopen(name, "w");
    if (file == NULL) {
        fprintf(stderr, "simulator: %s: %s\n", name, strerror(errno));
        return;
    }
    fprintf(file, "# %s\n", failed->text);
    script_write(script, file);
    fclose(file);
    printf("%s, %zu steps: %s\n", name, script->count, failed->text);
}

static int by_chance(void) {
    time_t end = time(NULL) + (time_t)wanted.seconds;
    struct totals totals = {0};
    for (uint64_t seed = wanted.seed; wanted.seconds != 0 ? time(NULL) < end : seed < wanted.seed + wanted.runs;
         seed++) {
        struct script script = {0};
        chance_script(&script, seed, wanted.steps);
        struct outcome verdict = run_script(&script, (unsigned)wanted.every);
        run_add(&totals, &verdict);
        if (verdict.text[0] != '\0') {
            printf("seed %llu, step %u of %zu: %s\n", (unsigned long long)seed, verdict.step, script.count,
                   verdict.text);
            run_print(&totals);
            if (!wanted.finds) {
                keep(&script, &verdict, seed);
            }
            return wanted.finds ? judge(&script, &verdict) : 1;
        }
        free(script.step);
    }
    run_print(&totals);
    return wanted.finds;
}

int main(int count, char **argument) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    run_open();
    int at = 1;
    for (; at + 1 < count && strncmp(argument[at], "--", 2) == 0; at += 2) {
        const char *name = argument[at] + 2, *value = argument[at + 1];
        if (strcmp(name, "seed") == 0) {
            wanted.seed = number_of(name, value, 0);
        } else if (strcmp(name, "runs") == 0) {
            wanted.runs = number_of(name, value, 1);
        } else if (strcmp(name, "steps") == 0) {
            wanted.steps = number_of(name, value, 1);
        } else if (strcmp(name, "every") == 0) {
            wanted.every = number_of(name, value, 1);
        } else if (strcmp(name, "seconds") == 0) {
            wanted.seconds = number_of(name, value, 1);
        } else if (strcmp(name, "clock") == 0) {
            world_begin_at(number_of(name, value, 1));
        } else if (strcmp(name, "soak") == 0) {
            const char *said = getenv(value); /* for so many seconds, from where nobody has been */
            if (said == NULL) {
                printf("simulator: %s is not set\n", value);
                return 77;
            }
            wanted.seconds = number_of(name, said, 1);
            wanted.seed = (uint64_t)time(NULL) * 1000;
            printf("from seed %llu on\n", (unsigned long long)wanted.seed);
        } else if (strcmp(name, "today") == 0) {
            enum { DAY = 24 * 60 * 60, SEEDS_A_DAY = 1000 };
            wanted.seed = (uint64_t)time(NULL) / DAY * SEEDS_A_DAY;
            printf("from seed %llu on\n", (unsigned long long)wanted.seed);
        } else if (strcmp(name, "keep") == 0) {
            wanted.keep = value;
        } else if (strcmp(name, "campaigns") == 0) {
            wanted.campaigns = number_of(name, value, 1);
        } else if (strcmp(name, "finds") == 0) {
            simulator_fault = fault_named(value);
            wanted.seed = faults[simulator_fault - 1].seed;
            wanted.finds = true;
        } else if (strcmp(name, "as") == 0) {
            wanted.as = value;
        } else if (strcmp(name, "fault") == 0) {
            simulator_fault = fault_named(value);
        } else {
            fprintf(stderr, "simulator: what is --%s %s?\n", name, value);
            return 2;
        }
    }
    if (wanted.campaigns != 0) {
        return campaign(wanted.seed, (unsigned)wanted.campaigns, (unsigned)wanted.runs, wanted.steps);
    }
    if (at == count) {
        return by_chance();
    }
    int status = 0;
    for (; at < count; at++) {
        status |= replay(argument[at]);
    }
    return status;
}
