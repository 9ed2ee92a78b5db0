#include "crew.h"

#include "allocator.h"
#include "moment.h"
#include "program.h"
#include "store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct member {
    const struct crew *crew;
    pthread_barrier_t *barrier;
    size_t index;
    uint64_t from_ns, to_ns;
    pthread_t thread;
};

static void *run_member(void *argument) {
    struct member *member = argument;
    const struct crew *crew = member->crew;
    if (crew->null_pool != 0)
        null_open(crew->null_pool);
    if (member->barrier != NULL)
        pthread_barrier_wait(member->barrier);
    member->from_ns = moment_ns();
    crew->work(member->index, crew->context);
    member->to_ns = moment_ns();
    if (crew->null_pool == 0)
        return NULL;
    if (member->barrier != NULL) /* another member may still read what this one allocated */
        pthread_barrier_wait(member->barrier);
    null_close();
    return NULL;
}

static pthread_t start_thread(void *(*life)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, life, argument) != 0) {
        fprintf(stderr, "%s: a thread could not be started; lower --threads or raise the limit\n", program_name());
        exit(1);
    }
    return thread;
}

void crew_life(void *(*life)(void *), void *argument) { pthread_join(start_thread(life, argument), NULL); }

static double span_of(const struct member *members, size_t count) {
    uint64_t from = members[0].from_ns, to = members[0].to_ns;
    for (size_t i = 1; i < count; i++) {
        from = members[i].from_ns < from ? members[i].from_ns : from;
        to = members[i].to_ns > to ? members[i].to_ns : to;
    }
    return seconds_between(from, to);
}

double crew_run(struct crew crew) {
    if (crew.threads == 1) {
        struct member alone = {.crew = &crew};
        run_member(&alone);
        return span_of(&alone, 1);
    }
    struct member *members = store_take(crew.threads * sizeof *members);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)crew.threads);
    for (size_t i = 0; i < crew.threads; i++) {
        members[i] = (struct member){.crew = &crew, .barrier = &barrier, .index = i};
        members[i].thread = start_thread(run_member, &members[i]);
    }
    for (size_t i = 0; i < crew.threads; i++)
        pthread_join(members[i].thread, NULL);
    const double seconds = span_of(members, crew.threads);
    pthread_barrier_destroy(&barrier);
    store_return(members, crew.threads * sizeof *members);
    return seconds;
}
