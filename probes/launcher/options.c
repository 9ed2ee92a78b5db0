#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: freestone-launch --result FILE [options] -- COMMAND [ARGUMENT...]\n"
    "       freestone-launch --probe\n"
    "  --result FILE          write one JSON object there when the program has ended\n"
    "  --stdin FILE           (default /dev/null)\n"
    "  --stdout FILE, --stderr FILE\n"
    "  --directory DIR        run the program there\n"
    "  --env NAME=VALUE       set in the program's environment; may be repeated\n"
    "  --unset NAME           remove from the program's environment; may be repeated\n"
    "  --timeout SECONDS      then SIGTERM, and SIGKILL after --grace\n"
    "  --grace SECONDS        (default 1)\n"
    "  --linger SECONDS       what the first process leaves behind may take this long to end "
    "(default 0.2)\n"
    "  --whole-tree           wait for the last process of the tree, however long it outlives the first\n"
    "  --sample MILLISECONDS  between samples of the tree's resident set; 0 for none (default 25)\n"
    "  --census none|perf|ptrace\n"
    "  --parent PID           end the tree when this process, the launcher's parent, ends\n"
    "  --counters             count hardware events and page-fault traps where the machine permits "
    "it\n"
    "  --probe                print which censuses and counters this machine permits\n";

enum {
    OPT_RESULT = 1,
    OPT_STDIN,
    OPT_STDOUT,
    OPT_STDERR,
    OPT_DIRECTORY,
    OPT_ENV,
    OPT_UNSET,
    OPT_TIMEOUT,
    OPT_GRACE,
    OPT_LINGER,
    OPT_WHOLE_TREE,
    OPT_SAMPLE,
    OPT_CENSUS,
    OPT_PARENT,
    OPT_COUNTERS,
    OPT_PROBE,
    OPT_HELP
};

static const struct option table[] = {
    {"result", required_argument, NULL, OPT_RESULT},
    {"stdin", required_argument, NULL, OPT_STDIN},
    {"stdout", required_argument, NULL, OPT_STDOUT},
    {"stderr", required_argument, NULL, OPT_STDERR},
    {"directory", required_argument, NULL, OPT_DIRECTORY},
    {"env", required_argument, NULL, OPT_ENV},
    {"unset", required_argument, NULL, OPT_UNSET},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"grace", required_argument, NULL, OPT_GRACE},
    {"linger", required_argument, NULL, OPT_LINGER},
    {"whole-tree", no_argument, NULL, OPT_WHOLE_TREE},
    {"sample", required_argument, NULL, OPT_SAMPLE},
    {"census", required_argument, NULL, OPT_CENSUS},
    {"parent", required_argument, NULL, OPT_PARENT},
    {"counters", no_argument, NULL, OPT_COUNTERS},
    {"probe", no_argument, NULL, OPT_PROBE},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static bool wrong(const char *option, const char *value, const char *expected) {
    fprintf(stderr, "freestone-launch: --%s '%s' is not %s\n", option, value, expected);
    return false;
}

/* A duration of up to ten years, in units of `unit_ns`. */
static bool duration(const char *option, const char *text, double unit_ns, uint64_t *out) {
    char *end;
    errno = 0;
    const double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !isfinite(value) || value < 0 || value * unit_ns > 3.2e17)
        return wrong(option, text, "a duration");
    *out = (uint64_t)(value * unit_ns);
    return true;
}

static bool read_process(const char *text, long *out) {
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    return (errno == 0 && end != text && *end == '\0' && *out > 0) || wrong("parent", text, "a process");
}

static bool set_variable(const char *assignment) {
    const char *equals = strchr(assignment, '=');
    if (equals == NULL || equals == assignment)
        return wrong("env", assignment, "NAME=VALUE");
    char *name = strndup(assignment, (size_t)(equals - assignment));
    const bool done = name != NULL && setenv(name, equals + 1, 1) == 0;
    free(name);
    return done || wrong("env", assignment, "something the environment has room for");
}

static bool unset_variable(const char *name) {
    return unsetenv(name) == 0 || wrong("unset", name, "the name of a variable");
}

static bool read_census(const char *word, enum census_kind *kind) {
    if (strcmp(word, "none") == 0)
        *kind = CENSUS_NONE;
    else if (strcmp(word, "perf") == 0)
        *kind = CENSUS_PERF;
    else if (strcmp(word, "ptrace") == 0)
        *kind = CENSUS_PTRACE;
    else
        return wrong("census", word, "none, perf or ptrace");
    return true;
}

bool options_read(int argc, char **argv, struct options *options) {
    *options = (struct options){
        .grace_ns = 1000000000u, .linger_ns = 200000000u, .sample_ns = 25000000u, .census = CENSUS_NONE};
    for (;;) {
        const int option = getopt_long(argc, argv, "+", table, NULL);
        bool fine = true;
        switch (option) {
        case -1:
            options->command = argv + optind;
            if (options->probe)
                return true;
            if (optind < argc && options->result != NULL)
                return true;
            fprintf(stderr, "freestone-launch: %s\n%s",
                    options->result == NULL ? "--result is missing" : "the command is missing", usage);
            return false;
        case OPT_RESULT:
            options->result = optarg;
            break;
        case OPT_STDIN:
            options->standard[0] = optarg;
            break;
        case OPT_STDOUT:
            options->standard[1] = optarg;
            break;
        case OPT_STDERR:
            options->standard[2] = optarg;
            break;
        case OPT_DIRECTORY:
            options->directory = optarg;
            break;
        case OPT_ENV:
            fine = set_variable(optarg);
            break;
        case OPT_UNSET:
            fine = unset_variable(optarg);
            break;
        case OPT_TIMEOUT:
            fine = duration("timeout", optarg, 1e9, &options->timeout_ns);
            break;
        case OPT_GRACE:
            fine = duration("grace", optarg, 1e9, &options->grace_ns);
            break;
        case OPT_LINGER:
            fine = duration("linger", optarg, 1e9, &options->linger_ns);
            break;
        case OPT_WHOLE_TREE:
            options->whole_tree = true;
            break;
        case OPT_SAMPLE:
            fine = duration("sample", optarg, 1e6, &options->sample_ns);
            break;
        case OPT_CENSUS:
            fine = read_census(optarg, &options->census);
            break;
        case OPT_PARENT:
            fine = read_process(optarg, &options->parent);
            break;
        case OPT_COUNTERS:
            options->counters = true;
            break;
        case OPT_PROBE:
            options->probe = true;
            break;
        case OPT_HELP:
            fputs(usage, stdout);
            exit(0);
        default:
            return false;
        }
        if (!fine)
            return false;
    }
}
