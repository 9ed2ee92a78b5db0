/* A hook waits for a lock of the program whose holder allocates, frees, trims or forks meanwhile, as caches of registered memory do. Nobody waits
 * for ever: no lock of the library is held in the hook.
 *
 *   waiting_hook HOW       HOW: hooks.h */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "hooks/hooks.h"
#include "idle/tasks.h"
#include "serving.h"

enum { MIB = 1 << 20, WAIT_MS = 60000, ROUNDS_MOST = 400 };

/* What the other thread does while the hook waits. */
enum { ALLOCATES, ENDS_THREADS, TRIMS, FORKS, ALL };
static const char *const names[ALL] = {"allocates", "ends threads", "trims", "forks"};
static const unsigned each[ALL] = {2, 2, 2, 1}; /* times at each hook; a fork waits a second for who is inside */

static atomic_uint waited[HOOKS][ALL];
static atomic_int wanted = -1; /* by the hook, of the other thread */
static _Thread_local bool waits_here;

enum { SIZES = 8 };

static void allocate(size_t blocks) {
    static const size_t sizes[SIZES] = {16, 100, 1000, 9000, 40000, 200000, 3 * MIB, 150 * MIB};
    for (size_t i = 0; i < blocks; i++) {
        size_t bytes = sizes[i % SIZES];
        char *block = unseen(malloc(bytes));
        EXPECT(block != NULL, "no block of %zu bytes beside a hook", bytes);
        block[bytes - 1] = 1;
        block = unseen(realloc(block, bytes + bytes / 2));
        EXPECT(block != NULL && block[bytes - 1] == 1, "no block of %zu bytes beside a hook", bytes);
        free(block);
        free(unseen(calloc(3, bytes / 3)));
    }
}

static void *allocate_in_thread(void *unused) {
    allocate(5 * SIZES);
    return unused;
}

static void run_threads(void) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, allocate_in_thread, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
}

static void run_child(void) {
    pid_t child = fork();
    EXPECT(child >= 0, "fork failed");
    if (child == 0) {
        allocate(SIZES); /* a large one is copied here */
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with status 0x%x", (unsigned)status);
}

static void *serve(void *unused) {
    while (true) {
        int what = atomic_load(&wanted);
        if (what < 0) {
            tasks_sleep(1);
            continue;
        }
        switch (what) {
        case ALLOCATES:
            allocate(5 * SIZES);
            break;
        case ENDS_THREADS:
            run_threads();
            break;
        case TRIMS:
            (void)freestone_purge();
            break;
        default:
            run_child();
        }
        atomic_store(&wanted, -1);
    }
    return unused;
}

/* The hook waits until the other thread has done one of these things. */
static int decide(enum hook hook, char *at, size_t bytes) {
    (void)at, (void)bytes;
    for (int what = 0; waits_here && what < ALL; what++) {
        if (atomic_load(&waited[hook][what]) >= each[what]) {
            continue;
        }
        atomic_fetch_add(&waited[hook][what], 1);
        atomic_store(&wanted, what);
        for (long end = tasks_clock() + WAIT_MS; atomic_load(&wanted) >= 0; tasks_sleep(1)) {
            EXPECT(tasks_clock() < end, "hook %d waits for a thread that %s, and that for the library", (int)hook,
                   names[what]);
        }
        break;
    }
    return 0;
}

/* A hardened block is never unmapped or moved. */
static bool is_called(int hook) {
    const char *options = getenv("FREESTONE_OPTIONS");
    return hook == HOOK_MADVISE || options == NULL || strstr(options, "harden=1") == NULL;
}

static bool all_have_waited(void) {
    for (int hook = 0; hook < HOOKS; hook++) {
        for (int what = 0; what < ALL; what++) {
            if (is_called(hook) && atomic_load(&waited[hook][what]) < each[what]) {
                return false;
            }
        }
    }
    return true;
}

static void fill_and_free(size_t bytes, size_t count) {
    static void *block[4096];
    for (size_t i = 0; i < count; i++) {
        EXPECT((block[i] = unseen(malloc(bytes))) != NULL, "no block of %zu bytes", bytes);
        memset(block[i], 1, bytes);
    }
    for (size_t i = 0; i < count; i++) {
        free(block[i]);
    }
}

int main(int count, char **arguments) {
    EXPECT(count == 2, "waiting_hook HOW");
    require_serving();
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, serve, NULL) == 0, "no thread");
    hooks_install(arguments[1], decide);
    waits_here = true;
    for (int round = 0; round < ROUNDS_MOST && !all_have_waited(); round++) {
        fill_and_free(20000, 300);
        fill_and_free(500, 4000);
        fill_and_free(300000, 30);
        (void)freestone_purge();
        char *block = unseen(malloc((size_t)130 * MIB));
        EXPECT(block != NULL, "no block");
        block[0] = 1;
        block = unseen(realloc(block, (size_t)180 * MIB));
        EXPECT(block != NULL && block[0] == 1, "no block");
        free(block);
    }
    waits_here = false;
    for (int hook = 0; hook < HOOKS; hook++) {
        EXPECT(!is_called(hook) || atomic_load(&waited[hook][FORKS]) > 0, "hook %d was never called", hook);
    }
    return 0;
}
