/* The objects that the dynamic linker has loaded, and what they define, without a call of the linker's that waits for its lock: another thread may hold
 * that for as long as it likes, in dlopen, and wait for this one. dl_iterate_phdr, by which exceptions find their way too, takes another,
 * held for moments only. */
#ifndef FREESTONE_ELF_OBJECTS_H
#define FREESTONE_ELF_OBJECTS_H

#include "elf_symbols.h"

/* The object that the address lies in. */
struct elf_object elf_object_of(const void *address);

/* _dl_find_object, of glibc since 2.35, takes no lock: elf_object_of uses it if it is told here, by a constructor. */
typedef int elf_find(void *address, void *found);
extern elf_find *elf_find_object INTERNAL;

/* libc's own function of that name, whatever stands before it: one of the libraries that this object needs defines it. Calls nothing: it reads
 * the list that the dynamic linker keeps for debuggers, once. NULL without a dynamic linker. */
void *elf_function_of_libc(const char *name);

/* What the objects behind this one define that were loaded with the program, in the order in which the dynamic linker searches: what dlsym finds
 * with RTLD_NEXT. Nothing if this object was loaded later. Calls nothing; only objects that never go are looked at. What is found in
 * another than libc gets its bit. */
void elf_search_behind(struct elf_search *search);

/* ... those before this object: the program; and those between, if this object was loaded with it. */
void elf_search_before(struct elf_search *search);

/* The function of that name that one of those it was linked with defines, in their order. Takes no lock for those that were loaded with the program, nor
 * for those in which a function or an object lies that it is bound to, if there is _dl_find_object. */
void *elf_function_needed(struct elf_object object, const char *name);

/* ... that an object behind the one of `address` defines, in the order in which the dynamic linker searches; or, if none does, one before it, since the
 * object was loaded late. */
void *elf_function_behind(const void *address, const char *name);

/* ... that any object defines: the program, what it was linked with, and then what was loaded later, except in a child of fork. */
void *elf_function_anywhere(const char *name);

/* The first object in which the dynamic linker finds that function, for every program and library that calls it; "" is the program. NULL if that is this
 * object, or if there is no dynamic linker. Calls nothing. */
const char *elf_file_before_own(const char *name);

/* Whether an object brings a C++ runtime of its own, whose operators new and delete may be hidden from all others: it defines them, or it throws
 * or unwinds without being a runtime that all share. Looks at every object; in a child of fork an object that was loaded late counts as one. */
bool elf_has_further_runtime(void);

#endif
