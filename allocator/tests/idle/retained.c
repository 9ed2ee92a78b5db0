/* retained KEPT-MIB: memory that a program kept in blocks of a mebibyte, and gave back all at once, is kept for reuse as far as the options say
 * (retain_mib, for as long as the test takes), though it is one span by then and far longer; the rest goes back. */
#include "entry.h"
#include "expect.h"
#include "serving.h"
#include "swing.h"
#include "tasks.h"

enum { BLOCKS = 400, SIZE = 1 << 20, REST_MS = 1500, SLACK_KIB = 16 << 10 };

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: retained KEPT-MIB");
    size_t kept_kib = (size_t)strtoul(arguments[1], NULL, 10) << 10;
    size_t before_kib = resident_kib();
    swing(BLOCKS, SIZE);
    size_t most_kib = before_kib + kept_kib + SLACK_KIB;
    size_t left_kib = tasks_await_resident(most_kib);
    EXPECT(left_kib <= most_kib, "%zu KiB are resident, %zu are to be kept", left_kib, kept_kib);
    tasks_sleep(REST_MS);
    left_kib = resident_kib();
    EXPECT(left_kib + SLACK_KIB >= before_kib + kept_kib, "%zu KiB are resident, %zu are to be kept", left_kib,
           kept_kib);
    return 0;
}
