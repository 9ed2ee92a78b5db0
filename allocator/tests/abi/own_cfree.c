/* A program may have a function of its own by the name of cfree: libc has none to link to. */
#include "entry.h"
#include "expect.h"
#include "serving.h"

struct part {
    int uses;
};

long cfree(struct part *part, long uses);
long cfree(struct part *part, long uses) { return part->uses -= (int)uses; }

int main(void) {
    free(malloc(1)); /* or the archive would not be linked */
    require_serving();
    struct part part = {7};
    EXPECT(cfree(&part, 3) == 4, "it was not called");
    return 0;
}
