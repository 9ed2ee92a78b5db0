#include "elf_objects.h"

#include "direct_binding.h"

/* A static program without exceptions has none; its own headers are known to the linker. */
#pragma weak dl_iterate_phdr
extern const ElfW(Ehdr) __ehdr_start __attribute__((weak, visibility("hidden")));

/* What a search looks for and has found. */
struct search {
    const void *address; /* the object that it lies in, */
    const char *library; /* of that name, */
    const char *function; /* or that defines this */
    struct elf_object object;
    void *found;
};

/* -- the objects --------------------------------------------------------------------------------------------- */

static bool covers(const struct dl_phdr_info *info, const void *address) {
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (uintptr_t)address - (info->dlpi_addr + part->p_vaddr) < part->p_memsz) {
            return true;
        }
    }
    return false;
}

static struct elf_object object_of(const struct dl_phdr_info *info) {
    struct elf_object object = {.base = info->dlpi_addr, .file = info->dlpi_name};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const void *part = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            object.dynamic = part;
        } else if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
            object.frames = part;
        }
    }
    return object;
}

/* By the name it has for those that need it; else by the file's. */
static bool is_named(struct elf_object object, const char *name) {
    const ElfW(Dyn) *entry = elf_entry(object, DT_SONAME);
    const char *names = elf_table(object, DT_STRTAB);
    if (entry != NULL && names != NULL) {
        return elf_is_same(names + entry->d_un.d_val, name);
    }
    const char *file = object.file;
    for (const char *at = file; at != NULL && *at != '\0'; at++) {
        file = *at == '/' ? at + 1 : file;
    }
    return file != NULL && elf_is_same(file, name);
}

/* Not 0 ends the search. */
static int look_at(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    struct search *search = argument;
    if (search->address != NULL && !covers(info, search->address)) {
        return 0;
    }
    struct elf_object object = object_of(info);
    bool is_it;
    if (search->function != NULL) {
        search->found = elf_function_in(object, search->function);
        is_it = search->found != NULL;
    } else {
        is_it = search->library == NULL || is_named(object, search->library);
    }
    if (is_it) {
        search->object = object;
    }
    return is_it;
}

/* What the last call returns; 0 without a dynamic linker. */
static int for_each_object(int (*look)(struct dl_phdr_info *, size_t, void *), void *argument) {
    int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *) = DIRECT(dl_iterate_phdr);
    return iterate != NULL ? iterate(look, argument) : 0;
}

static struct search searched(struct search search) {
    (void)for_each_object(look_at, &search);
    return search;
}

/* -- libc's own ---------------------------------------------------------------------------------------------- */

/* The dynamic linker's lists, one for each of its namespaces; it keeps them for debuggers. */
#ifdef __GLIBC__
#pragma weak _r_debug /* not in every static program */
static const struct r_debug *first_list(void) { return &_r_debug; }
#else
extern struct r_debug *const _dl_debug_addr __attribute__((weak));
static const struct r_debug *first_list(void) { return &_dl_debug_addr != NULL ? _dl_debug_addr : NULL; }
#endif

static const struct r_debug *next_list(const struct r_debug *list) {
    struct extended { /* of glibc since 2.35, as it says by its version */
        struct r_debug list;
        struct r_debug *next;
    };
    return list->r_version > 1 ? ((const struct extended *)list)->next : NULL;
}

/* The object with that dynamic section, and the list that it is in. */
static const struct link_map *map_with(const ElfW(Dyn) * dynamic, const struct r_debug **list) {
    for (*list = first_list(); *list != NULL; *list = next_list(*list)) {
        for (const struct link_map *each = (*list)->r_map; each != NULL; each = each->l_next) {
            if (each->l_ld == dynamic) {
                return each;
            }
        }
    }
    return NULL;
}

static struct elf_object object_at(const struct link_map *map) {
    return (struct elf_object){.base = map->l_addr, .dynamic = map->l_ld, .file = map->l_name};
}

static struct elf_object listed(const struct r_debug *list, const char *library) {
    for (const struct link_map *each = list->r_map; each != NULL; each = each->l_next) {
        if (is_named(object_at(each), library)) {
            return object_at(each);
        }
    }
    return (struct elf_object){0};
}

