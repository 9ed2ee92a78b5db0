/* The keeper lives until a hook is installed. From then on it returns nothing, which no hook would see, and ends; the program's threads return what
 * is due themselves.
 *
 *   keeper_beside_hook HOW       HOW: hooks.h */
#include "entry.h"
#include "expect.h"
#include "hooks/hooks.h"
#include "hooks/registered.h"
#include "idle/tasks.h"
#include "serving.h"

enum { BYTES = 20000, BLOCKS = 2000, ROUNDS = 30 };

static char *block[BLOCKS];

static int decide(enum hook hook, char *at, size_t bytes) {
    (void)hook;
    registered_lost(at, bytes);
    return 0;
}

static void take(unsigned char value) {
    for (size_t i = 0; i < BLOCKS; i++) {
        EXPECT((block[i] = unseen(malloc(BYTES))) != NULL, "no block");
        memset(block[i], value, BYTES);
    }
}

static void give(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
}

static char *page_in(char *start) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return start + (page - (uintptr_t)start % page) % page;
}

int main(int count, char **arguments) {
    EXPECT(count == 2, "keeper_beside_hook HOW");
    require_serving();
    take(1);
    give();
    bool before = strcmp(arguments[1], "own") == 0; /* installed before the program began */
    EXPECT(before || tasks_await_keeper(true, IDLE_MS), "there is no keeper");
    hooks_install(arguments[1], decide);
    take(2);
    for (size_t i = 0; i < BLOCKS / 4; i++) {
        registered_page(page_in(block[i]));
    }
    give();
    EXPECT(tasks_await_keeper(false, IDLE_MS), "the keeper goes on beside a hook");
    tasks_sleep(2000); /* what is free has aged */
    for (int round = 0; round < ROUNDS; round++) {
        take((unsigned char)(3 + round));
        give();
    }
    EXPECT(atomic_load(&hooks_seen[HOOK_MADVISE]) > 0, "threads of the program return nothing in the keeper's place");
    EXPECT(tasks_keeper() == 0, "a keeper was started beside a hook");
    take(99);
    (void)registered_check();
    return 0;
}
