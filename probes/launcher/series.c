#include "series.h"

#include "moment.h"
#include "tree.h"

static const uint64_t first_step_ns = 1000000;

static struct tree tree;

void series_start(struct series *series, uint64_t start_ns, uint64_t step_ns) {
    series->count = 0;
    series->peak_kib = 0;
    series->step_ns = step_ns;
    series->next_ns = step_ns == 0 ? UINT64_MAX : start_ns + (step_ns < first_step_ns ? step_ns : first_step_ns);
}

static void merge_neighbours(struct series *series) {
    for (size_t i = 0; i < SERIES_POINTS / 2; i++) {
        const struct point *left = &series->points[2 * i], *right = left + 1;
        series->points[i] = right->resident_kib > left->resident_kib ? *right : *left;
    }
    series->count = SERIES_POINTS / 2;
    series->step_ns *= 2;
}

void series_sample(struct series *series, uint64_t start_ns) {
    const uint64_t before = moment_now();
    tree_list(&tree);
    const uint64_t resident_kib = tree_resident_kib(&tree);
    const uint64_t after = moment_now(), elapsed = before - start_ns;
    if (resident_kib > 0) { /* nothing resident: every process listed had just ended */
        if (series->count == SERIES_POINTS)
            merge_neighbours(series);
        series->points[series->count++] = (struct point){elapsed, resident_kib, (uint32_t)tree.count};
        if (resident_kib > series->peak_kib)
            series->peak_kib = resident_kib;
    }
    uint64_t step = elapsed < series->step_ns ? elapsed : series->step_ns;
    const uint64_t cost = after - before;
    if (step < cost * 100)
        step = cost * 100;
    series->next_ns = after + step;
}

void series_write(const struct series *series, struct json *json) {
    json_open(json, "series", '[');
    for (size_t i = 0; i < series->count; i++) {
        json_open(json, NULL, '[');
        json_seconds(json, NULL, series->points[i].at_ns);
        json_integer(json, NULL, (int64_t)series->points[i].resident_kib);
        json_integer(json, NULL, series->points[i].processes);
        json_close(json, ']');
    }
    json_close(json, ']');
}
