/* Threads that begin the same work together, under one clock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct crew {
    size_t threads;
    void (*work)(size_t member, void *context);
    void *context;
    size_t null_pool; /* bytes of null allocator each member gets before the clock starts; 0 for none */
};

/* Run the work in every thread and return the seconds from the first start to the last end. One thread is the calling
 * one, so that a program with --threads 1 stays a single-threaded process. */
double crew_run(struct crew crew);

/* Start a thread for this work and wait for its end: one short life. */
void crew_life(void *(*life)(void *), void *argument);

enum { CREW_MOST = 1024 };
