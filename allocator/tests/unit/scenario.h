/* The scenarios of a unit program, each in a process of its own: the layers keep their state in static variables, and
 * a scenario starts from theirs untouched. */
#ifndef FREESTONE_UNIT_SCENARIO_H
#define FREESTONE_UNIT_SCENARIO_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

/* Whether a sanitizer is built in: its shadow memory needs more address space than a limit would leave. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SCENARIO_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SCENARIO_SANITIZED true
#endif
#endif
#ifndef SCENARIO_SANITIZED
#define SCENARIO_SANITIZED false
#endif

struct scenario {
    const char *name;
    void (*run)(void);
};

/* Runs `deed` in a child and returns its wait status. What it writes to standard error goes to `output`. */
static inline int scenario_child(void (*deed)(const void *), const void *argument, char *output, size_t size) {
    int ends[2];
    EXPECT(pipe(ends) == 0, "no pipe");
    pid_t child = fork();
    EXPECT(child >= 0, "no child");
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        deed(argument);
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (;;) {
        char scrap[256];
        char *at = length < size - 1 ? output + length : scrap;
        ssize_t got = read(ends[0], at, length < size - 1 ? size - 1 - length : sizeof scrap);
        if (got <= 0) {
            break;
        }
        length += at == scrap ? 0 : (size_t)got;
    }
    output[length] = '\0';
    close(ends[0]);
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child, "the child is gone");
    return status;
}

static inline void scenario_cut(char *output, const char *end) {
    char *at = strstr(output, end);
    if (at != NULL) {
        strcpy(at, "\n");
    }
}

/* Expects `deed` to stop the program by abort(), after exactly the line "freestone: `line`". */
static inline void scenario_stops(void (*deed)(const void *), const void *argument, const char *line) {
    char output[1024];
    char wanted[512];
    int status = scenario_child(deed, argument, output, sizeof output);
    scenario_cut(output, "; FREESTONE_OPTIONS=guard=1 may name"); /* the next step: the programs of misuse look at it */
    scenario_cut(output, " (docs/reference/misuse.md)");
    snprintf(wanted, sizeof wanted, "freestone: %s\n", line);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "ended with wait status %#x instead of abort: %s",
           (unsigned)status, output);
    EXPECT(strcmp(output, wanted) == 0, "said '%s' instead of '%s'", output, wanted);
}

/* From here on the kernel brings in single pages, whatever its setting for huge pages and folios is: for scenarios that look at pages
 * one by one. */
static inline void scenario_single_pages(void) { (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

/* Whether a scenario is asked for: by name, or where none is named and it is not left out as "-name". */
static inline bool scenario_wanted(const char *name, int arguments, char **argument) {
    bool named = false;
    for (int a = 1; a < arguments; a++) {
        if (argument[a][0] == '-' && strcmp(argument[a] + 1, name) == 0) {
            return false;
        }
        if (strcmp(argument[a], name) == 0) {
            return true;
        }
        named = named || argument[a][0] != '-';
    }
    return !named;
}

/* Runs those scenarios that are asked for; the first that fails ends the program. */
static inline int scenario_main(const struct scenario *scenarios, size_t count, int arguments, char **argument) {
    for (size_t i = 0; i < count; i++) {
        if (!scenario_wanted(scenarios[i].name, arguments, argument)) {
            continue;
        }
        pid_t child = fork();
        EXPECT(child >= 0, "no child");
        if (child == 0) {
            scenarios[i].run();
            exit(0); /* and not _exit: a sanitizer reports what it found at exit */
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child, "the child is gone");
        EXPECT(status == 0, "scenario %s ended with wait status %#x", scenarios[i].name, (unsigned)status);
        printf("%s\n", scenarios[i].name);
        fflush(stdout);
    }
    return 0;
}

#define SCENARIO_MAIN(list)                                                               \
    int main(int arguments, char **argument) {                                            \
        return scenario_main((list), sizeof(list) / sizeof *(list), arguments, argument); \
    }

#endif
