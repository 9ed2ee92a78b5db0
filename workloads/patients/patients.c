/* patients: sick programs by the name of what they suffer from, cases that were reported of real ones, and some that are well.
 *
 *   patients NAME     runs for about a second; exit status 0, nothing printed
 *   patients          prints the names, on standard error; exit status 2 */
#include "patient.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    static const struct patient *const wards[] = {
        patients_in_time, patients_in_memory, patients_in_both, reported_cases, well_ones,
    };
    enum { WARDS = sizeof wards / sizeof wards[0] };
    for (size_t ward = 0; argc == 2 && ward < WARDS; ward++) {
        for (const struct patient *each = wards[ward]; each->name != NULL; each++) {
            if (strcmp(argv[1], each->name) == 0) {
                each->run();
                return 0;
            }
        }
    }
    fputs("usage: patients NAME, one of:\n", stderr);
    for (size_t ward = 0; ward < WARDS; ward++) {
        for (const struct patient *each = wards[ward]; each->name != NULL; each++)
            fprintf(stderr, "  %s\n", each->name);
    }
    return 2;
}
