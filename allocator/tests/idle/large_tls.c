/* A program with much thread-local memory: the library's own lies far from the thread pointer then, and the keeper, which
 * libc has given none, must do without. */
#include "field.h"
#include "serving.h"

enum { TLS_BYTES = 300000 };

static _Thread_local unsigned char bytes[TLS_BYTES];

int main(void) {
    require_serving();
    unsigned char *own = unseen(bytes);
    memset(own, 0x5a, TLS_BYTES);
    field_fill(FIELD_MOST / 2, 160);
    field_thin_out(200);
    field_await_return(field.before_kib, field.full_kib, 70);
    field_check("after idling");
    for (size_t i = 0; i < TLS_BYTES; i++) {
        EXPECT(own[i] == 0x5a, "thread-local byte %zu has changed", i);
    }
    return 0;
}
