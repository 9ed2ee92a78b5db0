/* What a program keeps and costs, told by itself: `footprint SCENARIO` prints one number. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { THREADS = 500, CLASSES = 40, TURNS = 1000, CACHED_THREADS = 192, CACHED_TURNS = 300, HELD = 3 };

static const size_t mebibyte = (size_t)1 << 20;

static void *served(void *block) {
    if (block == NULL) {
        fprintf(stderr, "footprint: no memory\n");
        exit(1);
    }
    return block;
}

static long of_status(const char *field) {
    char line[200];
    long found = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) {
            found = strtol(line + strlen(field), NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* KiB of a program that does nothing. */
static long nothing(void) { return of_status("VmRSS:"); }

static pthread_barrier_t together;

static void *touch_every_class(void *unused) {
    for (size_t class = 1; class <= CLASSES; class++) {
        size_t bytes = 16 * class * (class <= CLASSES / 2 ? 1 : 4);
        void *block = served(malloc(bytes));
        memset(block, 1, bytes);
        free(block);
    }
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    return unused;
}

static pthread_mutex_t in_turn = PTHREAD_MUTEX_INITIALIZER;

/* Many times over, so that a thread earns magazines, with few blocks at once; then it sleeps on what it keeps. */
static void *work_in_turn(const size_t *bytes) {
    pthread_mutex_lock(&in_turn);
    for (int turn = 0; turn < CACHED_TURNS; turn++) {
        for (size_t size = bytes[0]; size <= bytes[1]; size += size / 4) {
            void *held[HELD];
            for (int i = 0; i < HELD; i++) {
                held[i] = served(malloc(size));
                memset(held[i], 1, turn < CACHED_TURNS - 1 ? 1 : size);
            }
            for (int i = 0; i < HELD; i++) {
                free(held[i]);
            }
        }
    }
    pthread_mutex_unlock(&in_turn);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    return NULL;
}

static void *work_in_medium(void *unused) {
    (void)unused;
    return work_in_turn((const size_t[]){10 * 1024, 64 * 1024});
}

static void *work_in_large(void *unused) {
    (void)unused;
    return work_in_turn((const size_t[]){80 * 1024, 256 * 1024});
}

/* KiB that so many threads add which live at once and have each done that. */
static long added_by_threads(int count, void *(*work)(void *)) {
    static pthread_t threads[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_barrier_init(&together, NULL, (unsigned)count + 1);
    long before = of_status("VmRSS:");
    for (int t = 0; t < count; t++) {
        if (pthread_create(&threads[t], &small, work, NULL) != 0) {
            fprintf(stderr, "footprint: no thread\n");
            exit(1);
        }
    }
    pthread_barrier_wait(&together);
    long after = of_status("VmRSS:");
    pthread_barrier_wait(&together);
    for (int t = 0; t < count; t++) {
        pthread_join(threads[t], NULL);
    }
    return after - before;
}

static long caches(void) { return added_by_threads(THREADS, touch_every_class); }

static long medium_caches(void) { return added_by_threads(CACHED_THREADS, work_in_medium); }

static long large_caches(void) { return added_by_threads(CACHED_THREADS, work_in_large); }

static uint64_t drawn(uint64_t *state) {
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return *state >> 33;
}

/* Mappings of a heap of 256 MiB after random blocks were freed and others, some of them large, taken in their place. */
static long mappings(void) {
    const size_t count = 256 * mebibyte / 3000;
    uint64_t random = 1;
    void **block = mmap(NULL, count * sizeof *block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        exit(1);
    }
    for (int round = 0; round < 4; round++) {
        for (size_t b = 0; b < count; b++) {
            if (drawn(&random) % 2 == 0) {
                free(block[b]);
                block[b] = NULL;
            }
        }
        for (size_t b = 0; b < count; b++) {
            if (block[b] == NULL) {
                size_t bytes = 16 + drawn(&random) % (round > 0 && drawn(&random) % 100 == 0 ? mebibyte : 6000);
                block[b] = served(malloc(bytes));
                memset(block[b], 1, bytes < 6000 ? bytes : 6000);
            }
        }
    }
    long lines = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    for (int c = maps != NULL ? fgetc(maps) : EOF; c != EOF; c = fgetc(maps)) {
        lines += c == '\n';
    }
    return lines;
}

/* The most KiB resident while one block doubles from 64 to 512 MiB. */
static long growth(void) {
    size_t bytes = 64 * mebibyte;
    char *block = served(malloc(bytes));
    memset(block, 1, bytes);
    for (; bytes < 512 * mebibyte; bytes *= 2) {
        block = served(realloc(block, 2 * bytes));
        memset(block + bytes, 1, bytes);
    }
    long peak = of_status("VmHWM:");
    free(block);
    return peak;
}

/* Faults of a loop that takes, writes and frees 1 MiB, but for its first turns. */
static long loop(void) {
    struct rusage before;
    struct rusage after;
    for (int turn = 0; turn < TURNS + 2; turn++) {
        if (turn == 2) {
            getrusage(RUSAGE_SELF, &before);
        }
        volatile char *block = served(malloc(mebibyte));
        for (size_t at = 0; at < mebibyte; at += 4096) {
            block[at] = 1;
        }
        free((void *)block);
    }
    getrusage(RUSAGE_SELF, &after);
    return after.ru_minflt - before.ru_minflt;
}

static const struct {
    const char *name;
    long (*run)(void);
} scenarios[] = {
    {"nothing", nothing},
    {"caches", caches},
    {"medium-caches", medium_caches},
    {"large-caches", large_caches},
    {"mappings", mappings},
    {"growth", growth},
    {"loop", loop},
};

int main(int count, char **words) {
    for (size_t i = 0; count == 2 && i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(words[1], scenarios[i].name) == 0) {
            printf("%ld\n", scenarios[i].run());
            return 0;
        }
    }
    fprintf(stderr, "footprint: usage: footprint SCENARIO\n");
    return 2;
}
