/* A run: a script played in a process of its own, so that whatever happens there is only told here. */
#ifndef FREESTONE_SIMULATOR_RUN_H
#define FREESTONE_SIMULATOR_RUN_H

#include "failure.h"
#include "script.h"

struct totals {
    unsigned long runs;
    uint64_t steps, yields, audits, forks, calls, refusals;
};

/* Once, before the first. */
void run_open(void);

/* What became of it; the text is empty when all was well. */
struct outcome run_script(const struct script *script, unsigned every);

/* True when both failed, and alike. */
bool run_is_alike(const struct outcome *one, const struct outcome *other);

/* It failed with that kind of failure; with one of those that the planted fault has to be found as. */
bool run_is_of_kind(const struct outcome *outcome, const char *kind);
bool run_shows_fault(const struct outcome *outcome, unsigned fault);

void run_add(struct totals *totals, const struct outcome *outcome);
void run_print(const struct totals *totals);

#endif
