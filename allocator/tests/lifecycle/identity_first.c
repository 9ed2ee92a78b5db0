/* A program that changes who it is before it allocates anything, as small helpers do that give up what they may first of all. It does not
 * ask whether it is served before that, since asking allocates. */
#include <grp.h>
#include <sys/types.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

int main(void) {
    EXPECT(setgid(getgid()) == 0 && setegid(getegid()) == 0, "setgid to what it is already fails");
    EXPECT(setuid(getuid()) == 0 && seteuid(geteuid()) == 0, "setuid to what it is already fails");
    require_serving();
    EXPECT(setreuid(getuid(), geteuid()) == 0 && setregid(getgid(), getegid()) == 0, "setreuid fails later");
    free(unseen(malloc(100)));
    return 0;
}
