/* cfree, by which old programs free. Since glibc 2.26 no other can be linked to libc's, and a newer one may have a function of its own by that name.
 * Only in the shared library, which old programs meet. */
#include <stdlib.h>

#include "api_process.h"

PUBLIC OFFERED(cfree) {
    PASS_OTHER(cfree, false);
    free((void *)a);
    return 0;
}
