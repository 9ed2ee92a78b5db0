/* Destructors of pthread keys may run before and after the allocator's own, whichever key was created first; the heap
 * serves all of them, in every round the system grants, and nothing they free is lost. */
#include <pthread.h>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

enum { KEYS = 50, SIZE = 20000, THREADS = 120, ROOM_KIB = 24 * 1024 };

static pthread_key_t early[KEYS]; /* created before anything else, so before the allocator can have one */
static pthread_key_t late[KEYS];  /* created after malloc was in use */
static size_t ended;              /* destructors that ran; one thread at a time ends here */

static void end(void *value) {
    EXPECT(pattern_mismatch(value, SIZE, 1) == SIZE_MAX, "a value changed before its destructor");
    free(value);
    void *block = malloc(SIZE / 2);
    EXPECT(block != NULL, "the heap does not serve a key's destructor");
    memset(block, 1, SIZE / 2);
    void *small = calloc(1, 40);
    EXPECT(small != NULL && pattern_not_zero(small, 40) == SIZE_MAX, "calloc fails in a key's destructor");
    free(block);
    free(small);
    ended++;
}

__attribute__((constructor(101))) static void create_early(void) {
    for (size_t k = 0; k < KEYS; k++) {
        EXPECT(pthread_key_create(&early[k], end) == 0, "no key");
    }
}

static void set(pthread_key_t key) {
    void *value = malloc(SIZE);
    EXPECT(value != NULL, "malloc failed");
    pattern_fill(value, 0, SIZE, 1);
    EXPECT(pthread_setspecific(key, value) == 0, "a key takes no value");
}

static void *live(void *unused) {
    (void)unused;
    for (size_t k = 0; k < KEYS; k++) {
        set(early[k]);
        set(late[k]);
    }
    return NULL;
}

static void run_thread(void) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, live, NULL) == 0, "no thread");
    pthread_join(thread, NULL);
}

int main(void) {
    require_serving();
    free(unseen(malloc(10)));
    for (size_t k = 0; k < KEYS; k++) {
        EXPECT(pthread_key_create(&late[k], end) == 0, "no key");
    }
    run_thread();
    size_t warm = resident_kib();
    for (size_t t = 1; t < THREADS; t++) {
        run_thread();
    }
    EXPECT(ended == (size_t)THREADS * 2 * KEYS, "%zu destructors ran", ended);
    size_t now = resident_kib();
    EXPECT(now < warm + ROOM_KIB, "resident memory grew from %zu to %zu KiB", warm, now);
    return 0;
}
