/* Memory the program mapped itself. */
#include <sys/mman.h>

#include "misuse.h"

int main(void) {
    void *own = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(own != MAP_FAILED, "no mapping");
    announce("foreign pointer: pointer %p was not allocated here", own);
    free(unseen(own));
    return unnoticed();
}
