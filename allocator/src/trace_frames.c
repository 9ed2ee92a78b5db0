/* The unwinder's own functions by which a program registers frames, as compilers at run time do: passed on, once it is noted that there are such
 * frames (trace_take). In the shared library alone; a program that is linked with the static one is never unwound. */
#include <dlfcn.h>
#include <stddef.h>

#include "trace.h"

#define PUBLIC __attribute__((visibility("default")))

/* Not in a signal's handler, nor within malloc: who registers frames has just made them. */
#define PASSED_ON(name, parameters, arguments)     \
    PUBLIC void name parameters;                   \
    PUBLIC void name parameters {                  \
        void(*next) parameters;                    \
        trace_follow_pointers();                   \
        *(void **)&next = dlsym(RTLD_NEXT, #name); \
        if (next != NULL) {                        \
            next arguments;                        \
        }                                          \
    }

PASSED_ON(__register_frame, (void *begin), (begin))
PASSED_ON(__register_frame_table, (void *begin), (begin))
PASSED_ON(__register_frame_info, (const void *begin, void *object), (begin, object))
PASSED_ON(__register_frame_info_table, (void *begin, void *object), (begin, object))
PASSED_ON(__register_frame_info_bases, (const void *begin, void *object, void *text, void *data),
          (begin, object, text, data))
PASSED_ON(__register_frame_info_table_bases, (void *begin, void *object, void *text, void *data),
          (begin, object, text, data))
