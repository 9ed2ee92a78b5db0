/* A program reserves more than a tebibyte of addresses, piece by piece, as engines of WebAssembly and maps of large files do: there is
 * still memory for small blocks. */
#include <sys/mman.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { PIECES = 16500, SIZE = 1000 };

static const size_t PIECE = (size_t)64 << 20, TAKEN = (size_t)300 << 20;

int main(void) {
    require_serving();
    free(unseen(malloc(SIZE))); /* the library has chosen its place */
    for (size_t i = 0; i < PIECES; i++) {
        void *piece = mmap(NULL, PIECE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (piece == MAP_FAILED) {
            expect_skip("no more than %zu GiB of addresses here", i * PIECE >> 30);
        }
    }
    for (size_t taken = 0; taken < TAKEN; taken += SIZE) {
        EXPECT(unseen(malloc(SIZE)) != NULL, "malloc gives NULL after %zu MiB", taken >> 20);
    }
    return 0;
}
