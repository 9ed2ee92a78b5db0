#include "shrink.h"

#include <stdlib.h>
#include <string.h>

struct search {
    struct script *script;
    struct outcome *failed;
    unsigned tries;
};

/* Plays a shorter or simpler one; where it fails alike it takes the script's place. */
static bool try_script(struct search *search, const struct script *candidate) {
    if (search->tries == 0) {
        return false;
    }
    search->tries--;
    struct outcome outcome_now = run_script(candidate, 1);
    if (!run_is_alike(&outcome_now, search->failed)) {
        return false;
    }
    *search->failed = outcome_now;
    search->script->count = candidate->count;
    memmove(search->script->step, candidate->step, candidate->count * sizeof *candidate->step);
    if (outcome_now.step + 1 < candidate->count) { /* what comes after is of no matter */
        search->script->count = outcome_now.step + 1;
    }
    return true;
}

static bool try_without(struct search *search, struct script *scratch, size_t from, size_t count) {
    const struct script *script = search->script;
    memcpy(scratch->step, script->step, from * sizeof *script->step);
    memcpy(scratch->step + from, script->step + from + count, (script->count - from - count) * sizeof *script->step);
    scratch->count = script->count - count;
    return try_script(search, scratch);
}

/* Leaves steps out; true when any could be. From the end: what is prepared early is needed longest. */
static bool leave_out(struct search *search, struct script *scratch) {
    size_t before = search->script->count;
    for (size_t piece = before / 2 + 1; piece > 0; piece /= 2) {
        for (size_t end = search->script->count; end > 0 && search->tries > 0;) {
            size_t from = end > piece ? end - piece : 0;
            (void)try_without(search, scratch, from, end - from);
            end = from < search->script->count ? from : search->script->count;
        }
    }
    return search->script->count < before;
}

static bool try_step(struct search *search, struct script *scratch, size_t at, struct step step) {
    if (at >= search->script->count || memcmp(&step, &search->script->step[at], sizeof step) == 0) {
        return false;
    }
    memcpy(scratch->step, search->script->step, search->script->count * sizeof step);
    scratch->count = search->script->count;
    scratch->step[at] = step;
    return try_script(search, scratch);
}

static bool simplify(struct search *search, struct script *scratch) {
    bool any = false;
    for (size_t at = search->script->count; at-- > 0;) {
        static const uint8_t plainer[VERB_COUNT] = {
            [VERB_CALLOC] = VERB_MALLOC + 1, [VERB_ALIGNED] = VERB_MALLOC + 1, [VERB_REALLOC] = VERB_FREE + 1};
        if (at >= search->script->count) {
            continue;
        }
        struct step step = search->script->step[at];
        if (step.yields != 0) {
            struct step whole = step;
            whole.yields = whole.grain = 0;
            any |= try_step(search, scratch, at, whole);
        }
        if (at < search->script->count && plainer[step.verb] != 0) {
            step = search->script->step[at];
            step.verb = (uint8_t)(plainer[step.verb] - 1);
            any |= try_step(search, scratch, at, step);
        }
        for (uint8_t thread = 0; at < search->script->count && thread < search->script->step[at].thread; thread++) {
            step = search->script->step[at];
            step.thread = thread;
            any |= try_step(search, scratch, at, step);
        }
    }
    return any;
}

void shrink(struct script *script, struct outcome *failed, unsigned tries) {
    struct search search = {script, failed, tries};
    struct script scratch = {.step = malloc((script->count + 1) * sizeof *script->step), .room = script->count + 1};
    EXPECT_HERE(scratch.step != NULL);
    if (failed->step + 1 < script->count) {
        script->count = failed->step + 1;
    }
    bool again = true;
    while (again && search.tries > 0) {
        again = leave_out(&search, &scratch);
        again |= simplify(&search, &scratch);
    }
    free(scratch.step);
}
