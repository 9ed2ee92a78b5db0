/* A server under load as one command: starts the server, waits until it is ready, runs the load, stops the server.
 *
 *   served [--never-root] SERVER [WORD...] -- LOAD [WORD...] [-- LOAD [WORD...]]...
 *
 * "@folder" in a word stands for a new private folder. The server has to listen on the socket @folder/socket. Several
 * loads run one after the other. A word in front of a command makes something else of it:
 *
 *   @first COMMAND      runs before the server is started
 *   @ready COMMAND      instead of the socket: the server is ready when this succeeds
 *   @untimed LOAD       a load that does not count
 *   @idle SECONDS       no command: how long the server is left alone after the last load
 *
 * Prints one line of JSON: `seconds` is the wall time of all loads that count, `load_seconds` of each; the resident set of
 * the server's first process is read before it is stopped, and after the seconds of @idle once more. --never-root: for
 * programs that refuse to run as root (child.h). */
#define _GNU_SOURCE
#include "child.h"
#include "folder.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PARTS = 16, PATIENCE_S = 20 };

enum role { FIRST, SERVER, READY, LOAD, UNTIMED };

struct part {
    enum role role;
    char **command;
    double seconds;
};

static struct part parts[MOST_PARTS];
static int count;
static bool never_root;
static double idle_s;
static const char *folder;

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* Longest path of a socket, its end counted. */
enum { SOCKET_PATH = sizeof((struct sockaddr_un *)0)->sun_path };

static int listens(const char *socket_path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, socket_path, strlen(socket_path));
    int end = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (end < 0)
        return 0;
    int connected = connect(end, (struct sockaddr *)&address, sizeof address) == 0;
    close(end);
    return connected;
}

static const struct part *part_of(enum role role) {
    for (int i = 0; i < count; i++)
        if (parts[i].role == role)
            return &parts[i];
    return NULL;
}

static pid_t started(const struct part *part) { return child_start(part->command, never_root, folder); }

/* Whether the server came to be ready; one line where it did not. */
static bool wait_for(pid_t server, const char *name, const char *socket_path) {
    const struct part *asked = part_of(READY);
    for (double begun = now(); now() - begun < PATIENCE_S; child_pause(0.002)) {
        if (children_told_to_end())
            return false;
        int answer = asked ? child_asked(started(asked)) : !listens(socket_path);
        if (answer == 0)
            return true;
        if (answer == CANNOT_EXECUTE)
            return false;
        siginfo_t gone = {0};
        if (waitid(P_PID, (id_t)server, &gone, WEXITED | WNOHANG | WNOWAIT) == 0 && gone.si_pid == server) {
            fprintf(stderr, "%s ended before it was ready\n", name);
            return false;
        }
    }
    fprintf(stderr, "%s was not ready within %d s: ", name, PATIENCE_S);
    fprintf(stderr, asked ? "%s fails\n" : "nobody listens on %s\n", asked ? asked->command[0] : socket_path);
    return false;
}

/* A line of /proc/PID/status in KiB, -1 where there is none. */
static long status_kib(pid_t process, const char *key) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    long kib = -1;
    while (kib < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
            kib = strtol(line + strlen(key) + 1, NULL, 10);
    fclose(file);
    return kib;
}

static int refuse(const char *why) {
    fprintf(stderr,
            "served: %s; usage: served [--never-root] SERVER [WORD...] -- LOAD [WORD...] [-- LOAD...] "
            "[-- @idle SECONDS], with @first, @ready or @untimed in front of other commands\n",
            why);
    return 2;
}

/* Take the word behind @idle; what is wrong with it, or NULL. */
static const char *take_idle(char **words, int length) {
    char *end;
    if (length != 1)
        return "@idle takes seconds from 0 to 3600";
    idle_s = strtod(words[0], &end);
    return *end || end == words[0] || !(idle_s >= 0 && idle_s <= 3600) ? "@idle takes seconds from 0 to 3600" : NULL;
}

