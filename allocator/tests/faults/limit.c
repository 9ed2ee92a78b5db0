/* limit KIND BYTES PROGRAM ARGUMENTS...: runs a program under a resource limit; KIND is address-space or data. */
#include <sys/resource.h>

#include "expect.h"

int main(int count, char **arguments) {
    EXPECT(count >= 4, "usage: limit KIND BYTES PROGRAM ARGUMENTS...");
    rlim_t bytes = strtoull(arguments[2], NULL, 10);
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    if (strcmp(arguments[1], "address-space") == 0) {
        EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "the limit was refused");
    } else if (strcmp(arguments[1], "data") == 0) {
        EXPECT(setrlimit(RLIMIT_DATA, &limit) == 0, "the limit was refused");
    } else {
        EXPECT(0, "KIND is address-space or data, not %s", arguments[1]);
    }
    execv(arguments[3], arguments + 3);
    EXPECT(0, "%s cannot be run", arguments[3]);
}
