/* Preloading reaches the programs that are started, can be taken out of the environment, and does no harm to a program that is
 * started with its owner's rights, where the loader ignores it. */
#include "hazard.h"

#include <sys/stat.h>

static int run(const char *program, const char *word, bool preloaded, bool as_nobody) {
    pid_t process = fork();
    EXPECT(process >= 0, "fork failed");
    if (process == 0) {
        if (!preloaded) {
            unsetenv("LD_PRELOAD");
        }
        if (as_nobody && (setgid(65534) != 0 || setuid(65534) != 0)) {
            _exit(126);
        }
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nowhere, STDOUT_FILENO);
        execl(program, program, word, NULL);
        _exit(127);
    }
    int status = 0;
    EXPECT(waitpid(process, &status, 0) == process, "waitpid failed");
    return status;
}

int main(int count, char **arguments) {
    if (count == 2) {
        if (strcmp(arguments[1], "served") == 0) {
            require_serving();
        }
        return getenv("LD_PRELOAD") == NULL ? 3 : 0;
    }
    require_serving();
    EXPECT(run("/proc/self/exe", "served", true, false) == 0, "a program that is started is not served");
    EXPECT(WEXITSTATUS(run("/proc/self/exe", "bare", false, false)) == 3, "the preload cannot be taken away");
    static const char *const programs[] = {"/usr/bin/su", "/bin/su", "/usr/bin/mount", "/bin/mount"};
    struct stat status;
    for (size_t i = 0; i < 4 && geteuid() == 0; i++) {
        if (stat(programs[i], &status) == 0 && (status.st_mode & S_ISUID) != 0) {
            EXPECT(run(programs[i], "--version", true, true) == 0, "%s does not run", programs[i]);
            printf("reaches what is started, and %s runs\n", programs[i]);
            return 0;
        }
    }
    printf("reaches what is started; no program with its owner's rights was tried\n");
    return 0;
}
