/* A script: what is played, a step a line. The same script plays the same way every time.
 *
 *     0 malloc 17 64          thread 0 has a block of 64 bytes, from now on number 17
 *     1 free 17 @9            thread 1 frees it, and is interrupted after nine atomics; +9, nine that order others (all but relaxed),
 *                             !9, nine that stand in one order for all (seq_cst)
 *     keeper @40              the keeper looks round, and is interrupted after forty
 *     0 trim                  ... all of which runs to its end
 *     1 go                    thread 1 goes on
 *     idle 400                so many milliseconds go by
 *
 * `@3-9` is each number of the range in its turn, and so a script of several such ranges is every choice among them.
 *
 * A thread that is in the middle of something first brings it to its end when it is given something else. */
#ifndef FREESTONE_SIMULATOR_SCRIPT_H
#define FREESTONE_SIMULATOR_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum verb {
    /* of a thread */
    VERB_MALLOC,
    VERB_CALLOC,
    VERB_ALIGNED, /* to the alignment, a power of two */
    VERB_REALLOC,
    VERB_FREE,
    VERB_END,  /* the thread ends, after one last block of the size; what its number does next is a new thread's */
    VERB_FORK, /* the child plays so many of the next steps too */
    VERB_FORK_UNANNOUNCED,
    VERB_TRIM,
    VERB_FIGURES,
    VERB_GO, /* on with what was begun */
    VERBS_OF_THREADS,
    /* of nobody */
    VERB_KEEPER = VERBS_OF_THREADS, /* the keeper goes on, or does what it sleeps until, until it sleeps again */
    VERB_IDLE,                      /* milliseconds go by */
    VERB_REST,                      /* everybody brings to an end what was begun */
    VERB_REFUSE,                    /* the kernel refuses so many requests, after the next few */
    VERB_LIMIT,                     /* memory there is, in KiB; 0: enough */
    VERB_CPUS,                      /* processors; before the first step of a thread */
    VERB_OPTION,                    /* name, value */
    VERB_STALL, /* who has that number (9: the keeper) gets no turn for others' sake in so many steps */
    VERB_OLD, /* the kernel wipes no pages at forks; before the first step of a thread */
    VERB_COUNT,
};

struct step {
    uint8_t verb, thread;
    uint16_t block; /* number */
    uint32_t size; /* bytes, or the verb's one number */
    uint32_t more; /* alignment; value */
    uint32_t yields; /* after which it is interrupted; 0: it runs to its end */
    uint32_t last; /* of a range of such numbers, each of which is played in turn; 0: there is none */
    uint32_t grain; /* enum grain: which are counted */
};

struct script {
    struct step *step;
    size_t count, room;
};

enum { BLOCKS_MOST = 512, THREADS_MOST = 8 };

void script_add(struct script *script, struct step step);

/* False when a line is no step; it is then in `line`. */
bool script_read(struct script *script, FILE *from, unsigned *line);
void script_write(const struct script *script, FILE *to);

#endif
