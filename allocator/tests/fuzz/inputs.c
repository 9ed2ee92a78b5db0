/* inputs FILE ...: plays each. The inputs that fuzzers have found and that were kept, among the tests; without a file, standard input, again and
 * again where AFL++ says so. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls.h"

enum { INPUT_MOST = 1 << 16 };

static uint8_t bytes[INPUT_MOST];

#ifdef __AFL_HAVE_MANUAL_CONTROL
__AFL_FUZZ_INIT();
#endif

int main(int count, char **arguments) {
#ifdef __AFL_HAVE_MANUAL_CONTROL
    __AFL_INIT();
    const unsigned char *input = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(1000)) {
        calls_play(input, (size_t)__AFL_FUZZ_TESTCASE_LEN);
    }
    return 0;
#endif
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(arguments[i], "rb");
        if (file == NULL) {
            perror(arguments[i]);
            return 1;
        }
        size_t length = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        calls_play(bytes, length);
    }
    printf("%d inputs\n", count - 1);
    return count > 1 ? 0 : 1;
}
