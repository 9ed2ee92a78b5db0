/* free_sized frees what free has freed. */
#include "misuse.h"

int main(void) {
    void *block = unseen(malloc(80));
    announce("double free: pointer %p, size class 80 bytes", block);
    free(block);
    free_sized(unseen(block), 80);
    flush();
    return unnoticed();
}
