/* What the programs of the hazards share: memory that is filled and freed, and waiting for it to be given back. A program ends
 * with 0, and what it saw on standard output, or by EXPECT with what does not hold. */
#ifndef FREESTONE_HAZARD_H
#define FREESTONE_HAZARD_H

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "entry.h"
#include "expect.h"
#include "idle/tasks.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

/* RETURNED_S: within so many seconds of rest what is free has to go back. The words of the list and of the answers name it; the
 * tests of libfreestone itself wait longer (IDLE_MS), since they only ask whether it comes. */
enum { HAZARD_NOT_APPLICABLE = 75, RETURNED_S = 10 };

/* The number after `name` in a file of /proc, in its unit; 0 when there is none. Read without the heap. */
static inline size_t proc_number(const char *path, const char *name) {
    static __thread char text[1 << 16];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    EXPECT(file >= 0, "%s cannot be opened", path);
    size_t length = 0;
    ssize_t piece;
    while (length < sizeof text - 1 && (piece = read(file, text + length, sizeof text - 1 - length)) > 0) {
        length += (size_t)piece;
    }
    close(file);
    text[length] = '\0';
    const char *at = strstr(text, name);
    return at == NULL ? 0 : (size_t)strtoul(at + strlen(name), NULL, 10);
}

static inline uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Idles until at most `most_kib` are resident, RETURNED_S at most; returns what is. */
static inline size_t resident_after_rest(size_t most_kib) {
    long end = tasks_clock() + RETURNED_S * 1000L;
    size_t left_kib = resident_kib();
    while (left_kib > most_kib && tasks_clock() < end) {
        tasks_sleep(50);
        left_kib = resident_kib();
    }
    return left_kib;
}

/* How much of `held` KiB, which were on top of `before`, has gone: some allocators hold more than ever when all is freed. */
static inline size_t percent_given_back(size_t before, size_t held, size_t left) {
    return held == 0 || left >= before + held ? 0 : (before + held - left) * 100 / held;
}

/* A block of which every page is the process's. */
static inline void *touched(size_t size) {
    char *block = malloc(size);
    EXPECT(block != NULL, "malloc(%zu) failed", size);
    for (size_t at = 0; at < size; at += 4096) {
        block[at] = 1;
    }
    return block;
}

/* Runs `work` in a process of its own; says how it ended, as waitpid does. */
static inline int in_process(void (*work)(void)) {
    pid_t process = fork();
    EXPECT(process >= 0, "fork failed");
    if (process == 0) {
        work();
        _exit(0);
    }
    int status = 0;
    EXPECT(waitpid(process, &status, 0) == process, "waitpid failed");
    return status;
}

/* What no block is counted in: zero, and in no memory until it is used. */
#define TABLE(name, count) static void *name[count]

#endif
