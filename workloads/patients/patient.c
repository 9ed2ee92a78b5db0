/* patient.c: what sick programs are made of. */
#include "patient.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void give_up(const char *why) {
    fprintf(stderr, "patients: %s\n", why);
    exit(1);
}

void *asked(size_t size) {
    void *block = malloc(size);
    if (block == NULL)
        give_up("no memory");
    return block;
}

void touch(void *block, size_t size) {
    for (size_t at = 0; at < size; at += 4096)
        ((volatile char *)block)[at] = 1;
}

void work(unsigned rounds) {
    static _Thread_local volatile uint64_t sink;
    uint64_t value = 88172645463325252u;
    for (unsigned i = 0; i < rounds * 400000; i++) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    sink = value;
    (void)sink;
}

void start(pthread_t *thread, void *(*run)(void *), void *argument) {
    if (pthread_create(thread, NULL, run, argument) != 0)
        give_up("no thread");
}

void finish(pthread_t thread) { pthread_join(thread, NULL); }

static pthread_barrier_t meeting;

void meet(void) { pthread_barrier_wait(&meeting); }

void crowd(size_t threads, void *(*run)(void *), unsigned rounds) {
    enum { MOST = 16 };
    pthread_t each[MOST];
    if (threads > MOST)
        give_up("too many threads");
    pthread_barrier_init(&meeting, NULL, (unsigned)threads + 1);
    for (size_t i = 0; i < threads; i++)
        start(&each[i], run, NULL);
    meet();
    work(rounds);
    meet();
    for (size_t i = 0; i < threads; i++)
        finish(each[i]);
}

void **many(size_t count, size_t size) {
    void **blocks = asked(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = asked(size);
        memset(blocks[i], 1, size);
    }
    return blocks;
}

void **riddled(size_t count, size_t size) {
    void **blocks = many(count, size);
    for (size_t i = 0; i < count; i++) {
        if (i % 16 != 0) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    return blocks;
}

void free_many(void **blocks, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    free(blocks);
}

unsigned drawn(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}
