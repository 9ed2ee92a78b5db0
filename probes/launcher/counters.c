#define _GNU_SOURCE
#include "counters.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CACHE_MISS(cache, operation) \
    ((cache) | ((uint64_t)(operation) << 8) | ((uint64_t)PERF_COUNT_HW_CACHE_RESULT_MISS << 16))

static const struct kind {
    const char *name;      /* kernel and user */
    const char *user_name; /* when only user mode may be counted */
    uint32_t type;
    uint64_t config;
} kinds[] = {
    {"cycles", "cycles:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", "instructions:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-misses", "cache-misses:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branch-misses", "branch-misses:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"dTLB-load-misses", "dTLB-load-misses:u", PERF_TYPE_HW_CACHE,
     CACHE_MISS(PERF_COUNT_HW_CACHE_DTLB, PERF_COUNT_HW_CACHE_OP_READ)},
    /* Software, but counted here because it tells what ru_minflt cannot: traps alone, without populated pages. */
    {"page-faults", "page-faults:u", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int descriptors[KINDS] = {-1, -1, -1, -1, -1, -1};
_Static_assert(KINDS == 6, "one initial descriptor per kind");
static bool user_only[KINDS];

static int open_event(const struct kind *kind, bool exclude_kernel) {
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = kind->type;
    attr.config = kind->config;
    attr.disabled = 1;
    attr.inherit = 1;
    attr.enable_on_exec = 1;
    attr.exclude_kernel = exclude_kernel;
    attr.exclude_hv = 1;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

void counters_open(void) {
    for (size_t i = 0; i < KINDS; i++) {
        descriptors[i] = open_event(&kinds[i], false);
        if (descriptors[i] < 0) {
            user_only[i] = true;
            descriptors[i] = open_event(&kinds[i], true);
        }
    }
}

static const char *name_of(size_t i) { return user_only[i] ? kinds[i].user_name : kinds[i].name; }

void counters_names(struct json *json) {
    json_open(json, "counters", '[');
    for (size_t i = 0; i < KINDS; i++) {
        if (descriptors[i] >= 0)
            json_text(json, NULL, name_of(i));
    }
    json_close(json, ']');
}

void counters_write(struct json *json) {
    json_open(json, "counters", '{');
    for (size_t i = 0; i < KINDS; i++) {
        uint64_t value[3]; /* count, time enabled, time running */
        if (descriptors[i] < 0 || read(descriptors[i], value, sizeof value) != (ssize_t)sizeof value)
            continue;
        if (value[2] == 0)
            continue; /* never on the hardware: unknown, not zero */
        const double scaled = (double)value[0] * ((double)value[1] / (double)value[2]);
        json_integer(json, name_of(i), value[1] == value[2] ? (int64_t)value[0] : (int64_t)scaled);
    }
    json_close(json, '}');
}
