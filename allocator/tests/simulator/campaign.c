#include "campaign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chance.h"
#include "faults.h"
#include "run.h"

enum { SEEDS_MOST = 64, APART = 100000 /* seeds of two places, at least */ };

/* Steps until something was found; 0 when nothing was. Its kind goes to `kind`, and to `shows` whether it is one of the
 * fault's. */
static uint64_t look(uint64_t seed, unsigned runs, size_t steps, char *kind, size_t room, bool *shows) {
    uint64_t played = 0;
    for (unsigned i = 0; i < runs; i++) {
        struct script script = {0};
        chance_script(&script, seed + i, steps);
        struct outcome run = run_script(&script, 1);
        free(script.step);
        played += run.steps;
        if (run.text[0] != '\0') {
            snprintf(kind, room, "%.*s", (int)strcspn(run.text, ":"), run.text);
            *shows = simulator_fault != 0 && run_shows_fault(&run, simulator_fault);
            return played;
        }
    }
    return 0;
}

static int by_size(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* A row of the table; true when what was found is what has to be: what takes longer has a script. */
static bool row(const char *name, const char *breaks, uint64_t seed, unsigned seeds, unsigned runs, size_t steps) {
    uint64_t taken[SEEDS_MOST];
    char kind[64] = "nothing";
    unsigned found = 0, shown = 0;
    for (unsigned i = 0; i < seeds; i++) {
        bool shows;
        uint64_t played = look(seed + (uint64_t)i * APART, runs, steps, kind, sizeof kind, &shows);
        if (played != 0) {
            taken[found++] = played;
            shown += shows;
        }
    }
    qsort(taken, found, sizeof *taken, by_size);
    printf("| %s | %s | %s | %u of %u |", name, breaks, kind, strcmp(name, "none") == 0 ? found : shown, seeds);
    if (found > 0) {
        printf(" %llu | %llu |\n", (unsigned long long)taken[found / 2], (unsigned long long)taken[found - 1]);
    } else {
        printf(" | |\n");
    }
    return strcmp(name, "none") == 0 ? found == 0 : shown == found;
}

int campaign(uint64_t seed, unsigned seeds, unsigned runs, size_t steps) {
    seeds = seeds < SEEDS_MOST ? seeds : SEEDS_MOST;
    printf("| fault | breaks | found as | found | steps until then, median | most |\n| --- | --- | --- | --- | --- | "
           "--- |\n");
    unsigned only = simulator_fault;
    simulator_fault = 0;
    bool right = only != 0 || row("none", "", seed, seeds, runs / 4, steps);
    for (unsigned i = 0; faults[i].name != NULL; i++) {
        simulator_fault = i + 1;
        if (only != 0 && only != simulator_fault) {
            continue;
        }
        if (faults[i].found_as[0] != NULL) { /* a survivor says so */
            right &= row(faults[i].name, faults[i].breaks, seed, seeds, runs, steps);
        }
    }
    simulator_fault = 0;
    return right ? 0 : 1;
}
