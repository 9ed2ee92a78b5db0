/* A bounded queue of blocks between threads, in memory of its own, so that nothing but the blocks is on the heap. */
#ifndef FREESTONE_TESTS_HANDOVER_H
#define FREESTONE_TESTS_HANDOVER_H

#include <pthread.h>
#include <stddef.h>

enum { HANDOVER_PLACES = 1024 };

struct handover {
    pthread_mutex_t lock; /* everything below */
    pthread_cond_t changed;
    void *places[HANDOVER_PLACES];
    size_t first;
    size_t count;
};

#define HANDOVER_INITIALIZER {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}

/* Waits while the queue is full. */
static inline void handover_put(struct handover *queue, void *block) {
    pthread_mutex_lock(&queue->lock);
    while (queue->count == HANDOVER_PLACES) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    queue->places[(queue->first + queue->count++) % HANDOVER_PLACES] = block;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

/* Waits while the queue is empty. */
static inline void *handover_get(struct handover *queue) {
    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    void *block = queue->places[queue->first];
    queue->first = (queue->first + 1) % HANDOVER_PLACES;
    queue->count--;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return block;
}

#endif
