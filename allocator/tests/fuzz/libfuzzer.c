/* The target of libFuzzer. */
#include "calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    calls_play(bytes, count);
    return 0;
}
