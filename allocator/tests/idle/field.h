/* A field of blocks, every survivor of which is known by its content: filled, thinned out in no order of addresses,
 * looked after. The list of blocks is static, so that it is not in the heap. */
#ifndef FREESTONE_TESTS_FIELD_H
#define FREESTONE_TESTS_FIELD_H

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "resident.h"
#include "tasks.h"

enum { FIELD_MOST = 300000 };

struct field {
    void *block[FIELD_MOST];
    uint32_t order[FIELD_MOST];
    size_t count, size;
    size_t before_kib, full_kib;
};

static struct field field; /* zero: in no memory until it is used */

static inline void field_fill(size_t count, size_t size) {
    EXPECT(count <= FIELD_MOST, "%zu blocks", count);
    field.count = count;
    field.size = size;
    uint64_t random = 1;
    for (size_t i = 0; i < count; i++) {
        field.block[i] = NULL;
        field.order[i] = (uint32_t)i;
    }
    for (size_t i = count; i > 1; i--) {
        size_t other = pattern_below(&random, i);
        uint32_t held = field.order[other];
        field.order[other] = field.order[i - 1];
        field.order[i - 1] = held;
    }
    field.before_kib = resident_kib();
    for (size_t i = 0; i < count; i++) {
        field.block[i] = malloc(size);
        EXPECT(field.block[i] != NULL, "malloc(%zu) failed", size);
        pattern_fill(field.block[i], 0, size, i);
    }
    field.full_kib = resident_kib();
}

/* Frees all but one in `keep_one_in` blocks, in no order. */
static inline void field_thin_out(size_t keep_one_in) {
    for (size_t i = 0; i < field.count; i++) {
        uint32_t chosen = field.order[i];
        if (chosen % keep_one_in != 0 && field.block[chosen] != NULL) {
            free(field.block[chosen]);
            field.block[chosen] = NULL;
        }
    }
}

static inline void field_check(const char *when) {
    for (size_t i = 0; i < field.count; i++) {
        size_t wrong = field.block[i] == NULL ? SIZE_MAX : pattern_mismatch(field.block[i], field.size, i);
        EXPECT(wrong == SIZE_MAX, "%s: byte %zu of block %zu has changed", when, wrong, i);
    }
}

static inline void field_clear(void) {
    for (size_t i = 0; i < field.count; i++) {
        free(field.block[i]);
        field.block[i] = NULL;
    }
}

/* Idles until `percent` of what the process has grown by since `before_kib` is back, ten seconds at most. */
static inline void field_await_return(size_t before_kib, size_t full_kib, size_t percent) {
    EXPECT(full_kib > before_kib + 8 * 1024, "the process grew from %zu to %zu KiB only", before_kib, full_kib);
    size_t most = full_kib - (full_kib - before_kib) * percent / 100;
    size_t left_kib = tasks_await_resident(most);
    EXPECT(left_kib <= most, "%zu KiB before, %zu with the blocks, %zu after %d idle milliseconds", before_kib,
           full_kib, left_kib, IDLE_MS);
}

/* Makes the keeper live: frees 48 MiB here and there. The rest is looked at by field_check. */
static inline void field_wake_keeper(void) {
    field_fill(FIELD_MOST, 160);
    field_thin_out(200);
    EXPECT(tasks_await_keeper(true, 2000), "nobody came to return %zu KiB", field.full_kib - field.before_kib);
}

#endif