enum { LIBRARIES_MOST = 6 }; /* libc, and what earlier versions have apart: threads, dlsym */

/* Those that this object needs, found once, by a constructor or before: later another thread might unload an object of the list. */
static struct elf_object libraries[LIBRARIES_MOST];

/* This object, and the last of the libraries that stand behind it in the linker's list; NULL if none does, since it was loaded late. Else all from
 * the program to that one were loaded with it, in the order in which the linker searches, and never go. */
static const struct link_map *own_map, *last_behind;

static unsigned find_libraries(void) {
    struct elf_object own = &__ehdr_start == NULL ? (struct elf_object){0} : elf_object_at((uintptr_t)&__ehdr_start);
    const struct r_debug *list = NULL;
    own_map = own.dynamic == NULL ? NULL : map_with(own.dynamic, &list);
    const char *names = elf_table(own, DT_STRTAB);
    unsigned count = 0;
    const ElfW(Dyn) *entry = own_map != NULL && names != NULL ? own.dynamic : NULL;
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_NEEDED && count < LIBRARIES_MOST - 1) {
            libraries[count++] = listed(list, names + entry->d_un.d_val);
        }
    }
    if (list != NULL && list->r_ldbase != 0) { /* musl's linker is libc, by any name */
        libraries[count++] = elf_object_at(list->r_ldbase);
    }
    for (const struct link_map *each = own_map; each != NULL; each = each->l_next) {
        for (unsigned i = 0; i < count && each != own_map; i++) {
            last_behind = each->l_ld == libraries[i].dynamic ? each : last_behind;
        }
    }
    return count;
}

static unsigned library_count(void) {
    enum { UNKNOWN = LIBRARIES_MOST + 1 };
    static unsigned count = UNKNOWN;
    count = count == UNKNOWN ? find_libraries() : count;
    return count;
}

void *elf_function_of_libc(const char *name) {
    void *found = NULL;
    unsigned count = library_count();
    for (unsigned i = 0; i < count && found == NULL; i++) {
        found = elf_function_in(libraries[i], name);
    }
    return found;
}

void elf_search_behind(struct elf_search *search) {
    (void)library_count();
    for (const struct link_map *map = last_behind != NULL ? own_map : NULL; map != last_behind;) {
        map = map->l_next;
        elf_search_in(object_at(map), search);
    }
}

/* -- the object of an address -------------------------------------------------------------------------------- */

elf_find *elf_find_object INTERNAL __attribute__((weak)); /* the shared library has its own (libc_loaded.c) */

/* As glibc has it (dlfcn.h), with room for what later versions may add. */
struct found_object {
    unsigned long long flags;
    void *start, *end;
    const struct link_map *map;
    const unsigned char *frames;
    unsigned long long reserved[32];
};

/* The object that this file is linked into. */
static struct elf_object own_object_of(const void *address) {
    struct dl_phdr_info info = {.dlpi_name = ""};
    const ElfW(Ehdr) *head = &__ehdr_start;
    if (head == NULL) {
        return (struct elf_object){0};
    }
    info.dlpi_phdr = (const ElfW(Phdr) *)((uintptr_t)head + head->e_phoff);
    info.dlpi_phnum = head->e_phnum;
    for (unsigned i = 0; i < info.dlpi_phnum; i++) {
        if (info.dlpi_phdr[i].p_type == PT_LOAD && info.dlpi_phdr[i].p_offset == 0) {
            info.dlpi_addr = (uintptr_t)head - info.dlpi_phdr[i].p_vaddr;
        }
    }
    return covers(&info, address) ? object_of(&info) : (struct elf_object){0};
}

struct elf_object elf_object_of(const void *address) {
    struct found_object found;
    if (elf_find_object == NULL) {
        return DIRECT(dl_iterate_phdr) != NULL ? searched((struct search){.address = address}).object
                                               : own_object_of(address);
    }
    if (elf_find_object((void *)address, &found) != 0) {
        return (struct elf_object){0};
    }
    return (struct elf_object){found.map->l_addr, found.map->l_ld, found.map->l_name, found.frames};
}

void *elf_function_anywhere(const char *name) { return searched((struct search){.function = name}).found; }

