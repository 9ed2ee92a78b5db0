/* What the launcher was asked to do: its command line, read once and never changed. */
#ifndef FREESTONE_LAUNCHER_OPTIONS_H
#define FREESTONE_LAUNCHER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum census_kind { CENSUS_NONE, CENSUS_PERF, CENSUS_PTRACE };

struct options {
    const char *result; /* where the JSON object goes */
    const char *standard[3]; /* files for stdin, stdout, stderr; NULL: /dev/null for stdin, inherited otherwise */
    const char *directory; /* where the program runs; NULL: here */
    uint64_t timeout_ns;   /* 0: no limit */
    uint64_t grace_ns;     /* between SIGTERM and SIGKILL */
    uint64_t linger_ns; /* how long survivors of the first process may take to end by themselves */
    bool whole_tree;    /* the run lasts until nothing of the tree is left, and the time limit with it */
    uint64_t sample_ns; /* between two samples of the tree's resident set; 0: none */
    enum census_kind census;
    long parent;               /* end the tree when this process, which must be the parent, ends; 0: do not */
    bool counters;        /* open performance counters */
    bool probe;           /* say what this machine permits, start nothing */
    char *const *command; /* NULL-terminated, at least one element unless probe */
};

/* Reads the command line into `options` and applies --env and --unset to this process's environment, which is the
 * one the program gets (the launcher itself was already loaded, so an LD_PRELOAD set here never reaches it).
 * Returns false after one line on stderr when the command line is wrong. */
bool options_read(int argc, char **argv, struct options *options);

#endif
