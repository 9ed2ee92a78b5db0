/* Mappings by address against a model of one flag a page: which is found where, and how deep the tree becomes in the orders in which a kernel
 * and a program have them come and go. */
#include "mappings.h"

#include <stdlib.h>

#include "pattern.h"
#include "scenario.h"

enum { ROWS = 4096, UNIT = 1 << 20, LOWEST = 1 << 16 };

static struct mappings mappings;

static uintptr_t start_of(size_t place) { return ((uintptr_t)LOWEST + place) * UNIT; }

static void add(size_t place) {
    EXPECT(mappings_rows(&mappings) <= ROWS, "%zu rows", mappings_rows(&mappings));
    mappings_add(&mappings, (struct mapping){start_of(place), UNIT, UNIT, place % UNIT, 0});
}

static void begin(void) {
    mappings = (struct mappings){.row = calloc(ROWS + 1, sizeof(struct mapping_row))};
    EXPECT(mappings.row != NULL, "no memory");
}

/* The rows below `row` lie in order between two starts, and no chance is higher than the one above. Adds to how many there are; returns how
 * deep they lie. */
static size_t check_tree(uint32_t row, uintptr_t low, uintptr_t high, uint64_t chance, size_t *count) {
    if (row == 0) {
        return 0;
    }
    const struct mapping_row *at = &mappings.row[row];
    EXPECT(row < mappings.begun && at->mapping.start > low && at->mapping.start < high && at->chance <= chance,
           "row %u starts at %#zx, between %#zx and %#zx", row, (size_t)at->mapping.start, (size_t)low, (size_t)high);
    ++*count;
    size_t lower = check_tree(at->lower, low, at->mapping.start, at->chance, count);
    size_t higher = check_tree(at->higher, at->mapping.start, high, at->chance, count);
    return 1 + bits_max(lower, higher);
}

static size_t check(void) {
    size_t count = 0;
    size_t deep = check_tree(mappings.root, 0, UINTPTR_MAX, UINT64_MAX, &count);
    EXPECT(count == mappings.count, "%zu rows in the tree, %zu counted", count, mappings.count);
    return deep;
}

/* Any that comes or goes, in any order: what is found is the nearest that is there. */
static void any_order(void) {
    enum { PLACES = 700, ROUNDS = 40000 };
    static bool is_there[PLACES];
    begin();
    uint64_t random = 1;
    size_t most = 0;
    for (int round = 0; round < ROUNDS; round++) {
        size_t place = pattern_below(&random, PLACES);
        if (is_there[place]) {
            mappings_remove(&mappings, start_of(place));
        } else {
            add(place);
        }
        is_there[place] = !is_there[place];
        most = bits_max(most, mappings.count);
        EXPECT(mappings.begun <= most + 1, "%zu rows were begun for %zu", mappings.begun, most);
        size_t asked = pattern_below(&random, PLACES);
        size_t nearest = asked + 1;
        while (nearest > 0 && !is_there[nearest - 1]) {
            nearest--;
        }
        const struct mapping *found = mappings_up_to(&mappings, start_of(asked) + pattern_below(&random, UNIT));
        EXPECT(nearest == 0 ? found == NULL
                            : found != NULL && found->start == start_of(nearest - 1) && found->offset == nearest - 1,
               "place %zu: %#zx", asked, found == NULL ? 0 : (size_t)found->start);
        if (round % 256 == 0) {
            check();
        }
    }
    EXPECT(mappings_up_to(&mappings, start_of(0) - 1) == NULL, "there is one below the lowest");
}

/* A row stays where it is as long as its mapping is there: who cannot wait for the lock reads it all the same. */
static void rows_stay(void) {
    begin();
    add(2000);
    const struct mapping *first = mappings_up_to(&mappings, start_of(2000));
    for (size_t place = 0; place < 4000; place++) {
        if (place != 2000) {
            add(place);
        }
    }
    for (size_t place = 0; place < 4000; place += 2) {
        if (place != 2000) {
            mappings_remove(&mappings, start_of(place));
        }
    }
    EXPECT(mappings_up_to(&mappings, start_of(2000)) == first && first->start == start_of(2000) &&
               first->offset == 2000,
           "it has moved");
    check();
}

enum order { DOWNWARDS, UPWARDS, TO_AND_FRO, ORDERS };

static size_t in_order(enum order order, size_t turn) {
    size_t zigzag = turn % 2 == 0 ? turn / 2 : ROWS - 1 - turn / 2;
    return order == DOWNWARDS ? ROWS - 1 - turn : order == UPWARDS ? turn : zigzag;
}

/* However they come, and however half of them go: about twice the logarithm, at most four times. */
static void never_deep(void) {
    enum { LOGARITHM = 12 };
    for (enum order comes = DOWNWARDS; comes < ORDERS; comes++) {
        for (enum order goes = DOWNWARDS; goes < ORDERS; goes++) {
            begin();
            for (size_t turn = 0; turn < ROWS; turn++) {
                add(in_order(comes, turn));
            }
            size_t full = check();
            for (size_t turn = 0; turn < ROWS / 2; turn++) {
                mappings_remove(&mappings, start_of(in_order(goes, turn)));
            }
            size_t half = check();
            for (size_t turn = 0; turn < ROWS / 2; turn++) { /* into rows that were in use before */
                add(in_order(goes, turn));
            }
            size_t again = check();
            EXPECT(full <= 4 * LOGARITHM && half <= 4 * LOGARITHM && again <= 4 * LOGARITHM,
                   "orders %d and %d: %zu, %zu and %zu deep", (int)comes, (int)goes, full, half, again);
            EXPECT(mappings.begun == ROWS + 1, "%zu rows were begun", mappings.begun);
            free(mappings.row);
        }
    }
}

static const struct scenario scenarios[] = {
    {"any_order", any_order},
    {"rows_stay", rows_stay},
    {"never_deep", never_deep},
};

SCENARIO_MAIN(scenarios)
