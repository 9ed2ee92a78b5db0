/* Memory goes back also if the program forks, or changes its user, more often than the library looks round, and makes no other call: pages between
 * small blocks, again and again, and large blocks.
 *
 *   beside_forks forks | users */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "field.h"

enum { STEP_MS = 200, STEPS_MOST = IDLE_MS / (int)STEP_MS, LEFT_PERCENT = 30, LARGE_BLOCKS = 100, LARGE = 1 << 20 };

static void fork_once(void) {
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    int status;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "no fork");
}

static void change_user(void) { EXPECT(seteuid(geteuid()) == 0, "the user is not changed"); }

static bool is_returned(void) {
    return resident_kib() < field.before_kib + (field.full_kib - field.before_kib) / 100 * LEFT_PERCENT;
}

static void await_return(void (*step)(void)) {
    unsigned steps = 0;
    while (!is_returned() && steps++ < STEPS_MOST) {
        tasks_sleep(STEP_MS);
        step();
    }
    EXPECT(is_returned(), "%zu of %zu KiB are still there", resident_kib(), field.full_kib);
    field_check("after the return");
}

int main(int count, char **argument) {
    void (*step)(void) = count > 1 && strcmp(argument[1], "users") == 0 ? change_user : fork_once;
    for (int round = 0; round < 3; round++) {
        field_fill(FIELD_MOST, 160);
        field_thin_out(200);
        await_return(step);
        field_clear();
    }
    field_fill(LARGE_BLOCKS, LARGE);
    field_thin_out(20);
    await_return(step);
    return 0;
}
