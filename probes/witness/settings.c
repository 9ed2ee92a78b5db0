#include "settings.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_NAME = 63, LONGEST_VALUE = 1023 };

extern char **environ;

static bool begins(const char *variable, const char *with) { return strncmp(variable, with, strlen(with)) == 0; }

/* Whether a variable, NAME=VALUE, is one that freestone.trials.environment.steers; but for LD_PRELOAD, which holds this
 * library and is proved by what serves. And PHP's, which tells its heap to use malloc. */
static bool steers(const char *variable) {
    static const char *const names[] = {
        "MALLOC_",     "GLIBC_TUNABLES=",  "LD_",           "FREESTONE_OPTIONS=", "MIMALLOC_",
        "JEMALLOC_",   "TCMALLOC_",        "HEAPPROFILE=",  "HEAPCHECK=",         "HEAP_PROFILE_",
        "HEAP_CHECK_", "PPROF_",           "TBB_",          "SNMALLOC_",          "RPMALLOC_",
        "SCUDO_",      "HARDENED_MALLOC_", "PYTHONMALLOC=", "PYTHONMALLOCSTATS=", "USE_ZEND_ALLOC=",
    };
    static const char conf[] = "MALLOC_CONF="; /* jemalloc under a prefix reads _RJEM_MALLOC_CONF, JE_MALLOC_CONF */
    if (begins(variable, "LD_PRELOAD="))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (begins(variable, names[i]))
            return true;
    const char *found = strstr(variable, conf);
    return found != NULL && found < strchr(variable, '=');
}

void settings_report(struct report *report) {
    for (char **each = environ; each != NULL && *each != NULL; each++) {
        char name[LONGEST_NAME + 1];
        const size_t length = strcspn(*each, "=");
        if (length > LONGEST_NAME || (*each)[length] == '\0' || !steers(*each))
            continue;
        const char *value = *each + length + 1;
        if (strlen(value) > LONGEST_VALUE)
            continue;
        memcpy(name, *each, length);
        name[length] = '\0';
        report_word(report, "setting");
        report_path(report, name); /* a name may hold any byte, too */
        report_path(report, value);
        report_line(report);
    }
}
