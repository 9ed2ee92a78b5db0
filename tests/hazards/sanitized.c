/* Works a little, and with a word makes the mistake that a sanitizer is there to find. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    (void)words;
    for (size_t i = 1; i < 5000; i++) {
        char *block = malloc(i);
        memset(block, 1, i);
        block = realloc(block, 2 * i);
        free(block);
    }
    char *volatile block = malloc(100);
    free(block);
    if (count > 1) {
        block[50] = 1;
    }
    return 0;
}
