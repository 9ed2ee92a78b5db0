/* What once kept the keeper away for good: a thread that is cancelled within a call before which it ends, and a process in so many groups that
 * its status, where the library looks for filters, is longer than a page.
 *
 *   keeper_stays cancelled|groups */
#include <grp.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "field.h"
#include "serving.h"

enum { GROUPS = 1000, FIRST_GROUP = 100000 };

static void *change_groups(void *unused) {
    pthread_cancel(pthread_self());
    initgroups("nobody", getgid());
    pthread_testcancel();
    return unused;
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2 || count == 3, "usage: keeper_stays cancelled|groups");
    if (geteuid() != 0) {
        expect_skip("only root changes groups");
    }
    if (strcmp(arguments[1], "cancelled") == 0) {
        field_wake_keeper();
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, change_groups, NULL) == 0 && pthread_join(thread, NULL) == 0, "no thread");
        field_clear();
    } else if (count == 2) {
        static gid_t group[GROUPS];
        for (gid_t i = 0; i < GROUPS; i++) {
            group[i] = FIRST_GROUP + i;
        }
        EXPECT(setgroups(GROUPS, group) == 0, "no groups");
        execl("/proc/self/exe", arguments[0], arguments[1], "again", NULL);
        EXPECT(0, "no execution");
    }
    field_wake_keeper();
    return 0;
}
