/* What the dynamic linker makes read-only of the library when it is loaded stays so: addresses that the library has filled in itself, of libc's
 * functions, lie there too, and whoever can write anywhere does not choose what they call. */
#include <inttypes.h>
#include <link.h>
#include <stdbool.h>

#include "../expect.h"
#include "../serving.h"

static struct {
    uintptr_t start, end;
} relro;

static int find_library(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    for (size_t i = 0; strstr(object->dlpi_name, "libfreestone") != NULL && i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            relro.start = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
            relro.end = relro.start + object->dlpi_phdr[i].p_memsz;
        }
    }
    return 0;
}

int main(void) {
    require_serving();
    (void)dl_iterate_phdr(find_library, NULL);
    EXPECT(relro.end > relro.start, "the library has nothing that is made read-only");
    FILE *maps = fopen("/proc/self/maps", "r");
    EXPECT(maps != NULL, "/proc/self/maps cannot be opened");
    char line[512], rights[5];
    bool seen = false;
    for (uintptr_t from, to; fgets(line, sizeof line, maps) != NULL;) {
        EXPECT(sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) == 3, "%s", line);
        if (from < relro.end && to > relro.start) {
            EXPECT(strchr(rights, 'w') == NULL, "it can be written: %s", line);
            seen = true;
        }
    }
    EXPECT(seen, "it is not mapped");
    fclose(maps);
    return 0;
}
