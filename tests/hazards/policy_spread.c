/* The same program under each policy of huge pages holds about the same: a hundred threads that sleep, and 32 MiB of blocks. */
#include "hazard.h"

enum { THREADS = 100, BLOCKS = 32 * 1024, SPREAD_PERCENT = 130 };

static pthread_barrier_t together;
static size_t *held_kib; /* in memory that processes share */

static void *sleep_on(void *unused) {
    for (size_t i = 0; i < 200; i++) {
        free(touched(16 + i * 10));
    }
    pthread_barrier_wait(&together);
    for (;;) {
        pause();
    }
    return unused;
}

static void live(void) {
    TABLE(block, BLOCKS);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&together, NULL, THREADS + 1);
    size_t before = resident_kib();
    for (size_t t = 0; t < THREADS; t++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, &small, sleep_on, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&together);
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = touched(1024);
    }
    *held_kib = resident_kib() - before;
}

/* In a process that begins under the policy, as the heap looks at it when it starts. */
static size_t held_under(const char *policy) {
    int file = open(getenv("HAZARD_THP"), O_WRONLY | O_CLOEXEC);
    EXPECT(file >= 0 && write(file, policy, strlen(policy)) > 0, "the policy cannot be set");
    close(file);
    char line[32] = {0};
    FILE *told = popen("/proc/$PPID/exe live", "r");
    EXPECT(told != NULL && fgets(line, sizeof line, told) != NULL && pclose(told) == 0, "it ended badly under %s",
           policy);
    return strtoul(line, NULL, 10);
}

int main(int count, char **arguments) {
    require_serving();
    if (count == 2 && strcmp(arguments[1], "live") == 0) {
        held_kib = &(size_t){0};
        live();
        printf("%zu\n", *held_kib);
        fflush(stdout);
        _exit(0);
    }
    size_t always = held_under("always"), advised = held_under("madvise"), never = held_under("never");
    size_t least = always < advised ? always : advised, most = always > advised ? always : advised;
    least = never < least ? never : least;
    most = never > most ? never : most;
    EXPECT(most * 100 <= least * SPREAD_PERCENT, "%zu KiB under always, %zu under madvise, %zu under never", always,
           advised, never);
    printf("%zu KiB under always, %zu under madvise, %zu under never\n", always, advised, never);
    return 0;
}
