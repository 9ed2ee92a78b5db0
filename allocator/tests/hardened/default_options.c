/* A program that brings its own options is hardened whatever the environment says, also as a privileged one that ignores it (set-user-ID); the environment may
 * make it stronger, and has its way in all else.
 *
 *   default_options [SLOTS]     that many places of freed blocks are held back at least: what one of the processes tests of itself */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

#ifndef WITHOUT_OPTIONS
const char freestone_default_options[] = "harden=1,quarantine_kib=2";
#endif

enum { SIZE = 33, SLOT = 48, NOBODY = 65534, EXIT_NOT_PRIVILEGED = 77 };

/* In one of the processes: which parts of harden=1 are in force. */
static void check_self(unsigned long held) {
    require_serving();
    unsigned char *block = unseen(malloc(SIZE));
    EXPECT(block != NULL, "no memory");
    EXPECT(malloc_usable_size(block) == SIZE, "it is not hardened");
    EXPECT(block[SIZE] != 0, "there is no canary");
    free(block);
    for (unsigned long i = 0; i < held; i++) {
        void *other = unseen(malloc(SIZE));
        EXPECT(other != (void *)block, "the block is given again after %lu frees", i);
        free(other);
    }
}

/* Runs it with that environment, as nobody if asked; `said`: on standard error, or NULL where nothing may be said. */
static int run(const char *program, const char *options, const char *held, bool as_nobody, const char *said) {
    char line[400] = {0}, setting[200];
    int ends[2], status = 0;
    snprintf(setting, sizeof setting, "FREESTONE_OPTIONS=%s", options);
    EXPECT(pipe(ends) == 0, "no pipe");
    pid_t child = fork();
    EXPECT(child >= 0, "no process");
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        if (as_nobody && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) {
            _exit(EXIT_NOT_PRIVILEGED);
        }
        execve(program, (char *[]){(char *)(uintptr_t)program, (char *)(uintptr_t)held, NULL},
               (char *[]){setting, NULL});
        _exit(EXIT_NOT_PRIVILEGED);
    }
    close(ends[1]);
    ssize_t length = 0, more;
    while ((more = read(ends[0], line + length, sizeof line - 1 - (size_t)length)) > 0) {
        length += more;
    }
    close(ends[0]);
    EXPECT(waitpid(child, &status, 0) == child, "it is gone");
    EXPECT(WIFEXITED(status), "%s: it ended with status 0x%x and said: %s", options, (unsigned)status, line);
    if (WEXITSTATUS(status) == 0) {
        EXPECT(said == NULL ? length == 0 : strstr(line, said) != NULL, "%s: it said: %s", options, line);
    } else {
        EXPECT(WEXITSTATUS(status) == EXIT_NOT_PRIVILEGED, "%s: it said: %s", options, line);
    }
    return WEXITSTATUS(status);
}

/* A copy that belongs to root and is set-user-ID, run by somebody else. */
static void check_privileged(const char *program) {
    char folder[] = "/tmp/default-options-XXXXXX", copy[sizeof folder + 10], command[4200];
    EXPECT(mkdtemp(folder) != NULL, "no folder (errno %d)", errno);
    snprintf(copy, sizeof copy, "%s/copy", folder);
    snprintf(command, sizeof command, "cp '%s' '%s' && chmod 4755 '%s' && chmod 755 '%s'", program, copy, copy, folder);
    EXPECT(system(command) == 0, "no copy");
    int status = run(copy, "harden=0,canaries=0,heaps=many", "privileged", true, NULL);
    unlink(copy);
    rmdir(folder);
    if (status == EXIT_NOT_PRIVILEGED) {
        printf("set-user-ID counts for nothing here: not tested\n");
    }
}

int main(int count, char **arguments) {
    enum { HELD = 2048 / SLOT, MORE = 4096 / SLOT };
    if (count > 1 && strcmp(arguments[1], "privileged") == 0) {
        if (geteuid() == getuid()) {
            return EXIT_NOT_PRIVILEGED;
        }
        check_self(HELD);
        return 0;
    }
    if (count > 1) {
        check_self(strtoul(arguments[1], NULL, 10));
        return 0;
    }
    char held[20], more[20];
    snprintf(held, sizeof held, "%d", HELD);
    snprintf(more, sizeof more, "%d", MORE);
    EXPECT(run(arguments[0], "", held, false, NULL) == 0, "with an empty environment");
    EXPECT(run(arguments[0], "heaps=1,retain_mib=1", held, false, NULL) == 0, "with other options");
    EXPECT(run(arguments[0], "quarantine_kib=4", more, false, NULL) == 0, "with a stronger option");
    EXPECT(run(arguments[0], "harden=0", held, false, "'harden=0' is weaker than what the program has chosen") == 0,
           "0");
    EXPECT(run(arguments[0], "canaries=0", held, false, "'canaries=0' is weaker") == 0, "without canaries");
    EXPECT(run(arguments[0], "quarantine_kib=1", held, false, "'quarantine_kib=1' is weaker") == 0, "with less");
    if (getuid() == 0) {
        check_privileged(arguments[0]);
    }
    return 0;
}
