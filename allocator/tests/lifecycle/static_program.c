/* A static program that calls just those functions of libc whose archive members also define malloc, or that use it
 * behind the scenes. One definition that libfreestone leaves out brings libc's whole malloc back into the link, and
 * either the link fails on the duplicates or two heaps share one program. Run together with static_symbols.cmake. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

int main(void) {
    char *block = malloc(1000);
    EXPECT(block != NULL && malloc_usable_size(block) >= 1000, "malloc(1000) gave too little");
    memset(block, 1, 1000);
    struct mallinfo2 info = mallinfo2();
    EXPECT(info.uordblks + info.hblkhd >= 1000, "mallinfo2 does not see the block");
    pid_t child = fork();
    EXPECT(child >= 0, "fork failed");
    if (child == 0) {
        block = realloc(block, 100000);
        EXPECT(block != NULL && block[999] == 1, "realloc in the child lost contents");
        free(block);
        exit(malloc_trim(0) < 0);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with status 0x%x", (unsigned)status);
    free(block);
    malloc_trim(0);
    malloc_stats();
    char *line = NULL;
    EXPECT(asprintf(&line, "%d", 12345) == 5 && strcmp(line, "12345") == 0, "asprintf failed");
    free(line);
    return 0;
}
