#include "elf_objects.h"

#include "direct_binding.h"
#include "os.h"

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

/* Whether dl_iterate_phdr may be called for what is not vital. In a child of fork another thread's hold of its lock never ends. Without
 * _dl_find_object there is no other way for anything. */
static bool may_wait(void) {
    uint32_t start = os_process_at_start();
    return elf_find_object == NULL || start == 0 || start == os_process();
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

/* The linker's list: its first, which is the program; this object; and the last of those libraries behind it, NULL if none is, since this one was loaded
 * late. Else all from the first to the last of the list as it was found were loaded with the program, in the order in which the linker
 * searches, and never go: they are looked at without its lock. */
static const struct link_map *first_map, *own_map, *last_behind, *last_started;

static const ElfW(Dyn) * linker;

/* Two threads may come at once, before the constructor: both store the same, and each of these once. */
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
        linker = libraries[count - 1].dynamic;
    }
    const struct link_map *behind = NULL, *last = NULL;
    for (const struct link_map *each = own_map; each != NULL; each = each->l_next) {
        for (unsigned i = 0; i < count && each != own_map; i++) {
            behind = each->l_ld == libraries[i].dynamic ? each : behind;
        }
        last = each;
    }
    first_map = list != NULL ? list->r_map : NULL;
    last_behind = behind;
    last_started = behind != NULL ? last : first_map;
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

/* Whether it is libc, or what earlier versions have apart. */
static bool is_libc(struct elf_object object) {
    return object.dynamic == linker || is_named(object, "libc.so.6") || is_named(object, "libpthread.so.0") ||
           is_named(object, "libdl.so.2");
}

void elf_search_behind(struct elf_search *search) {
    (void)library_count();
    for (const struct link_map *map = last_behind != NULL ? own_map : NULL; map != last_behind;) {
        map = map->l_next;
        search->is_other = !is_libc(object_at(map));
        elf_search_in(object_at(map), search);
    }
}

void elf_search_before(struct elf_search *search) {
    (void)library_count();
    for (const struct link_map *map = first_map; map != NULL && map != own_map; map = map->l_next) {
        elf_search_in(object_at(map), search);
        if (map ==
            last_started) { /* the program, if this object was loaded late: nothing else is before another for everybody */
            break;
        }
    }
}

/* The walk ends at libc at the latest, if this object was loaded late: before what another thread might unload. */
const char *elf_file_before_own(const char *name) {
    (void)library_count();
    for (const struct link_map *map = first_map; map != NULL; map = map->l_next) {
        if (elf_function_in(object_at(map), name) != NULL) {
            return map == own_map ? NULL : map == first_map ? "" : map->l_name;
        }
    }
    return NULL;
}

/* The next of those that were loaded with the program, after NULL the first; NULL after the last. */
static const struct link_map *next_started(const struct link_map *map) {
    (void)library_count();
    return map == NULL ? first_map : map == last_started ? NULL : map->l_next;
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

void *elf_function_anywhere(const char *name) {
    void *found = NULL;
    for (const struct link_map *map = NULL; found == NULL && (map = next_started(map)) != NULL;) {
        found = elf_function_in(object_at(map), name);
    }
    return found != NULL || !may_wait() ? found : searched((struct search){.function = name}).found;
}

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

/* -- what an object goes by ---------------------------------------------------------------------------------- */

static struct elf_object started(const char *library) {
    for (const struct link_map *map = NULL; (map = next_started(map)) != NULL;) {
        if (is_named(object_at(map), library)) {
            return object_at(map);
        }
    }
    return (struct elf_object){0};
}

/* The address that a slot holds lies in that object. It is loaded for as long as the one that the slot is in. */
struct bound {
    const char *function;
    const struct link_map *last; /* looked at */
    void *found;
};

/* Not 0 ends the search. */
static int look_at_bound(void *address, void *argument) {
    struct bound *search = argument;
    struct found_object bound;
    if (elf_find_object(address, &bound) == 0 && bound.map != search->last) {
        search->last = bound.map;
        search->found = elf_function_in(object_at(bound.map), search->function);
    }
    return search->found != NULL;
}

void *elf_function_needed(struct elf_object object, const char *name) {
    const char *names = elf_table(object, DT_STRTAB);
    const ElfW(Dyn) *first = names != NULL ? object.dynamic : NULL;
    void *found = NULL;
    bool is_late = false;
    for (const ElfW(Dyn) *entry = first; found == NULL && entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_NEEDED) {
            struct elf_object library = started(names + entry->d_un.d_val);
            found = elf_function_in(library, name);
            is_late |= library.dynamic == NULL;
        }
    }
    if (found == NULL && elf_find_object != NULL) {
        struct bound search = {.function = name};
        elf_for_each_slot(object, look_at_bound, &search);
        found = search.found;
    }
    is_late &= found == NULL && may_wait();
    for (const ElfW(Dyn) *entry = first; is_late && found == NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_NEEDED) {
            const char *library = names + entry->d_un.d_val;
            found = elf_function_in(searched((struct search){.library = library}).object, name);
        }
    }
    return found;
}

/* glibc's dynamic linker: ld-linux-*.so.*, and ld64.so.2 on ppc64le. */
static bool is_linker(struct elf_object object) {
    const ElfW(Dyn) *entry = elf_entry(object, DT_SONAME);
    const char *names = elf_table(object, DT_STRTAB);
    const char *name = entry == NULL || names == NULL ? "" : names + entry->d_un.d_val;
    bool is_64 = name[0] == 'l' && name[1] == 'd' && name[2] == '6' && name[3] == '4' && name[4] == '.';
    return is_64 || (name[0] == 'l' && name[1] == 'd' && name[2] == '-');
}

/* -- runtimes of C++ ----------------------------------------------------------------------------------------- */

/* Their operators are found by the dynamic linker, which finds ours first. */
static bool is_shared_runtime(struct elf_object object) {
    static const char names[][16] = {"libgcc_s.so.1",  "libstdc++.so.6", "libc++.so.1", "libc++abi.so.1",
                                     "libunwind.so.8", "libunwind.so.1", "libc.so.6"};
    bool found = is_linker(object) || (own_map != NULL && object.dynamic == own_map->l_ld);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        found = found || is_named(object, names[i]);
    }
    return found;
}

static bool is_further_runtime(struct elf_object object) {
    return !is_shared_runtime(object) &&
           (elf_function_in(object, "_Znwm") != NULL || elf_slot_in(object, "_Unwind_RaiseException") != NULL ||
            elf_slot_in(object, "dl_iterate_phdr") != NULL || elf_slot_in(object, "_dl_find_object") != NULL);
}

/* Not 0 ends the search. */
static int look_for_runtime(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    (void)argument;
    return is_further_runtime(object_of(info));
}

static bool is_static(void) { return &__ehdr_start == NULL || elf_object_at((uintptr_t)&__ehdr_start).dynamic == NULL; }

bool elf_has_further_runtime(void) {
    for (const struct link_map *map = NULL; (map = next_started(map)) != NULL;) {
        if (is_further_runtime(object_at(map))) {
            return true;
        }
    }
    /* relaxed: what another thread is about to load has made nothing yet that this one was given */
    if (is_static() || (last_started != NULL && __atomic_load_n(&last_started->l_next, __ATOMIC_RELAXED) == NULL)) {
        return false;
    }
    return !may_wait() || for_each_object(look_for_runtime, NULL) != 0;
}
