/* Threads fork while others read lines, flush all streams, open and close files: libc's fork waits for its locks of
 * streams, whose holders are in malloc. Neither the parent nor a child may wait for the other's allocator for ever.
 *
 *   fork_beside_stdio SECONDS|soak */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "../idle/tasks.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "soak.h"

enum { FORKERS = 4, READERS = 4, FLUSHERS = 3, OPENERS = 3, LINE = 40000, PATIENCE_SECONDS = 60, FORKS_LEAST = 20 };

static atomic_bool done;
static atomic_size_t forks;
static char path[] = "/tmp/freestone-streams-XXXXXX";

/* A thread's first block is asked for while it holds the stream. */
static void *read_line(void *stream) {
    char *line = NULL;
    size_t room = 0;
    EXPECT(getline(&line, &room, stream) == LINE + 1, "the line has another length");
    free(line);
    return NULL;
}

static void *read_on(void *unused) {
    FILE *stream = fopen(path, "re");
    EXPECT(stream != NULL, "%s cannot be opened", path);
    while (!atomic_load(&done)) {
        pthread_t reader;
        EXPECT(pthread_create(&reader, NULL, read_line, stream) == 0, "no thread");
        pthread_join(reader, NULL);
        rewind(stream);
        (void)read_line(stream);
        rewind(stream);
    }
    fclose(stream);
    return unused;
}

static void *flush_on(void *unused) {
    while (!atomic_load(&done)) {
        fflush(NULL);
    }
    return unused;
}

static void *open_on(void *unused) {
    char buffer[64];
    while (!atomic_load(&done)) {
        FILE *stream = fopen(path, "re");
        EXPECT(stream != NULL && fgets(buffer, sizeof buffer, stream) != NULL, "%s cannot be read", path);
        fclose(stream);
    }
    return unused;
}

static void child(size_t number) {
    alarm(PATIENCE_SECONDS);
    for (size_t i = 0; i < 40; i++) {
        free(unseen(malloc((size_t)1 << (i % 18))));
    }
#ifdef __GLIBC__ /* musl leaves the streams of threads that no longer exist locked, whatever allocates */
    if (number % 3 == 0) { /* the streams are the child's too */
        FILE *stream = fopen(path, "re");
        EXPECT(stream != NULL && read_line(stream) == NULL, "no stream in the child");
        fclose(stream);
        fflush(NULL);
    }
#else
    (void)number;
#endif
    _exit(0);
}

static void *fork_on(void *unused) {
    while (!atomic_load(&done)) {
        pid_t process = fork();
        EXPECT(process >= 0, "fork failed");
        if (process == 0) {
            child(atomic_load(&forks));
        }
        int status = 0;
        EXPECT(waitpid(process, &status, 0) == process, "waitpid failed");
        EXPECT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "a child hangs");
        EXPECT(status == 0, "a child ended with status 0x%x", (unsigned)status);
        atomic_fetch_add(&forks, 1);
    }
    return unused;
}

static pthread_t thread[FORKERS + READERS + FLUSHERS + OPENERS];
static size_t threads;

static void start(size_t count, void *(*work)(void *)) {
    for (size_t t = 0; t < count; t++) {
        EXPECT(pthread_create(&thread[threads++], NULL, work, NULL) == 0, "no thread");
    }
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: fork_beside_stdio SECONDS|soak");
    unsigned seconds = soak_seconds(arguments[1]);
    int file = mkstemp(path);
    EXPECT(file >= 0, "no file in /tmp");
    char text[LINE + 1];
    memset(text, 'x', LINE);
    text[LINE] = '\n';
    EXPECT(write(file, text, sizeof text) == sizeof text, "%s cannot be written", path);
    close(file);
    alarm(seconds + PATIENCE_SECONDS);
    start(READERS, read_on);
    start(FLUSHERS, flush_on);
    start(OPENERS, open_on);
    start(FORKERS, fork_on);
    for (unsigned slept = 0; slept < seconds || atomic_load(&forks) < FORKS_LEAST; slept++) {
        tasks_sleep(1000);
    }
    atomic_store(&done, true);
    for (size_t t = 0; t < threads; t++) {
        pthread_join(thread[t], NULL);
    }
    unlink(path);
    printf("%zu forks\n", atomic_load(&forks));
    return 0;
}
