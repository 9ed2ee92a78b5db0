#include "heap.h"

#include <stdlib.h>

const char *const heap_entry_names[ENTRIES] = {"malloc", "calloc", "realloc", "free"};

int heap_call(void) {
    unsigned char *volatile grown = malloc(24);
    if (grown == NULL)
        return 0;
    grown[0] = 1;
    unsigned char *volatile moved = realloc(grown, 48);
    if (moved == NULL) {
        free(grown);
        return 0;
    }
    const int kept = moved[0];
    free(moved);
    unsigned char *volatile zeroed = calloc(3, 8);
    if (zeroed == NULL)
        return 0;
    const int clear = zeroed[23] == 0;
    free(zeroed);
    return kept == 1 && clear;
}
