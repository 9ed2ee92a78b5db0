/* realloc to nothing frees; free after it is the second time. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(800));
    announce("double free: pointer %p, size class 896 bytes", block);
    EXPECT(realloc(block, unseen_size(0)) == NULL, "realloc(p, 0) gave a block");
    free(unseen(block));
    flush();
    return unnoticed();
}
