/* patient.h: what sick programs are made of. */
#ifndef FREESTONE_PATIENT_H
#define FREESTONE_PATIENT_H

#include <pthread.h>
#include <stddef.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

/* A program by the name of what it suffers from; the last of a list has no name. */
struct patient {
    const char *name;
    void (*run)(void);
};

extern const struct patient patients_in_time[];
extern const struct patient patients_in_memory[];
extern const struct patient patients_in_both[];
extern const struct patient reported_cases[];
extern const struct patient well_ones[];

/* Ends the program, with a line on standard error. */
void give_up(const char *why);

/* A block; never NULL. */
void *asked(size_t size);

/* Writes to each page of 4 KiB. */
void touch(void *block, size_t size);

/* Computes for some milliseconds a round, asking for nothing, so that no share of time is all of it. */
void work(unsigned rounds);

void start(pthread_t *thread, void *(*run)(void *), void *argument);
void finish(pthread_t thread);

/* So many threads, at most 16, that all come to meet() twice: between the two the caller computes for some rounds, and they wait. */
void crowd(size_t threads, void *(*run)(void *), unsigned rounds);
void meet(void);

/* So many blocks, written to, in a block of their addresses. */
void **many(size_t count, size_t size);
/* Likewise, and all but each 16th freed again. */
void **riddled(size_t count, size_t size);
void free_many(void **blocks, size_t count);

/* The next of a row of numbers that look random and are always the same. */
unsigned drawn(unsigned *state);

#endif
