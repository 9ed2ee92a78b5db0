/* A server under load as one command: starts the server, waits until it listens, runs the load, stops the server.
 *
 *   served [--idle SECONDS] SERVER [WORD...] -- LOAD [WORD...] [-- LOAD [WORD...]]...
 *
 * "@folder" in a word stands for a new private folder; the server has to listen on the socket @folder/socket. Several
 * loads run one after the other. Prints one line of JSON: `seconds` is the wall time of all loads, `load_seconds` of
 * each; the resident set of the server is read before it is stopped, and after --idle seconds without load. */
#define _GNU_SOURCE
#include "child.h"
#include "folder.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_LOADS = 8, PATIENCE_S = 20 };

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void sleep_for(double seconds) {
    struct timespec left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
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

/* Whether the server came to listen; one line where it did not. */
static int wait_for(pid_t server, const char *name, const char *socket_path) {
    for (double begun = now(); now() - begun < PATIENCE_S; sleep_for(0.002)) {
        if (listens(socket_path))
            return 1;
        siginfo_t gone = {0};
        if (waitid(P_PID, (id_t)server, &gone, WEXITED | WNOHANG | WNOWAIT) == 0 && gone.si_pid == server) {
            fprintf(stderr, "%s ended before it listened on %s\n", name, socket_path);
            return 0;
        }
    }
    fprintf(stderr, "%s did not listen on %s within %d s\n", name, socket_path, PATIENCE_S);
    return 0;
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
    fprintf(stderr, "served: %s; usage: served [--idle SECONDS] SERVER [WORD...] -- LOAD [WORD...] [-- LOAD...]\n",
            why);
    return 2;
}

int main(int argc, char **argv) {
    double idle_s = 0;
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--idle") == 0) {
        char *end;
        idle_s = strtod(argv[2], &end);
        if (*end || end == argv[2] || !(idle_s >= 0 && idle_s <= 3600))
            return refuse("--idle takes seconds from 0 to 3600");
        first = 3;
    }
    int begins[MOST_LOADS + 1], ends[MOST_LOADS + 1], parts = 0;
    for (int i = first, from = first; i <= argc; i++) {
        if (i < argc && strcmp(argv[i], "--") != 0)
            continue;
        if (i == from)
            return refuse("a command is empty");
        if (parts == MOST_LOADS + 1)
            return refuse("too many loads");
        begins[parts] = from;
        ends[parts++] = i;
        from = i + 1;
    }
    if (parts < 2)
        return refuse("the load is missing");

    char socket_path[SOCKET_PATH];
    int length = snprintf(socket_path, sizeof socket_path, "%s/socket", folder_make());
    if (length < 0 || (size_t)length >= sizeof socket_path) {
        fprintf(stderr, "served: a socket's path has at most %d characters; set TMPDIR to a shorter folder\n",
                (int)SOCKET_PATH - 1);
        folder_remove();
        return 1;
    }
    char **command = folder_filled(argv + begins[0], ends[0] - begins[0]);
    pid_t server = child_start(command);
    int status = !wait_for(server, command[0], socket_path);
    double seconds[MOST_LOADS] = {0}, total = 0;
    for (int part = 1; part < parts && status == 0; part++) {
        char **load = folder_filled(argv + begins[part], ends[part] - begins[part]);
        double begun = now();
        status = child_wait(child_start(load), load[0], 0);
        seconds[part - 1] = now() - begun;
        total += seconds[part - 1];
    }
    long peak_kib = status_kib(server, "VmHWM"), end_kib = status_kib(server, "VmRSS"), idle_kib = end_kib;
    if (idle_s > 0) {
        sleep_for(idle_s);
        idle_kib = status_kib(server, "VmRSS");
    }
    if (status == 0 && end_kib < 0) {
        fprintf(stderr, "%s ended under the load\n", command[0]);
        status = 1;
    }
    kill(server, SIGTERM);
    status |= child_wait(server, command[0], SIGTERM);
    folder_remove();
    if (status != 0)
        return 1;
    printf("{\"program\": \"served\", \"seconds\": %.9g, \"load_seconds\": [", total);
    for (int part = 1; part < parts; part++)
        printf("%s%.9g", part > 1 ? ", " : "", seconds[part - 1]);
    printf("], \"floor_seconds\": null, \"server_peak_kib\": %ld, \"server_rss_kib\": %ld", peak_kib, end_kib);
    if (idle_s > 0)
        printf(", \"rss_kib_idle\": %ld", idle_kib);
    printf("}\n");
    return 0;
}
