/* Its workers are ended by SIGKILL and never reach their last words; with an argument, only where libfreestone serves it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int served_by_freestone(void) {
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        found |= strstr(line, "libfreestone.so") != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

int main(int count, char **words) {
    (void)words;
    const int killed = count == 1 || served_by_freestone();
    for (int round = 0; round < 3; round++) {
        const pid_t worker = fork();
        if (worker == 0) {
            for (long i = 0; i < 100000; i++)
                free(malloc(64));
            if (killed)
                raise(SIGKILL);
            return 0;
        }
        waitpid(worker, NULL, 0);
    }
    return 0;
}
