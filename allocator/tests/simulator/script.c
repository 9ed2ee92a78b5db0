#include "script.h"

#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "options.h"
#include "seams.h"

/* The numbers that stand behind a verb: of a block, one, and another. */
static const struct {
    const char *name;
    bool block, size, more;
} verbs[VERB_COUNT] = {
    [VERB_MALLOC] = {"malloc", true, true, false},  [VERB_CALLOC] = {"calloc", true, true, false},
    [VERB_ALIGNED] = {"aligned", true, true, true}, [VERB_REALLOC] = {"realloc", true, true, false},
    [VERB_FREE] = {"free", true, false, false},     [VERB_END] = {"end", false, true, false},
    [VERB_FORK] = {"fork", false, true, false},     [VERB_FORK_UNANNOUNCED] = {"fork!", false, true, false},
    [VERB_TRIM] = {"trim", false, false, false},    [VERB_FIGURES] = {"figures", false, false, false},
    [VERB_GO] = {"go", false, false, false},        [VERB_KEEPER] = {"keeper", false, false, false},
    [VERB_IDLE] = {"idle", false, true, false},     [VERB_REST] = {"rest", false, false, false},
    [VERB_REFUSE] = {"refuse", false, true, true},  [VERB_LIMIT] = {"limit", false, true, false},
    [VERB_CPUS] = {"cpus", false, true, false},     [VERB_OPTION] = {"option", false, false, true},
    [VERB_STALL] = {"stall", false, true, true},    [VERB_OLD] = {"old", false, false, false},
};

static const char grains[] = "@+!"; /* enum grain */

void script_add(struct script *script, struct step step) {
    if (script->count == script->room) {
        script->room = script->room == 0 ? 256 : 2 * script->room;
        script->step = realloc(script->step, script->room * sizeof *script->step);
        EXPECT_HERE(script->step != NULL);
    }
    script->step[script->count++] = step;
}

/* The next number of the line; false when there is none below `end`. */
static bool number(char **rest, uint32_t end, uint32_t *value) {
    const char *word = strtok_r(NULL, " \t\n", rest);
    char *stop = NULL;
    unsigned long got = word == NULL ? 0 : strtoul(word, &stop, 10);
    *value = (uint32_t)got;
    return word != NULL && *stop == '\0' && got < end;
}

/* The number of the option that the next word names: an option that comes or goes changes no script. */
static bool option_number(char **rest, uint32_t *value) {
    const char *word = strtok_r(NULL, " \t\n", rest);
    *value = 0;
    while (word != NULL && *value < OPTION_COUNT && strcmp(seam_option_name(*value), word) != 0) {
        ++*value;
    }
    return word != NULL && *value < OPTION_COUNT;
}

static bool read_step(char *line, struct step *step) {
    char *rest = NULL;
    const char *word = strtok_r(line, " \t\n", &rest);
    bool threaded = word[0] >= '0' && word[0] <= '9';
    *step = (struct step){0};
    if (threaded) {
        step->thread = (uint8_t)(word[0] - '0');
        word = strtok_r(NULL, " \t\n", &rest);
        if (word == NULL || step->thread >= THREADS_MOST) {
            return false;
        }
    }
    unsigned verb = 0;
    while (verb < VERB_COUNT && strcmp(verbs[verb].name, word) != 0) {
        verb++;
    }
    if (verb == VERB_COUNT || threaded != (verb < VERBS_OF_THREADS)) {
        return false;
    }
    step->verb = (uint8_t)verb;
    uint32_t block = 0;
    if ((verbs[verb].block && !number(&rest, BLOCKS_MOST, &block)) ||
        (verb == VERB_OPTION && !option_number(&rest, &step->size)) ||
        (verbs[verb].size && !number(&rest, UINT32_MAX, &step->size)) ||
        (verbs[verb].more && !number(&rest, UINT32_MAX, &step->more))) {
        return false;
    }
    step->block = (uint16_t)block;
    word = strtok_r(NULL, " \t\n", &rest);
    if (word != NULL && strchr(grains, word[0]) != NULL) {
        step->grain = (uint32_t)(strchr(grains, word[0]) - grains);
        char *end;
        step->yields = (uint32_t)strtoul(word + 1, &end, 10);
        step->last = *end == '-' ? (uint32_t)strtoul(end + 1, NULL, 10) : 0;
        word = strtok_r(NULL, " \t\n", &rest);
    }
    return word == NULL;
}

bool script_read(struct script *script, FILE *from, unsigned *line) {
    char text[256];
    for (*line = 1; fgets(text, sizeof text, from) != NULL; ++*line) {
        size_t blank = strspn(text, " \t\n");
        struct step step;
        if (text[blank] == '\0' || text[blank] == '#') {
            continue;
        }
        if (!read_step(text, &step)) {
            return false;
        }
        script_add(script, step);
    }
    return true;
}

void script_write(const struct script *script, FILE *to) {
    for (size_t i = 0; i < script->count; i++) {
        const struct step *step = &script->step[i];
        if (step->verb < VERBS_OF_THREADS) {
            fprintf(to, "%u ", step->thread);
        }
        fputs(verbs[step->verb].name, to);
        if (verbs[step->verb].block) {
            fprintf(to, " %u", step->block);
        }
        if (step->verb == VERB_OPTION) {
            fprintf(to, " %s", seam_option_name(step->size));
        }
        if (verbs[step->verb].size) {
            fprintf(to, " %u", step->size);
        }
        if (verbs[step->verb].more) {
            fprintf(to, " %u", step->more);
        }
        if (step->yields != 0) {
            fprintf(to, " %c%u", grains[step->grain], step->yields);
            if (step->last != 0) {
                fprintf(to, "-%u", step->last);
            }
        }
        fputc('\n', to);
    }
}
