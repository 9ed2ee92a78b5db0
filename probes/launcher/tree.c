#define _GNU_SOURCE
#include "tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add(struct tree *tree, pid_t pid) {
    if (tree->count == tree->capacity) {
        const size_t capacity = tree->capacity == 0 ? 64 : tree->capacity * 2;
        pid_t *pids = realloc(tree->pids, capacity * sizeof *pids);
        if (pids == NULL)
            return;
        tree->pids = pids;
        tree->capacity = capacity;
    }
    tree->pids[tree->count++] = pid;
}

/* The file's first bytes, terminated; -1 when it cannot be read. */
static ssize_t slurp(const char *path, char *buffer, size_t size) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const ssize_t got = read(fd, buffer, size - 1);
    close(fd);
    if (got >= 0)
        buffer[got] = '\0';
    return got;
}

/* Adds the children that one thread of a process has started. False when the kernel does not list them. */
static bool add_children_of_thread(struct tree *tree, pid_t pid, pid_t thread) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)thread);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    char buffer[4096];
    pid_t number = 0;
    bool inside = false;
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;) {
        for (ssize_t i = 0; i < got; i++) {
            if (isdigit((unsigned char)buffer[i])) {
                number = number * 10 + (buffer[i] - '0');
                inside = true;
            } else if (inside) {
                add(tree, number);
                number = 0;
                inside = false;
            }
        }
    }
    if (inside)
        add(tree, number);
    close(fd);
    return true;
}

static bool add_children(struct tree *tree, pid_t pid) {
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    struct stat facts;
    if (stat(path, &facts) == 0 && facts.st_nlink == 3)
        return add_children_of_thread(tree, pid, pid);
    DIR *threads = opendir(path);
    if (threads == NULL)
        return false;
    bool listed = false;
    for (const struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        if (isdigit((unsigned char)entry->d_name[0]))
            listed |= add_children_of_thread(tree, pid, (pid_t)atoi(entry->d_name));
    }
    closedir(threads);
    return listed;
}

/* Parent of a process by /proc/PID/stat; the name in parentheses may itself hold parentheses. */
static pid_t parent_of(pid_t pid) {
    char path[48], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (slurp(path, line, sizeof line) <= 0)
        return 0;
    const char *close_paren = strrchr(line, ')');
    int parent = 0;
    return close_paren != NULL && sscanf(close_paren + 1, " %*c %d", &parent) == 1 ? (pid_t)parent : 0;
}

/* For kernels without /proc/PID/task/TID/children: one pass over all processes per generation of the tree. */
static void list_by_scanning(struct tree *tree) {
    struct pair {
        pid_t pid, parent;
    } *pairs = NULL;
    size_t count = 0, capacity = 0;
    DIR *all = opendir("/proc");
    if (all == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(all)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (count == capacity) {
            capacity = capacity == 0 ? 256 : capacity * 2;
            struct pair *grown = realloc(pairs, capacity * sizeof *pairs);
            if (grown == NULL)
                break;
            pairs = grown;
        }
        const pid_t pid = (pid_t)atoi(entry->d_name);
        pairs[count++] = (struct pair){pid, parent_of(pid)};
    }
    closedir(all);
    const pid_t self = getpid();
    for (size_t next = 0, of = 0; of <= next; of++) {
        const pid_t parent = of == 0 ? self : tree->pids[of - 1];
        for (size_t i = 0; i < count; i++) {
            if (pairs[i].parent == parent)
                add(tree, pairs[i].pid);
        }
        next = tree->count;
    }
    free(pairs);
}

void tree_list(struct tree *tree) {
    tree->count = 0;
    if (!add_children(tree, getpid())) {
        list_by_scanning(tree);
        return;
    }
    for (size_t i = 0; i < tree->count; i++)
        add_children(tree, tree->pids[i]);
}

void tree_free(struct tree *tree) {
    free(tree->pids);
    *tree = (struct tree){0};
}

/* Resident pages by one statm file; 0 when it cannot be read, or where its thread holds no memory any more. */
static uint64_t pages_by(const char *path) {
    char line[128];
    unsigned long long resident = 0;
    return slurp(path, line, sizeof line) > 0 && sscanf(line, "%*s %llu", &resident) == 1 ? resident : 0;
}

/* Resident pages of a process. A first thread that has left by pthread_exit holds none, and its process's file says 0
 * though other threads live: then one of those is asked. */
static uint64_t resident_pages(pid_t pid) {
    char path[80];
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    uint64_t pages = pages_by(path);
    if (pages != 0)
        return pages;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    if (threads == NULL)
        return 0;
    for (const struct dirent *entry; pages == 0 && (entry = readdir(threads)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%d/statm", (int)pid, atoi(entry->d_name));
        pages = pages_by(path);
    }
    closedir(threads);
    return pages;
}

uint64_t tree_resident_kib(const struct tree *tree) {
    const uint64_t page_kib = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
    uint64_t pages = 0;
    for (size_t i = 0; i < tree->count; i++)
        pages += resident_pages(tree->pids[i]);
    return pages * page_kib;
}

void tree_signal(const struct tree *tree, int signal) {
    for (size_t i = 0; i < tree->count; i++)
        kill(tree->pids[i], signal);
}

void tree_program(pid_t pid, char *buffer, size_t size) {
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    const ssize_t length = readlink(path, buffer, size - 1);
    if (length > 0) {
        buffer[length] = '\0';
        return;
    }
    char name[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    if (slurp(path, name, sizeof name) <= 0)
        name[0] = '\0';
    name[strcspn(name, "\n")] = '\0';
    snprintf(buffer, size, "[%s]", name);
}
