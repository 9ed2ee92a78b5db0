/* Text in buffers of every size, against snprintf: the same characters, the same length, always terminated, and nothing
 * written behind the buffer. */
#include "text.h"

#include "expect.h"
#include "pattern.h"

enum { ROOM = 80 };

static int compose(char *to, size_t size, const char *words, uint64_t value) {
    struct text text = {to, size, 0};
    text_add(&text, "");
    text_add(&text, words);
    text_decimal(&text, value);
    text_add(&text, " is 0x");
    text_hexadecimal(&text, value);
    return (int)text.length;
}

static void check(const char *words, uint64_t value) {
    char wanted[ROOM], got[ROOM + 1];
    for (size_t size = 0; size <= ROOM; size++) {
        memset(got, 'x', sizeof got);
        memset(wanted, 'x', sizeof wanted);
        int length =
            snprintf(wanted, size, "%s%llu is 0x%llx", words, (unsigned long long)value, (unsigned long long)value);
        EXPECT(compose(got, size, words, value) == length, "%zu bytes: not %d characters", size, length);
        EXPECT(size == 0 || strcmp(got, wanted) == 0, "%zu bytes: '%s' instead of '%s'", size, got, wanted);
        for (size_t i = size; i <= ROOM; i++) {
            EXPECT(got[i] == 'x', "%zu bytes: byte %zu was written", size, i);
        }
    }
}

int main(void) {
    check("", 0);
    check("all ones ", UINT64_MAX);
    uint64_t random = 3;
    for (int i = 0; i < 2000; i++) {
        uint64_t value = pattern_below(&random, UINT64_MAX);
        check(i % 2 == 0 ? "" : "a few words, ", value >> pattern_below(&random, 64));
    }
    return 0;
}
