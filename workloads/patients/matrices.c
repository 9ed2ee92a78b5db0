/* matrices: the classic case, as Ezolt found it in a chemistry code ("A Study in Malloc: A Case of Excessive Minor Faults", 2001).
 * Each call allocates its matrices, works on them, and frees them in reverse order; small data lives on beside them.
 *
 *   matrices KIB MATRICES CALLS     matrices of KIB KiB each, at most 64 a call; prints a number that depends on all work */
#include "patient.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64, TERMS = 12 };

/* A few terms of a series for each element: every page is written once, and read again. */
static double multiply(double *matrix, size_t elements, double by) {
    double sum = 0;
    for (size_t i = 0; i < elements; i++)
        matrix[i] = by + (double)(i & 63);
    for (size_t i = 0; i < elements; i++) {
        double value = matrix[i];
        for (int term = 0; term < TERMS; term++)
            value = value * 0.5 + 1;
        sum += value;
    }
    return sum;
}

static double call(size_t size, size_t matrices) {
    double *each[MOST];
    double sum = 0;
    for (size_t i = 0; i < matrices; i++)
        sum += multiply(each[i] = asked(size), size / sizeof *each[i], (double)i);
    for (size_t i = matrices; i-- > 0;)
        free(each[i]);
    return sum;
}

static size_t number(const char *word, size_t most) {
    char *end;
    unsigned long found = strtoul(word, &end, 10);
    if (*word < '0' || *word > '9' || *end != '\0' || found > most)
        give_up("usage: matrices KIB MATRICES CALLS, at most 1048576, 64 and 1000000000");
    return found;
}

int main(int words, char **word) {
    /* What lives on is small, and its size decides at which KiB the edges lie: docs/results/2026-11-26-classic-case.md. */
    enum { LIVES_ON = 1 * KIB };
    size_t size = number(words > 1 ? word[1] : "127", 1048576) * KIB;
    size_t matrices = number(words > 2 ? word[2] : "4", MOST);
    size_t calls = number(words > 3 ? word[3] : "4000", 1000000000);
    setvbuf(stdout, NULL, _IONBF, 0); /* a buffer would be one more block in the heap */
    char *small = asked(LIVES_ON);
    touch(small, LIVES_ON);
    double sum = 0;
    for (size_t i = 0; i < calls; i++)
        sum += call(size, matrices);
    free(small);
    printf("%.0f\n", sum);
    return 0;
}
