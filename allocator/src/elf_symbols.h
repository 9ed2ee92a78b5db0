/* The tables of one ELF object in memory, read without a call of libc's or the linker's. Leaf above bits. */
#ifndef FREESTONE_ELF_SYMBOLS_H
#define FREESTONE_ELF_SYMBOLS_H

#include <link.h>

#include "bits.h"

/* One of them: where it lies, and its dynamic section; none where that is NULL. Valid as long as it is loaded. */
struct elf_object {
    uintptr_t base;
    const ElfW(Dyn) * dynamic;
    const char *file; /* "" for the program; NULL if no object was found */
    const unsigned char *frames; /* the table by which its frames are unwound (.eh_frame_hdr), or NULL */
};

/* The object whose file begins at that address, with all of its headers. */
struct elf_object elf_object_at(uintptr_t header);

/* An entry of the dynamic section, and the table that it points to; NULL without one. */
const ElfW(Dyn) * elf_entry(struct elf_object object, ElfW(Sxword) tag);
const void *elf_table(struct elf_object object, ElfW(Sxword) tag);

/* The function of that name that the object itself defines, of whatever version; NULL where it defines none. */
void *elf_function_in(struct elf_object object, const char *name);

/* Names that are looked for together. */
enum { ELF_NAMES_MOST = 32 };
struct elf_search {
    const char *const *names;
    void **found; /* NULL for each that has not been found yet */
    unsigned count;
    bool is_other; /* what is found now is not libc's: it gets its bit */
    uint32_t others;
    uint32_t hashes[ELF_NAMES_MOST];
};
void elf_search_begin(struct elf_search *search, const char *const *names, void **found, unsigned count);

/* Finds what is not found yet and what the object defines, as elf_function_in. */
void elf_search_in(struct elf_object object, struct elf_search *search);

/* Where the dynamic linker has stored the address of a function that the object calls; NULL if the object calls none of that name. */
void *const *elf_slot_in(struct elf_object object, const char *name);

/* Goes through all that it is bound to by name, until `look` does not return 0. What a slot holds may be no address. */
void elf_for_each_slot(struct elf_object object, int (*look)(void *held, void *argument), void *argument);

/* The dynamic symbol that covers the address, and its start; NULL if there is none. */
const char *elf_symbol_at(struct elf_object object, uintptr_t address, uintptr_t *start);

/* Whether two names are one. */
bool elf_is_same(const char *a, const char *b);

#endif
