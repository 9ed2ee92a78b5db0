/* Does its work in a process that outlives the first one, as daemons do; argv[1] milliseconds long. */
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
    const long milliseconds = count > 1 ? atol(words[1]) : 1000;
    if (fork() > 0)
        return 0;
    setsid();
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    for (long i = 0; i < 100000; i++)
        free(malloc(100));
    usleep((useconds_t)(1000 * milliseconds));
    return 0;
}
