/* What the compiler's start files would define in a shared library: its handle, by which libc tells whose handlers are
 * registered (pthread_atfork). Nothing unregisters them: the library is never unloaded. Weak, for a link with start files. */
#include "bits.h"

INTERNAL __attribute__((weak)) void *__dso_handle = &__dso_handle;
