#include "elf_objects.h"

/* What a search looks for and has found. */
struct search {
    const void *address; /* the object that it lies in, */
    const char *library; /* of that name, */
    const char *function; /* or that defines this */
    struct elf_object object;
    void *found;
};

static bool is_same(const char *a, const char *b) {
    while (*a == *b && *a != '\0') {
        a++;
        b++;
    }
    return *a == *b;
}

/* -- a dynamic section --------------------------------------------------------------------------------------- */

/* glibc has added the base to its addresses, but not in every object; musl has not. */
static const void *pointer_in(struct elf_object object, ElfW(Addr) value) {
    return (const void *)(value < object.base ? object.base + value : value);
}

static const ElfW(Dyn) * entry_of(struct elf_object object, ElfW(Sxword) tag) {
    const ElfW(Dyn) *entry = object.dynamic;
    while (entry != NULL && entry->d_tag != DT_NULL && entry->d_tag != tag) {
        entry++;
    }
    return entry == NULL || entry->d_tag == DT_NULL ? NULL : entry;
}

static const void *table_of(struct elf_object object, ElfW(Sxword) tag) {
    const ElfW(Dyn) *entry = entry_of(object, tag);
    return entry == NULL ? NULL : pointer_in(object, entry->d_un.d_ptr);
}

/* -- a function ---------------------------------------------------------------------------------------------- */

struct symbols {
    const ElfW(Sym) * table;
    const char *names;
};

static bool defines(const struct symbols *symbols, uint32_t number, const char *name) {
    const ElfW(Sym) *symbol = &symbols->table[number];
    return symbol->st_shndx != SHN_UNDEF && (symbol->st_info & 0xf) == STT_FUNC &&
           is_same(symbols->names + symbol->st_name, name);
}

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name != '\0'; name++) {
        hash = hash * 33 + (unsigned char)*name;
    }
    return hash;
}

/* The number of the symbol, 0 when there is none. The table: buckets, first number, words of the filter (not looked at: this is no hot path), its
 * shift; the filter; for each bucket its first number; for each number its hash, of which the lowest bit ends a bucket. */
static uint32_t find_by_gnu_hash(const uint32_t *table, const struct symbols *symbols, const char *name) {
    uint32_t buckets = table[0], first = table[1], words = table[2];
    const uint32_t *bucket = table + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    uint32_t hash = hash_of(name);
    uint32_t number = buckets == 0 ? 0 : bucket[hash % buckets];
    while (number >= first && number != 0) {
        uint32_t its_hash = chain[number - first];
        if ((its_hash | 1) == (hash | 1) && defines(symbols, number, name)) {
            return number;
        }
        number = (its_hash & 1) != 0 ? 0 : number + 1;
    }
    return 0;
}

/* The older table says how many symbols there are. */
static uint32_t find_one_by_one(const uint32_t *table, const struct symbols *symbols, const char *name) {
    for (uint32_t number = 1; number < table[1]; number++) {
        if (defines(symbols, number, name)) {
            return number;
        }
    }
    return 0;
}

void *elf_function_in(struct elf_object object, const char *name) {
    struct symbols symbols = {table_of(object, DT_SYMTAB), table_of(object, DT_STRTAB)};
    const uint32_t *by_gnu_hash = table_of(object, DT_GNU_HASH), *by_hash = table_of(object, DT_HASH);
    uint32_t number = 0;
    if (symbols.table == NULL || symbols.names == NULL) {
        return NULL;
    }
    if (by_gnu_hash != NULL) {
        number = find_by_gnu_hash(by_gnu_hash, &symbols, name);
    } else if (by_hash != NULL) {
        number = find_one_by_one(by_hash, &symbols, name);
    }
    return number == 0 ? NULL : (void *)(object.base + symbols.table[number].st_value);
}

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
    struct elf_object object = {info->dlpi_addr, NULL};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            object.dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        }
    }
    return object;
}

/* By the name it has for those that need it; else by the file's. */
static bool is_named(struct elf_object object, const struct dl_phdr_info *info, const char *name) {
    const ElfW(Dyn) *entry = entry_of(object, DT_SONAME);
    const char *names = table_of(object, DT_STRTAB);
    if (entry != NULL && names != NULL) {
        return is_same(names + entry->d_un.d_val, name);
    }
    const char *file = info->dlpi_name;
    for (const char *at = file; at != NULL && *at != '\0'; at++) {
        file = *at == '/' ? at + 1 : file;
    }
    return file != NULL && is_same(file, name);
}

/* Not 0 ends the search. */
static int look_at(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    struct search *search = argument;
    struct elf_object object = object_of(info);
    bool is_it;
    if (search->function != NULL) {
        search->found = elf_function_in(object, search->function);
        is_it = search->found != NULL;
    } else {
        is_it = search->library != NULL ? is_named(object, info, search->library) : covers(info, search->address);
    }
    if (is_it) {
        search->object = object;
    }
    return is_it;
}

static struct search searched(struct search search) {
    (void)dl_iterate_phdr(look_at, &search);
    return search;
}

struct elf_object elf_object_of(const void *address) { return searched((struct search){.address = address}).object; }

void *elf_function_anywhere(const char *name) { return searched((struct search){.function = name}).found; }

void *elf_function_needed(struct elf_object object, const char *name) {
    const char *names = table_of(object, DT_STRTAB);
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
    const ElfW(Dyn) *entry = entry_of(object, DT_SONAME);
    const char *names = table_of(object, DT_STRTAB);
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
    (void)dl_iterate_phdr(look_before, &search);
    void *earlier = search.early ? search.of_earlier : NULL;
    void *found = search.of_program != NULL ? search.of_program : earlier;
    return found != NULL ? found : (void *)address;
}
