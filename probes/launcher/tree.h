/* The processes below the launcher, as /proc tells them: who they are, what is resident, how to end them.
 *
 * The launcher is the subreaper of the tree, so whatever a program daemonises stays below it. */
#ifndef FREESTONE_LAUNCHER_TREE_H
#define FREESTONE_LAUNCHER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tree {
    pid_t *pids; /* every live descendant of this process; parents come before their children */
    size_t count;
    size_t capacity;
};

/* Lists the tree anew. Processes that come and go meanwhile may be missed or be gone already. */
void tree_list(struct tree *tree);

void tree_free(struct tree *tree);

/* Sum of the resident sets of the listed processes, in KiB. Pages shared by several count in each of them. */
uint64_t tree_resident_kib(const struct tree *tree);

/* Sends `signal` to every process listed; those already gone are passed over. */
void tree_signal(const struct tree *tree, int signal);

/* The executable of a process, or its name in brackets where the link cannot be read. Always terminated. */
void tree_program(pid_t pid, char *buffer, size_t size);

#endif
