/* An auditor for LD_AUDIT: lives in a link-map namespace with a libc of its own and allocates there at every event, so
 * that two heaps work in one process from before the first constructor. */
#include <link.h>
#include <stdlib.h>
#include <string.h>

unsigned int la_version(unsigned int version) {
    free(calloc(1, 1000));
    return version;
}

unsigned int la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie) {
    (void)lmid;
    (void)cookie;
    free(strdup(map->l_name));
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
