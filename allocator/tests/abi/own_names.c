/* A library of the program's may have functions that share no more than a name with those of libc's that libfreestone stands in front of. They are given
 * what the program passes, and the program gets what they return. A name that libc.h has and this table lacks does not compile. */
#include <stdbool.h>

#include "expect.h"
#include "own_names.h"
#include "serving.h"

static const struct {
    const char *name;
    own_function *function;
} names[] = {
#define ENTRY(name) {#name, own_##name},
    OWN_NAMES(ENTRY)};

enum { NAMES = sizeof names / sizeof *names };
_Static_assert(NAMES == (int)LIBC_FUNCTIONS, "libc.h has a list that own_names.h lacks");

/* Whether only the arguments in integer registers are promised to arrive. */
static bool takes_no_more(const char *name) {
#ifdef FREESTONE_TESTS_PRELOAD
    static const char *const few[] = {"pthread_create", "_Fork", "capset", "dlopen", "syscall"};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        if (strcmp(name, few[i]) == 0) {
            return true;
        }
    }
    return false;
#else
    return name != NULL;
#endif
}

static void expect_passed(size_t which, const long integers[7], bool fit) {
    const double number = 0.1;
    const struct own_call *call = own_call();
    const char *name = names[which].name;
    const char *result = names[which].function(integers[0], integers[1], integers[2], integers[3], integers[4],
                                               integers[5], integers[6], number);
    EXPECT(call->name != NULL && strcmp(call->name, name) == 0, "%s: not called", name);
    EXPECT(result == (const char *)integers[3] + 1, "%s returned %p", name, (const void *)result);
    bool all = !fit && !takes_no_more(name);
    for (int i = 0; i < (all ? 7 : 6); i++) {
        EXPECT(call->integers[i] == integers[i], "%s: argument %d is %#lx", name, i, (unsigned long)call->integers[i]);
    }
    EXPECT(!all || (call->number >= number && call->number <= number), "%s: the number is %g", name, call->number);
}

int main(void) {
    free(malloc(1)); /* or the archive would not be linked */
    require_serving();
    static const long wide[7] = {0x7111111122222222, 0x7333333344444444, 0x7555555566666666, 0x7777777788888888,
                                 0x7999999911111111, 0x7222222233333333, 0x7444444455555555};
    static const long fitting[7] = {5, 6, 7, 0x7777777788888888, 0x7999999911111111, 0x7222222233333333, 0};
    for (size_t i = 0; i < NAMES; i++) {
        expect_passed(i, wide, false);
        expect_passed(i, fitting, true);
    }
    return 0;
}
