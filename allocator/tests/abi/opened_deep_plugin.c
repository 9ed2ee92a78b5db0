/* See opened_deep.c. */
#include <dlfcn.h>
#include <stdlib.h>

void *opened_deep_give(void);
void *opened_deep_give(void) { return malloc(100); }

void opened_deep_take(void *block);
void opened_deep_take(void *block) { free(block); }

void *opened_deep_malloc(void);
void *opened_deep_malloc(void) { return (void *)malloc; }

/* NULL if a library that lies beside this one is found by this one's RUNPATH. */
const char *opened_deep_beside(void);
const char *opened_deep_beside(void) {
    void *found = dlopen(BESIDE, RTLD_NOW | RTLD_DEEPBIND);
    return found != NULL ? NULL : dlerror();
}