struct succession {
    const void *address; /* what is found has to stand behind this */
    const char *function;
    void *before, *behind;
    bool reached;
};

/* Not 0 ends the search. */
static int look_behind(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    struct succession *search = argument;
    if (covers(info, search->address)) {
        search->reached = true;
        return 0;
    }
    void **found = search->reached ? &search->behind : &search->before;
    if (*found == NULL) {
        *found = elf_function_in(object_of(info), search->function);
    }
    return search->behind != NULL;
}

void *elf_function_behind(const void *address, const char *name) {
    struct succession search = {.address = address, .function = name};
    (void)for_each_object(look_behind, &search);
    return search.behind != NULL ? search.behind : search.before;
}

void *elf_function_needed(struct elf_object object, const char *name) {
    const char *names = elf_table(object, DT_STRTAB);
    void *found = NULL;
    for (const ElfW(Dyn) *entry = object.dynamic;
         names != NULL && found == NULL && entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_NEEDED) {
            const char *library = names + entry->d_un.d_val;
            found = elf_function_in(searched((struct search){.library = library}).object, name);
        }
    }
    return found;
}

/* -- what stands before another ------------------------------------------------------------------------------ */

struct precedence {
    const void *address; /* what is found has to stand before this */
    const char *function;
    void *of_program, *of_earlier;
    bool begun, reached;
    bool early; /* the address lies in what was loaded with the program */
};

/* glibc's dynamic linker: ld-linux-*.so.*, and ld64.so.2 on ppc64le. */
static bool is_linker(struct elf_object object) {
    const ElfW(Dyn) *entry = elf_entry(object, DT_SONAME);
    const char *names = elf_table(object, DT_STRTAB);
    const char *name = entry == NULL || names == NULL ? "" : names + entry->d_un.d_val;
    bool is_64 = name[0] == 'l' && name[1] == 'd' && name[2] == '6' && name[3] == '4' && name[4] == '.';
    return is_64 || (name[0] == 'l' && name[1] == 'd' && name[2] == '-');
}

/* Objects come in the order in which the dynamic linker searches: the program, what is preloaded, what they need; at the end of these the
 * linker itself, which libc needs; then what was loaded later, of which one is not before another for everybody. Not 0 ends the search. */
static int look_before(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    struct precedence *search = argument;
    struct elf_object object = object_of(info);
    search->reached |= covers(info, search->address);
    if (search->begun && is_linker(object)) {
        search->early = search->reached;
        return 1;
    }
    void **found = search->begun ? &search->of_earlier : &search->of_program;
    if (!search->reached && *found == NULL) {
        *found = elf_function_in(object, search->function);
    }
    search->begun = true;
    return search->of_program != NULL;
}

void *elf_function_before(const void *address, const char *name) {
    struct precedence search = {.address = address, .function = name};
    (void)for_each_object(look_before, &search);
    void *earlier = search.early ? search.of_earlier : NULL;
    void *found = search.of_program != NULL ? search.of_program : earlier;
    return found != NULL ? found : (void *)address;
}

/* -- runtimes of C++ ----------------------------------------------------------------------------------------- */

/* Their operators are found by the dynamic linker, which finds ours first. */
static bool is_shared_runtime(struct elf_object object, const struct dl_phdr_info *info) {
    static const char names[][16] = {"libgcc_s.so.1",  "libstdc++.so.6", "libc++.so.1", "libc++abi.so.1",
                                     "libunwind.so.8", "libunwind.so.1", "libc.so.6"};
    bool found = is_linker(object) || covers(info, (const void *)(uintptr_t)elf_has_further_runtime);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        found = found || is_named(object, names[i]);
    }
    return found;
}

/* Not 0 ends the search. */
static int look_for_runtime(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    (void)argument;
    struct elf_object object = object_of(info);
    return !is_shared_runtime(object, info) &&
           (elf_function_in(object, "_Znwm") != NULL || elf_slot_in(object, "_Unwind_RaiseException") != NULL ||
            elf_slot_in(object, "dl_iterate_phdr") != NULL || elf_slot_in(object, "_dl_find_object") != NULL);
}

bool elf_has_further_runtime(void) { return for_each_object(look_for_runtime, NULL) != 0; }
