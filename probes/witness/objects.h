/* The objects loaded into this process, and where their references to the heap's entry points were bound.
 *
 * Read from the dynamic linker's own tables. An object with a malloc of its own, one opened with RTLD_DEEPBIND or
 * linked with -Bsymbolic may be served by somebody else than the rest of the process; the slots tell. */
#ifndef FREESTONE_WITNESS_OBJECTS_H
#define FREESTONE_WITNESS_OBJECTS_H

#include "report.h"

#include <stddef.h>
#include <stdint.h>

enum { BUILD_ID = 64 };

struct build_id {
    unsigned char bytes[BUILD_ID];
    size_t count; /* 0: the object has none */
};

/* Addresses this library's own calls of `names` are bound to; 0 where there is no such slot. */
void objects_own_slots(const char *const *names, size_t count, uintptr_t *addresses);

/* Build-id of the object mapped at an address; of the main program for address 0. */
void objects_build_id(uintptr_t address, struct build_id *id);

/* Called once before main: what is loaded by now is there to stay. */
void objects_begin(void);

/* Before and after an object may be unloaded: notes which objects have come since the beginning, and their strays, so
 * that the last words know of them. Neither allocates, and the dynamic linker's own lock is the only one taken. */
void objects_before_closing(uintptr_t provider);
void objects_after_closing(void);

/* The next definition of a function behind this library's own, in the order of the dynamic linker; 0 for none. */
uintptr_t objects_next(const char *name);

/* Writes a line for every object that was seen in this process: "object HOW PATH". HOW is start, later, closed, or
 * apart (in a namespace of its own). Then "unseen N": how many came and went without being seen. */
void objects_report_all(struct report *report);

/* Writes one "stray" line for every loaded object with a slot that leads elsewhere than to the object that holds
 * `provider` (the address malloc is bound to): which symbol, which object, which other object. Then "objects N". */
void objects_report_strays(struct report *report, uintptr_t provider);

#endif
