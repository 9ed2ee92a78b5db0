/* The threads of the process as the kernel lists them, and waiting for what the keeper among them does, which no libc
 * knows. Asked without touching the heap. */
#ifndef FREESTONE_TESTS_TASKS_H
#define FREESTONE_TESTS_TASKS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "expect.h"
#include "resident.h"

enum { TASKS_MOST = 64, TASK_TEXT = 4096, IDLE_MS = 30000 };

/* Numbers of the process's threads; returns how many. */
static inline size_t tasks_list(long number[TASKS_MOST]) {
    _Alignas(8) char buffer[8192];
    size_t count = 0;
    int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(folder >= 0, "/proc/self/task cannot be opened");
    long length;
    while ((length = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < length;) {
            /* 8 bytes inode, 8 offset, 2 length of the entry, 1 kind, then the name */
            uint16_t entry;
            memcpy(&entry, buffer + at + 16, sizeof entry);
            const char *name = buffer + at + 19;
            if (name[0] != '.') {
                EXPECT(count < TASKS_MOST, "more than %d threads", TASKS_MOST);
                number[count++] = strtol(name, NULL, 10);
            }
            at += entry;
        }
    }
    close(folder);
    return count;
}

static inline size_t tasks_count(void) {
    long number[TASKS_MOST];
    return tasks_list(number);
}

/* Reads the file `name` of one thread; false when the thread has gone. */
static inline bool task_read(long task, const char *name, char text[TASK_TEXT]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/%s", task, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t length = read(file, text, TASK_TEXT - 1);
    close(file);
    text[length < 0 ? 0 : length] = '\0';
    return length > 0;
}

/* The keeper's number, 0 while there is none. */
static inline long tasks_keeper(void) {
    long number[TASKS_MOST];
    char name[TASK_TEXT];
    size_t count = tasks_list(number);
    for (size_t i = 0; i < count; i++) {
        if (task_read(number[i], "comm", name) && strcmp(name, "freestone\n") == 0) {
            return number[i];
        }
    }
    return 0;
}

/* Milliseconds of a clock that goes on while the process sleeps. */
static inline long tasks_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void tasks_sleep(long milliseconds) {
    struct timespec left = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

/* Waits up to `milliseconds` for the keeper to live, or to have ended. */
static inline bool tasks_await_keeper(bool alive, long milliseconds) {
    for (long end = tasks_clock() + milliseconds; tasks_clock() < end; tasks_sleep(20)) {
        if ((tasks_keeper() != 0) == alive) {
            return true;
        }
    }
    return (tasks_keeper() != 0) == alive;
}

/* Idles until at most `most_kib` are resident, IDLE_MS at most; returns what is. */
static inline size_t tasks_await_resident(size_t most_kib) {
    long end = tasks_clock() + IDLE_MS;
    size_t left_kib = resident_kib();
    while (left_kib > most_kib && tasks_clock() < end) {
        tasks_sleep(50);
        left_kib = resident_kib();
    }
    return left_kib;
}

#endif
