/* A process that is to go on after a report (guard_recover=1): what calloc gives is zero all the same, also where a stray write has gone. */
#include <unistd.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum { TURNS = 300, SIZE = 6000 }; /* so large that calloc counts on pages that nobody has touched */

int main(void) {
    require_serving();
    for (int i = 0; i < TURNS; i++) {
        (void)usleep(5000); /* one in two milliseconds is guarded */
        char *block = unseen(malloc(SIZE));
        EXPECT(block != NULL, "no memory");
        free(block);
        if (i % 5 == 0) {
            *(volatile char *)unseen(block) = 'z'; /* the misuse */
        }
        char *zero = unseen(calloc(1, SIZE));
        for (int byte = 0; byte < SIZE && i % 5 != 0; byte++) {
            EXPECT(zero[byte] == 0, "turn %d: byte %d is %d", i, byte, zero[byte]);
        }
        free(zero);
    }
    return 0;
}
