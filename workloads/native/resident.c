#include "resident.h"

#include "store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t number_after(const char *text, const char *label) {
    const char *at = strstr(text, label);
    return at == NULL ? 0 : strtoull(at + strlen(label), NULL, 10);
}

uint64_t resident_kib(void) {
    char text[4096];
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length < 0 ? 0 : length] = '\0';
    const uint64_t resident = number_after(text, "VmRSS:"), own = store_held_kib();
    return resident > own ? resident - own : 0;
}

uint64_t minor_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_minflt;
}
