/* Freed twice by a thread that is refused, as one is while a fork is under way and a signal's handler that has interrupted its thread in the
 * library: each is reported, and the process ends.
 *
 * taken   a block that was taken then
 * before  a guarded block from before
 * after   a guarded block that is freed once more when the fork is over */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../entry.h"
#include "../expect.h"
#include "../lifecycle/first_library.h"
#include "../serving.h"

enum { TEXT_MOST = 1 << 16 };

static const char *what;
static void *block;
static _Atomic int stage;

static void await_stage(int wanted) {
    while (atomic_load(&stage) != wanted) {
        usleep(1000);
    }
}

static void *free_twice(void *unused) {
    await_stage(1);
    void *neighbour = unseen(malloc(200)); /* keeps what both lie in */
    bool taken = strcmp(what, "taken") == 0, after = strcmp(what, "after") == 0;
    void *one = taken ? unseen(malloc(200)) : block;
    printf("double free: pointer %p\n", one);
    (void)fflush(stdout);
    free(one);
    if (!after) {
        free(one);
    }
    atomic_store(&stage, 2);
    await_stage(3);
    free(one);
    free(neighbour);
    return unused;
}

/* The library's own handler, which closes the gate, has run. */
static void while_forking(void) {
    atomic_store(&stage, 1);
    await_stage(2);
}

static void misuse(void) {
    pthread_t thread;
    block = unseen(malloc(200));
    EXPECT(pthread_create(&thread, NULL, free_twice, NULL) == 0, "no thread");
    first_library_while_forking = while_forking;
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    atomic_store(&stage, 3);
    pthread_join(thread, NULL);
}

int main(int count, char **arguments) {
    static char text[TEXT_MOST];
    require_serving();
    EXPECT(count == 2, "usage: freed_twice_while_forking taken|before|after");
    what = arguments[1];
    int said[2];
    EXPECT(pipe(said) == 0, "no pipe");
    pid_t program = fork();
    EXPECT(program >= 0, "fork failed");
    if (program == 0) {
        (void)dup2(said[1], STDOUT_FILENO);
        (void)dup2(said[1], STDERR_FILENO);
        close(said[0]);
        close(said[1]);
        misuse();
        _exit(0);
    }
    close(said[1]);
    size_t length = 0;
    for (ssize_t more; (more = read(said[0], text + length, TEXT_MOST - 1 - length)) > 0; length += (size_t)more) {
    }
    int status = 0;
    EXPECT(waitpid(program, &status, 0) == program, "waitpid failed");
    size_t line = strcspn(text, "\n");
    text[line] = '\0';
    const char *report = strstr(text + line + 1, text); /* the line that was announced */
    EXPECT(line > 0 && report != NULL, "'%s' was not said, but: %s", text, text + line + 1);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "it ended with status %#x", (unsigned)status);
    return 0;
}
