/* Every second run of it takes half a minute: argv[1] is a file that counts them. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
    FILE *runs = count > 1 ? fopen(words[1], "a") : NULL;
    if (runs == NULL)
        return 2;
    fputc('x', runs);
    const long number = ftell(runs);
    fclose(runs);
    for (int i = 0; i < 100000; i++)
        free(malloc(50));
    if (number % 2 == 0)
        sleep(30);
    return 0;
}
