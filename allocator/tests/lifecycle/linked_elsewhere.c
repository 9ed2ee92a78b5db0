/* A program with a library that was linked for an address above all that a process has. It is loaded below that address: what is added to its
 * addresses is "negative". Prelinked libraries lie so if another library has their place. libfreestone reads the tables of this one at its start. */
#include <link.h>
#include <stdbool.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

int linked_elsewhere_value(int value);

static int note_below(struct dl_phdr_info *object, size_t size, void *below) {
    (void)size;
    *(bool *)below |= strstr(object->dlpi_name, "linked_elsewhere_library") != NULL && (intptr_t)object->dlpi_addr < 0;
    return 0;
}

int main(void) {
    bool below = false;
    require_serving();
    EXPECT(dl_iterate_phdr(note_below, &below) == 0 && below, "it was not loaded below its address");
    EXPECT(linked_elsewhere_value(41) == 42, "its function is another one");
    free(unseen(malloc(100)));
    return 0;
}
