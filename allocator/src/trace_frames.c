/* The unwinder's own functions by which a program registers frames, as compilers at run time do: passed on, once it is noted that there are such
 * frames (trace_take). In the shared library alone; a program that is linked with the static one is never unwound. */
#include <dlfcn.h>
#include <stddef.h>

#include "trace.h"

#define PUBLIC __attribute__((visibility("default")))

/* Not in a signal's handler, nor within malloc: who registers frames has just made them. NULL where there is no such function. */
static void *next_of(const char *name) {
    trace_follow_pointers();
    return dlsym(RTLD_NEXT, name);
}

PUBLIC void __register_frame(void *begin);
PUBLIC void __register_frame(void *begin) {
    void (*next)(void *);
    *(void **)&next = next_of("__register_frame");
    if (next != NULL) {
        next(begin);
    }
}

PUBLIC void __register_frame_table(void *begin);
PUBLIC void __register_frame_table(void *begin) {
    void (*next)(void *);
    *(void **)&next = next_of("__register_frame_table");
    if (next != NULL) {
        next(begin);
    }
}

PUBLIC void __register_frame_info(const void *begin, void *object);
PUBLIC void __register_frame_info(const void *begin, void *object) {
    void (*next)(const void *, void *);
    *(void **)&next = next_of("__register_frame_info");
    if (next != NULL) {
        next(begin, object);
    }
}

PUBLIC void __register_frame_info_table(void *begin, void *object);
PUBLIC void __register_frame_info_table(void *begin, void *object) {
    void (*next)(void *, void *);
    *(void **)&next = next_of("__register_frame_info_table");
    if (next != NULL) {
        next(begin, object);
    }
}

PUBLIC void __register_frame_info_bases(const void *begin, void *object, void *text, void *data);
PUBLIC void __register_frame_info_bases(const void *begin, void *object, void *text, void *data) {
    void (*next)(const void *, void *, void *, void *);
    *(void **)&next = next_of("__register_frame_info_bases");
    if (next != NULL) {
        next(begin, object, text, data);
    }
}

PUBLIC void __register_frame_info_table_bases(void *begin, void *object, void *text, void *data);
PUBLIC void __register_frame_info_table_bases(void *begin, void *object, void *text, void *data) {
    void (*next)(void *, void *, void *, void *);
    *(void **)&next = next_of("__register_frame_info_table_bases");
    if (next != NULL) {
        next(begin, object, text, data);
    }
}
