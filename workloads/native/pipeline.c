/* Producers allocate, consumers free; consumers never allocate anything. Objects travel in batches, through one bounded
 * queue of batches that are used again and again, so that the live memory is bounded however many objects there are.
 *
 *        empty batches --> producer: malloc, sign --> full batches --> consumer: check, free --+
 *              ^-------------------------------------------------------------------------------+ */
#include "block.h"
#include "crew.h"
#include "random.h"
#include "report.h"
#include "resident.h"
#include "store.h"

#include <pthread.h>

enum { BATCH = 256, SIZES = 1 << 14, SAMPLES = 10 };

static uint64_t producers = 1, consumers = 1, objects = 4000000, least = 16, most = 256, depth = 64;

static const struct parameter parameters[] = {
    {"producers", COUNT, &producers, 1, CREW_MOST, NULL, "threads that allocate"},
    {"consumers", COUNT, &consumers, 1, CREW_MOST, NULL, "threads that free"},
    {"objects", COUNT, &objects, 1, 1e12, NULL, "of all producers together"},
    {"least", BYTES, &least, BLOCK_LEAST, 1 << 30, NULL, "size of an object"},
    {"most", BYTES, &most, BLOCK_LEAST, 1 << 30, NULL, "size of an object"},
    {"depth", COUNT, &depth, 1, 1 << 20, NULL, "batches of 256 objects for each thread"},
};
static const struct program program = {"pipeline", "Some threads allocate, other threads free.", parameters,
                                       sizeof parameters / sizeof *parameters};

struct batch {
    uint64_t first; /* number of the first object; the sizes and the marks follow from it */
    uint32_t count; /* 0: there will be no more */
    void *objects[BATCH];
};

/* A first-in-first-out queue with room for every batch there is, so that putting never waits. */
struct queue {
    pthread_mutex_t lock; /* protects the rest */
    pthread_cond_t filled;
    uint32_t *ring; /* places in `batches` */
    size_t capacity, head, length;
};

static struct queue empty, full;
static struct batch *batches;
static uint32_t *sizes;
static uint64_t limit; /* objects of this run */
static size_t producers_left; /* protected by full.lock */
static uint64_t *checksums; /* one per consumer, a line apart */
static uint64_t samples[SAMPLES];

enum { APART = 8 }; /* words of a cache line */

static void queue_put(struct queue *q, struct batch *batch) {
    pthread_mutex_lock(&q->lock);
    q->ring[(q->head + q->length++) % q->capacity] = (uint32_t)(batch - batches);
    pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->lock);
}

static struct batch *queue_take(struct queue *q) {
    pthread_mutex_lock(&q->lock);
    while (q->length == 0)
        pthread_cond_wait(&q->filled, &q->lock);
    struct batch *batch = &batches[q->ring[q->head]];
    q->head = (q->head + 1) % q->capacity;
    q->length--;
    pthread_mutex_unlock(&q->lock);
    return batch;
}

static bool last_to_leave(void) {
    pthread_mutex_lock(&full.lock);
    const bool last = --producers_left == 0;
    pthread_mutex_unlock(&full.lock);
    return last;
}

ALWAYS_INLINE uint32_t size_of(uint64_t object) { return sizes[object % SIZES]; }

/* The first producer looks at the resident set each time a tenth of its objects is made. */
static void sample(uint64_t made, uint64_t share, size_t *next) {
    while (*next < SAMPLES && made * SAMPLES >= share * (*next + 1))
        samples[(*next)++] = resident_kib();
}

ALWAYS_INLINE void produce(const struct allocator *a, size_t member, bool watch) {
    const uint64_t from = limit * member / producers, to = limit * (member + 1) / producers;
    size_t next_sample = 0;
    for (uint64_t object = from; object < to;) {
        struct batch *batch = queue_take(&empty);
        const uint64_t left = to - object;
        batch->first = object;
        batch->count = left < BATCH ? (uint32_t)left : BATCH;
        for (uint32_t i = 0; i < batch->count; i++)
            batch->objects[i] = block_take(a, size_of(object + i), object + i);
        object += batch->count;
        queue_put(&full, batch);
        if (watch && member == 0)
            sample(object - from, to - from, &next_sample);
    }
    if (last_to_leave())
        for (uint64_t i = 0; i < consumers; i++) {
            struct batch *none = queue_take(&empty);
            none->count = 0;
            queue_put(&full, none);
        }
}

ALWAYS_INLINE uint64_t consume(const struct allocator *a) {
    uint64_t checksum = 0; /* a sum: which consumer gets which batch is chance */
    for (;;) {
        struct batch *batch = queue_take(&full);
        if (batch->count == 0) {
            queue_put(&empty, batch);
            return checksum;
        }
        for (uint32_t i = 0; i < batch->count; i++)
            checksum += block_give(a, batch->objects[i], size_of(batch->first + i), batch->first + i);
        queue_put(&empty, batch);
    }
}

ALWAYS_INLINE void work(const struct allocator *a, size_t member, bool watch) {
    if (member < producers)
        produce(a, member, watch);
    else
        checksums[(member - producers) * APART] = consume(a);
}

static void work_measured(size_t member, void *unused) {
    (void)unused;
    work(&measured, member, true);
}

static void work_floor(size_t member, void *unused) {
    (void)unused;
    work(&null_allocator, member, false);
}

static void queue_open(struct queue *q, size_t capacity) {
    *q = (struct queue){.ring = store_take(capacity * sizeof *q->ring), .capacity = capacity};
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->filled, NULL);
}

static struct measurement run(void (*member)(size_t, void *), uint64_t count, size_t null_pool) {
    limit = count;
    producers_left = producers;
    const double seconds = crew_run((struct crew){producers + consumers, member, NULL, null_pool});
    struct measurement result = {2 * count, seconds, 0};
    for (uint64_t i = 0; i < consumers; i++)
        result.checksum += checksums[i * APART];
    return result;
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (least > most)
        program_refuse("--least is above --most");
    const size_t capacity = depth * (producers + consumers);
    queue_open(&empty, capacity);
    queue_open(&full, capacity);
    batches = store_take(capacity * sizeof *batches);
    for (size_t i = 0; i < capacity; i++)
        queue_put(&empty, &batches[i]);
    sizes = store_take(SIZES * sizeof *sizes);
    checksums = store_take(consumers * APART * sizeof *checksums);
    struct random random;
    random_seed(&random, 5);
    random_sizes(&random, sizes, SIZES, least, most);
    const struct measurement result = run(work_measured, objects, 0);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor()) {
        const uint64_t some = objects < 1000000 ? objects : objects > 8000000 ? 1000000 : objects / 8;
        const size_t pool = null_pool_for(depth * BATCH * most, most, producers);
        report_floor_of(run(work_floor, some, pool), result);
    } else {
        report_no_floor();
    }
    report_real("ns_per_object", result.seconds * 1e9 / (double)objects);
    report_counts("rss_kib", samples, SAMPLES);
    report_close();
    return 0;
}
