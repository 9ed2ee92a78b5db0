#define _GNU_SOURCE
#include "latency.h"

#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { FLOOR_LOOKS = 20000, FLOOR_MOST = 4096, NOTHING_LOOKS = 1000000, CALIBRATION_NS = 20000000 };
enum { COARSE_STEPS_LOG = 2 }; /* of the calls as they are told: four buckets for each doubling */

struct latency_clock latency_clock;
_Thread_local struct latency *latency_mine;

static const char *const kinds[LATENCY_KINDS] = {"nothing", "malloc", "malloc_and_write", "free"};

void latency_into(struct latency *latency) { latency_mine = latency; }

/* A TSC that stops or changes its speed with the processor is no clock. */
static bool has_steady_counter(void) {
#if defined(__x86_64__)
    enum { POWER_LEAF = 0x80000007, INVARIANT = 1 << 8 };
    unsigned a, b, c, d;
    return __get_cpuid(POWER_LEAF, &a, &b, &c, &d) != 0 && (d & INVARIANT) != 0;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

static double calibrated(void) {
    const uint64_t from_ns = moment_ns();
    const int64_t from = latency_ticks();
    sleep_until(from_ns + CALIBRATION_NS);
    const uint64_t to_ns = moment_ns();
    const int64_t to = latency_ticks();
    return to > from ? (double)(to_ns - from_ns) / (double)(to - from) : 1;
}

/* What two looks with nothing between take, in ticks: the mean of those up to twice the median. A counter that goes up by
 * ten nanoseconds at a time shows it in the mean alone. */
static double floor_ticks(void) {
    static uint32_t looks[FLOOR_MOST];
    for (size_t i = 0; i < FLOOR_LOOKS; i++) {
        const int64_t from = latency_ticks();
        const int64_t took = latency_ticks() - from;
        looks[took < 0 ? 0 : took < FLOOR_MOST ? took : FLOOR_MOST - 1]++;
    }
    size_t median = 0;
    for (uint64_t seen = looks[0]; 2 * seen < FLOOR_LOOKS; seen += looks[median])
        median++;
    uint64_t sum = 0, count = 0;
    for (size_t ticks = 0; ticks <= 2 * median && ticks < FLOOR_MOST; ticks++) {
        sum += looks[ticks] * ticks;
        count += looks[ticks];
    }
    return (double)sum / (double)count;
}

/* The least by which one look differs from the one before, 1 where none does. */
static int64_t step_ticks(void) {
    int64_t step = INT64_MAX;
    int64_t from = latency_ticks();
    for (size_t i = 0; i < FLOOR_LOOKS; i++) {
        const int64_t to = latency_ticks();
        if (to > from && to - from < step)
            step = to - from;
        from = to;
    }
    return step == INT64_MAX ? 1 : step;
}

void latency_open(struct latency *of_nothing) {
    latency_clock.is_counter = has_steady_counter();
    latency_clock.ns_per_tick = latency_clock.is_counter ? calibrated() : 1;
    latency_clock.floor_ticks = floor_ticks();
    latency_clock.step_ticks = step_ticks();
    for (size_t i = 0; i < NOTHING_LOOKS; i++) {
        const int64_t from = latency_ticks();
        const int64_t to = latency_ticks();
        latency_note(&of_nothing->of[LATENCY_NOTHING], from, to, 1);
    }
}

void latency_add(struct latency *to, const struct latency *more) {
    for (size_t kind = 0; kind < LATENCY_KINDS; kind++) {
        struct latency_course *sum = &to->of[kind];
        const struct latency_course *course = &more->of[kind];
        for (size_t i = 0; i < LATENCY_BUCKETS; i++)
            sum->calls[i] += course->calls[i];
        if (course->longest_ns > sum->longest_ns)
            sum->longest_ns = course->longest_ns;
    }
}

uint64_t latency_calls(const struct latency_course *course) {
    uint64_t calls = 0;
    for (size_t i = 0; i < LATENCY_BUCKETS; i++)
        calls += course->calls[i];
    return calls;
}

/* The first number of nanoseconds that the calls of a bucket were below. */
static uint64_t end_of(size_t bucket) {
    if (bucket < LATENCY_STEPS)
        return bucket + 1;
    const size_t shift = bucket / LATENCY_STEPS - 1;
    return (uint64_t)(bucket % LATENCY_STEPS + LATENCY_STEPS + 1) << shift;
}

/* The same of the coarser bucket that a bucket is in. */
static uint64_t coarse_end_of(size_t bucket) {
    const uint64_t last = end_of(bucket) - 1;
    const unsigned log = last == 0 ? 0 : 63 - (unsigned)__builtin_clzll(last);
    const unsigned shift = log < COARSE_STEPS_LOG ? 0 : log - COARSE_STEPS_LOG;
    return ((last >> shift) + 1) << shift;
}

/* Nanoseconds that no less than `per_10000` of ten thousand calls did not exceed, to the width of a bucket. */
static uint64_t percentile(const struct latency_course *course, uint64_t per_10000) {
    const uint64_t calls = latency_calls(course);
    uint64_t seen = 0;
    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        seen += course->calls[i];
        if (seen > 0 && seen * 10000 >= calls * per_10000)
            return end_of(i) - 1 < course->longest_ns ? end_of(i) - 1 : course->longest_ns;
    }
    return 0;
}

static void report_kind(const char *kind, const struct latency_course *course) {
    char key[32];
    snprintf(key, sizeof key, "%s_ns", kind);
    report_inner(key);
    report_count("median", percentile(course, 5000));
    report_count("p99.9", percentile(course, 9990));
    report_count("p99.99", percentile(course, 9999));
    report_count("longest", course->longest_ns);
    report_inner_end();
    snprintf(key, sizeof key, "%s_calls", kind);
    report_inner(key);
    uint64_t calls = 0;
    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        calls += course->calls[i];
        if (calls > 0 && (i + 1 == LATENCY_BUCKETS || coarse_end_of(i + 1) != coarse_end_of(i))) {
            snprintf(key, sizeof key, "%" PRIu64, coarse_end_of(i));
            report_count(key, calls);
            calls = 0;
        }
    }
    report_inner_end();
}

void latency_report(const struct latency *latency) {
    report_real("clock_floor_ns", latency_clock.floor_ticks * latency_clock.ns_per_tick);
    report_real("clock_step_ns", (double)latency_clock.step_ticks * latency_clock.ns_per_tick);
    for (size_t kind = 0; kind < LATENCY_KINDS; kind++)
        report_kind(kinds[kind], &latency->of[kind]);
}