/* Take the words of one part; what is wrong with them, or NULL. */
static const char *take_part(char **words, int length) {
    static const struct {
        const char *word;
        enum role role;
    } roles[] = {{"@first", FIRST}, {"@ready", READY}, {"@untimed", UNTIMED}};
    if (length > 0 && strcmp(words[0], "@idle") == 0)
        return take_idle(words + 1, length - 1);
    if (count == MOST_PARTS)
        return "too many commands";
    enum role role = part_of(SERVER) ? LOAD : SERVER;
    bool named = false;
    for (size_t i = 0; length > 0 && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(words[0], roles[i].word) == 0) {
            role = roles[i].role;
            named = true;
        }
    if (length <= named)
        return "a command is empty";
    parts[count++] = (struct part){.role = role, .command = folder_filled(words + named, length - named)};
    return NULL;
}

static const char *take_parts(char **words, int length) {
    for (int i = 0, from = 0; i <= length; i++) {
        if (i < length && strcmp(words[i], "--") != 0)
            continue;
        const char *wrong = take_part(words + from, i - from);
        if (wrong)
            return wrong;
        from = i + 1;
    }
    return part_of(LOAD) ? NULL : "the load is missing";
}

/* What came of all the commands of a role, one after the other: 0 or 1. */
static int run_all(enum role role, enum role or_role) {
    for (int i = 0; i < count; i++) {
        if (parts[i].role != role && parts[i].role != or_role)
            continue;
        double begun = now();
        if (child_wait(started(&parts[i]), parts[i].command[0], 0) != 0)
            return 1;
        parts[i].seconds = now() - begun;
    }
    return 0;
}

struct figures {
    long peak_kib, rss_kib, idle_kib;
};

/* The server's life: 0 or 1, with a line on standard error. */
static int serve(const char *socket_path, struct figures *figures) {
    const char *name = part_of(SERVER)->command[0];
    pid_t server = started(part_of(SERVER));
    int status = !wait_for(server, name, socket_path) || run_all(UNTIMED, LOAD);
    figures->peak_kib = status_kib(server, "VmHWM");
    figures->rss_kib = figures->idle_kib = status_kib(server, "VmRSS");
    if (idle_s > 0 && status == 0) {
        child_pause(idle_s);
        figures->idle_kib = status_kib(server, "VmRSS");
    }
    if (status == 0 && figures->rss_kib < 0) {
        fprintf(stderr, "%s ended under the load\n", name);
        status = 1;
    }
    kill(server, SIGTERM);
    return status | child_wait(server, name, SIGTERM);
}

static void print_line(const struct figures *figures) {
    double total = 0;
    for (int i = 0; i < count; i++)
        total += parts[i].role == LOAD ? parts[i].seconds : 0;
    printf("{\"program\": \"served\", \"seconds\": %.9g, \"load_seconds\": [", total);
    const char *comma = "";
    for (int i = 0; i < count; i++)
        if (parts[i].role == LOAD) {
            printf("%s%.9g", comma, parts[i].seconds);
            comma = ", ";
        }
    printf("], \"floor_seconds\": null, \"server_peak_kib\": %ld, \"server_rss_kib\": %ld", figures->peak_kib,
           figures->rss_kib);
    if (idle_s > 0)
        printf(", \"rss_kib_idle\": %ld", figures->idle_kib);
    printf("}\n");
}

int main(int argc, char **argv) {
    int first = 1;
    for (; first < argc && strcmp(argv[first], "--never-root") == 0; first++)
        never_root = true;
    children_keep();
    folder = folder_make();
    char socket_path[SOCKET_PATH];
    int length = snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
    const char *wrong = take_parts(argv + first, argc - first);
    struct figures figures;
    int status = 1;
    if (wrong)
        status = refuse(wrong);
    else if (length < 0 || (size_t)length >= sizeof socket_path)
        fprintf(stderr, "served: a socket's path has at most %d characters; set TMPDIR to a shorter folder\n",
                (int)SOCKET_PATH - 1);
    else
        status = run_all(FIRST, FIRST) || serve(socket_path, &figures);
    children_gone();
    folder_remove();
    children_obey();
    if (status == 0)
        print_line(&figures);
    return status;
}
