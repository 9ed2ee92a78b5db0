/* Many threads allocate and replace what they keep; one thread, which never allocates, frees all they let go of. What the
 * process holds must stay near what is alive, however unlike the work of that one thread is to everybody else's.
 *
 *   one_frees [PERCENT KEPT REPLACED]     of what is alive may be held; blocks a producer keeps, and replaces */
#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "handover.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

enum {
    PRODUCERS = 16,
    KEPT_MOST = 24000, /* blocks a producer keeps: 24 MiB, 400 in all */
    LARGEST = 2048,
};

static struct handover queue = HANDOVER_INITIALIZER;
static char last_of_a_producer;
static size_t percent = 200, kept = 4000, replaced = 20000;

struct producer {
    uint64_t random;
    uint64_t *kept[KEPT_MOST];
    size_t kept_bytes;
};

static struct producer producers[PRODUCERS]; /* zero: in no memory until it is used */

static uint64_t *new_block(struct producer *own) {
    size_t size = 16 + pattern_below(&own->random, LARGEST);
    uint64_t *block = malloc(size);
    EXPECT(block != NULL, "malloc(%zu) failed", size);
    block[0] = size;
    pattern_fill(block, 8, size, size);
    own->kept_bytes += size;
    return block;
}

static void *produce(void *argument) {
    struct producer *own = argument;
    for (size_t i = 0; i < kept; i++) {
        own->kept[i] = new_block(own);
    }
    for (size_t i = 0; i < replaced; i++) {
        size_t chosen = pattern_below(&own->random, kept);
        own->kept_bytes -= own->kept[chosen][0];
        handover_put(&queue, own->kept[chosen]);
        own->kept[chosen] = new_block(own);
    }
    handover_put(&queue, &last_of_a_producer);
    return NULL;
}

static void *only_free(void *argument) {
    (void)argument;
    for (size_t ended = 0; ended < PRODUCERS;) {
        uint64_t *block = handover_get(&queue);
        if ((void *)block == &last_of_a_producer) {
            ended++;
            continue;
        }
        for (size_t at = 8; at + 8 <= block[0]; at += 8) {
            EXPECT(block[at / 8] == pattern_word(block[0], at / 8), "a block of %zu bytes: byte %zu changed",
                   (size_t)block[0], at);
        }
        free(block);
    }
    return NULL;
}

int main(int count, char **arguments) {
    require_serving();
    if (count > 1) {
        EXPECT(count == 4, "usage: one_frees [PERCENT KEPT REPLACED]");
        percent = strtoul(arguments[1], NULL, 10);
        kept = strtoul(arguments[2], NULL, 10);
        replaced = strtoul(arguments[3], NULL, 10);
        EXPECT(kept > 0 && kept <= KEPT_MOST, "KEPT is at most %d", KEPT_MOST);
    }
    size_t before_kib = resident_kib();
    pthread_t thread[PRODUCERS];
    pthread_t consumer;
    EXPECT(pthread_create(&consumer, NULL, only_free, NULL) == 0, "no thread");
    for (size_t p = 0; p < PRODUCERS; p++) {
        producers[p].random = p + 1;
        EXPECT(pthread_create(&thread[p], NULL, produce, &producers[p]) == 0, "no thread");
    }
    size_t live_kib = 0;
    for (size_t p = 0; p < PRODUCERS; p++) {
        pthread_join(thread[p], NULL);
        live_kib += producers[p].kept_bytes / 1024;
    }
    pthread_join(consumer, NULL);
    size_t held_kib = resident_more_kib(resident_kib(), before_kib);
    EXPECT(held_kib * 100 < percent * live_kib, "%zu KiB are alive, and %zu are held", live_kib, held_kib);
    printf("%zu KiB are alive, %zu are held\n", live_kib, held_kib);
    return 0;
}
