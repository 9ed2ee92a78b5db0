/* A program of one thread asks for a copy of its table of descriptors while a keeper lives: none of the old one's files and locks stay with that.
 * What it closes is closed, and its lock on a file stays its own.
 *
 *   copied_table close_range|call */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../idle/field.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
enum { COPY_TABLE = 2, FAR = 100 };

#pragma weak close_range
extern int close_range(unsigned first, unsigned last, int flags); /* since glibc 2.34 */

static long copy_table(bool by_libc, unsigned first) {
    return by_libc ? close_range(first, ~0U, COPY_TABLE)
                   : syscall(SYS_close_range, (long)first, ~0UL >> 32, COPY_TABLE);
}

static bool lock_file(int file) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(file, F_SETLK, &lock) == 0;
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: copied_table close_range|call");
    bool by_libc = strcmp(arguments[1], "close_range") == 0;
    if (by_libc && close_range == NULL) {
        expect_skip("this libc has no close_range");
    }
    char path[] = "/tmp/copied-table-XXXXXX";
    int file = mkstemp(path), ends[2];
    EXPECT(file >= 0 && unlink(path) == 0 && pipe(ends) == 0, "errno %d", errno);
    EXPECT(lock_file(file), "a lock is refused: errno %d", errno);
    field_wake_keeper();
    if (copy_table(by_libc, FAR) != 0) {
        EXPECT(errno == ENOSYS, "errno %d", errno);
        expect_skip("this kernel has no close_range");
    }
    EXPECT(lock_file(file), "its own lock is another's: errno %d", errno);
    field_wake_keeper();
    pid_t reader = fork();
    EXPECT(reader >= 0, "no process");
    if (reader == 0) {
        char byte;
        close(ends[1]);
        alarm(2); /* the keeper lives for longer */
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);
    field_wake_keeper();
    EXPECT(copy_table(by_libc, (unsigned)ends[1]) == 0, "errno %d", errno);
    int status = 0;
    EXPECT(waitpid(reader, &status, 0) == reader && status == 0, "a closed end is open: status 0x%x", (unsigned)status);
    return 0;
}
