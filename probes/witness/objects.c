#define _GNU_SOURCE
#include "objects.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
enum { RELOC_ADDRESS = R_X86_64_64, RELOC_SLOT = R_X86_64_JUMP_SLOT, RELOC_DATA = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { RELOC_ADDRESS = R_AARCH64_ABS64, RELOC_SLOT = R_AARCH64_JUMP_SLOT, RELOC_DATA = R_AARCH64_GLOB_DAT };
#elif defined(__riscv) && __riscv_xlen == 64
enum { RELOC_ADDRESS = R_RISCV_64, RELOC_SLOT = R_RISCV_JUMP_SLOT, RELOC_DATA = R_RISCV_64 };
#elif defined(__powerpc64__)
enum { RELOC_ADDRESS = R_PPC64_ADDR64, RELOC_SLOT = R_PPC64_JMP_SLOT, RELOC_DATA = R_PPC64_GLOB_DAT };
#else
#error "the witness does not know this machine's relocations: add its three types here"
#endif

/* One loaded object: what dl_iterate_phdr says, and the tables its dynamic section points to. */
struct object {
    const char *name; /* empty for the main program */
    uintptr_t base;
    const ElfW(Phdr) * headers;
    size_t header_count;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * slots; /* of the procedure linkage table */
    size_t slot_count;
    const ElfW(Rela) * relocations;
    size_t relocation_count, relative_count; /* the relative ones come first and have no symbol */
    const uint32_t *gnu_hash, *sysv_hash;
};

/* glibc adds the base to the pointers of the dynamic section in place, except where that section is read-only (the
 * vDSO, some machines) and in musl. No object is mapped below its own base, so the two can be told apart. */
static uintptr_t pointer(const struct object *object, ElfW(Addr) value) {
    return value >= object->base ? value : value + object->base;
}

static void read_object(struct object *object, const struct dl_phdr_info *info) {
    *object = (struct object){
        .name = info->dlpi_name, .base = info->dlpi_addr, .headers = info->dlpi_phdr, .header_count = info->dlpi_phnum};
    const ElfW(Dyn) *entry = NULL;
    for (size_t i = 0; i < object->header_count; i++) {
        if (object->headers[i].p_type == PT_DYNAMIC)
            entry = (const void *)(object->base + object->headers[i].p_vaddr);
    }
    if (entry == NULL)
        return;
    size_t slot_bytes = 0, relocation_bytes = 0;
    bool rela_slots = true;
    for (; entry->d_tag != DT_NULL; entry++) {
        const uintptr_t at = pointer(object, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            object->symbols = (const void *)at;
            break;
        case DT_STRTAB:
            object->strings = (const void *)at;
            break;
        case DT_JMPREL:
            object->slots = (const void *)at;
            break;
        case DT_PLTRELSZ:
            slot_bytes = entry->d_un.d_val;
            break;
        case DT_PLTREL:
            rela_slots = entry->d_un.d_val == DT_RELA;
            break;
        case DT_RELA:
            object->relocations = (const void *)at;
            break;
        case DT_RELASZ:
            relocation_bytes = entry->d_un.d_val;
            break;
        case DT_RELACOUNT:
            object->relative_count = entry->d_un.d_val;
            break;
        case DT_GNU_HASH:
            object->gnu_hash = (const void *)at;
            break;
        case DT_HASH:
            object->sysv_hash = (const void *)at;
            break;
        default:
            break;
        }
    }
    const bool readable = object->symbols != NULL && object->strings != NULL;
    if (readable && rela_slots && object->slots != NULL)
        object->slot_count = slot_bytes / sizeof(ElfW(Rela));
    if (readable && object->relocations != NULL)
        object->relocation_count = relocation_bytes / sizeof(ElfW(Rela));
    if (object->relative_count > object->relocation_count)
        object->relative_count = object->relocation_count;
}

static bool holds(const struct object *object, uintptr_t address) {
    for (size_t i = 0; i < object->header_count; i++) {
        const ElfW(Phdr) *header = &object->headers[i];
        if (header->p_type == PT_LOAD && address - (object->base + header->p_vaddr) < header->p_memsz)
            return true;
    }
    return false;
}

/* Names the symbol a relocation refers to; NULL for one without a symbol or of a type that fills no slot. */
static const char *symbol_of(const struct object *object, const ElfW(Rela) * relocation) {
    const uint32_t type = ELF64_R_TYPE(relocation->r_info);
    const size_t symbol = ELF64_R_SYM(relocation->r_info);
    if (symbol == 0 || (type != RELOC_SLOT && type != RELOC_DATA && type != RELOC_ADDRESS))
        return NULL;
    return object->strings + object->symbols[symbol].st_name;
}

/* --- where does an object define a symbol? ------------------------------------------------------------------- */

/* Address of a symbol if it is the one of that name and defined here, 0 otherwise. */
static uintptr_t defined_as(const struct object *object, size_t symbol, const char *name) {
    const ElfW(Sym) *entry = &object->symbols[symbol];
    if (entry->st_shndx == SHN_UNDEF || strcmp(object->strings + entry->st_name, name) != 0)
        return 0;
    return object->base + entry->st_value;
}

static uintptr_t defined_by_gnu_hash(const struct object *object, const char *name) {
    uint32_t hash = 5381;
    for (const unsigned char *s = (const unsigned char *)name; *s != '\0'; s++)
        hash = hash * 33 + *s;
    const uint32_t buckets = object->gnu_hash[0], first = object->gnu_hash[1], filter_words = object->gnu_hash[2];
    const uint32_t *bucket = object->gnu_hash + 4 + filter_words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = bucket + buckets;
    if (buckets == 0)
        return 0;
    uint32_t symbol = bucket[hash % buckets];
    if (symbol < first)
        return 0;
    for (;; symbol++) {
        const uint32_t other = chain[symbol - first];
        const uintptr_t at = (other | 1) == (hash | 1) ? defined_as(object, symbol, name) : 0;
        if (at != 0 || (other & 1) != 0)
            return at;
    }
}

static uintptr_t defined_by_sysv_hash(const struct object *object, const char *name) {
    uint32_t hash = 0;
    for (const unsigned char *s = (const unsigned char *)name; *s != '\0'; s++) {
        hash = (hash << 4) + *s;
        hash = (hash ^ ((hash & 0xf0000000u) >> 24)) & 0x0fffffffu;
    }
    const uint32_t buckets = object->sysv_hash[0];
    if (buckets == 0)
        return 0;
    for (uint32_t symbol = object->sysv_hash[2 + hash % buckets]; symbol != 0;
         symbol = object->sysv_hash[2 + buckets + symbol]) {
        const uintptr_t at = defined_as(object, symbol, name);
        if (at != 0)
            return at;
    }
    return 0;
}

static uintptr_t definition_of(const struct object *object, const char *name) {
    if (object->symbols == NULL || object->strings == NULL)
        return 0;
    if (object->gnu_hash != NULL)
        return defined_by_gnu_hash(object, name);
    return object->sysv_hash == NULL ? 0 : defined_by_sysv_hash(object, name);
}

/* --- finding one object -------------------------------------------------------------------------------------- */

struct search {
    uintptr_t address; /* 0: the main program, which comes first */
    struct object found;
    bool any;
};

static int match_object(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    struct search *search = argument;
    const struct object bare = {.base = info->dlpi_addr, .headers = info->dlpi_phdr, .header_count = info->dlpi_phnum};
    if (search->address != 0 && !holds(&bare, search->address))
        return 0;
    read_object(&search->found, info);
    search->any = true;
    return 1;
}

static bool object_at(uintptr_t address, struct object *object) {
    struct search search = {.address = address};
    dl_iterate_phdr(match_object, &search);
    *object = search.found;
    return search.any;
}

void objects_build_id(uintptr_t address, struct build_id *id) {
    struct object object;
    id->count = 0;
    if (!object_at(address, &object))
        return;
    for (size_t i = 0; i < object.header_count; i++) {
        const ElfW(Phdr) *header = &object.headers[i];
        if (header->p_type != PT_NOTE)
            continue;
        const unsigned char *at = (const void *)(object.base + header->p_vaddr);
        const unsigned char *end = at + header->p_memsz;
        while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)at;
            const size_t name = (note->n_namesz + 3u) & ~(size_t)3, body = (note->n_descsz + 3u) & ~(size_t)3;
            if (name + body > (size_t)(end - at) - sizeof *note)
                break;
            const unsigned char *text = at + sizeof *note;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(text, "GNU", 4) == 0) {
                id->count = note->n_descsz < BUILD_ID ? note->n_descsz : BUILD_ID;
                memcpy(id->bytes, text + name, id->count);
                return;
            }
            at = text + name + body;
        }
    }
}

/* --- this library's own slots ---------------------------------------------------------------------------------- */

void objects_own_slots(const char *const *names, size_t count, uintptr_t *addresses) {
    static const char here;
    struct object self;
    for (size_t i = 0; i < count; i++)
        addresses[i] = 0;
    if (!object_at((uintptr_t)&here, &self))
        return;
    for (size_t i = 0; i < self.slot_count; i++) {
        const char *symbol = symbol_of(&self, &self.slots[i]);
        for (size_t n = 0; symbol != NULL && n < count; n++) {
            if (strcmp(symbol, names[n]) == 0)
                addresses[n] = *(const uintptr_t *)(self.base + self.slots[i].r_offset);
        }
    }
}

/* --- strays ---------------------------------------------------------------------------------------------------- */

enum interest { NONE, ENTRY, OPERATOR };

/* The calls through which memory is had. reallocarray is not among them: it is a wrapper that calls realloc. */
static enum interest interest_of(const char *symbol) {
    static const char *const entries[] = {"malloc",        "calloc",   "realloc", "free",   "posix_memalign",
                                          "aligned_alloc", "memalign", "valloc",  "pvalloc"};
    /* Nearly every symbol of a program is turned away here. */
    if (strchr("mcrfpav_", symbol[0]) == NULL)
        return NONE;
    if (symbol[0] == '_') {
        static const char *const operators[] = {"_Znw", "_Zna", "_Zdl", "_Zda"};
        if (symbol[1] != 'Z')
            return NONE;
        for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
            if (strncmp(symbol, operators[i], 4) == 0)
                return OPERATOR;
        }
        return NONE;
    }
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (strcmp(symbol, entries[i]) == 0)
            return ENTRY;
    }
    return NONE;
}

struct survey {
    struct report *report;
    struct object provider;
    uint64_t objects, strays;
};

enum { STRAYS_NAMED = 16 };

/* The C++ library itself: it comes with a libjemalloc that a C program is linked with, and has its references to the
 * operators bound to that one even though nobody in the process uses an operator. */
static bool is_cxx_library(const struct object *object) {
    const char *slash = strrchr(object->name, '/');
    const char *file = slash == NULL ? object->name : slash + 1;
    return strncmp(file, "libstdc++.so", 12) == 0 || strncmp(file, "libc++", 6) == 0;
}

/* Is this slot bound to somebody who hands out memory and is not the provider?
 *
 * A target that is not the definition of the symbol is a stub: of the slot's own object, not bound yet because nothing
 * has called through it, or of a program at a fixed address, which leads on through that program's own slot. An
 * operator may be anyone's (the C++ library's, the program's own, on top of malloc) but another allocator's. */
static bool strays(const struct survey *survey, const struct object *object, const char *symbol, enum interest interest,
                   uintptr_t target, struct object *holder) {
    if (holds(&survey->provider, target) || !object_at(target, holder) || definition_of(holder, symbol) != target)
        return false;
    if (interest == ENTRY)
        return true;
    return definition_of(holder, "malloc") != 0 && !is_cxx_library(object) && !holds(object, target);
}

/* True when a stray was found and reported: one per object is enough to condemn it. */
static bool survey_table(struct survey *survey, const struct object *object, const ElfW(Rela) * table, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *symbol = symbol_of(object, &table[i]);
        const enum interest interest = symbol == NULL ? NONE : interest_of(symbol);
        if (interest == NONE)
            continue;
        const uintptr_t target = *(const uintptr_t *)(object->base + table[i].r_offset);
        struct object holder;
        if (target == 0 || !strays(survey, object, symbol, interest, target, &holder))
            continue;
        if (survey->strays++ < STRAYS_NAMED) {
            report_word(survey->report, "stray");
            report_word(survey->report, symbol);
            report_path(survey->report, object->name[0] == '\0' ? "program" : object->name);
            report_path(survey->report, holder.name[0] == '\0' ? "program" : holder.name);
            report_line(survey->report);
        }
        return true;
    }
    return false;
}

static void survey_one(struct survey *survey, const struct object *object) {
    if (!survey_table(survey, object, object->slots, object->slot_count))
        survey_table(survey, object, object->relocations + object->relative_count,
                     object->relocation_count - object->relative_count);
}

static int survey_object(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    struct survey *survey = argument;
    struct object object;
    read_object(&object, info);
    survey->objects++;
    survey_one(survey, &object);
    return 0;
}

/* --- what comes and goes --------------------------------------------------------------------------------------- */

/* Everything here is written inside dl_iterate_phdr, under the dynamic linker's lock of its lists, which is recursive:
 * a signal handler that ends the process in the middle finds whole entries. */
enum { SEEN_BYTES = 16 * 1024, NOTED_BYTES = 2048 };

static char seen[SEEN_BYTES]; /* names of objects that came after the beginning, each with its NUL */
static size_t seen_used;
static uint64_t seen_lost; /* names there was no room for */
static char noted[NOTED_BYTES]; /* stray lines of objects that were about to be closed */
static size_t noted_used;
static uint64_t noted_strays;
static size_t first_objects;            /* loaded at the beginning: the first of the list, for good */
static unsigned long long removals;     /* dlpi_subs as it was last looked at */
static uint64_t unseen;                 /* removals that no look came before */
static _Atomic unsigned looks;
static _Atomic unsigned closings;       /* between before_closing and after_closing */
static const struct r_debug *namespaces; /* the dynamic linker's word to debuggers */

static bool is_seen(const char *name) {
    for (size_t at = 0; at < seen_used; at += strlen(seen + at) + 1) {
        if (strcmp(seen + at, name) == 0)
            return true;
    }
    return false;
}

/* True for one that was not seen before. */
static bool see(const char *name) {
    const size_t length = strlen(name) + 1;
    if (length == 1 || is_seen(name))
        return false;
    if (length > SEEN_BYTES - seen_used) {
        seen_lost++;
        return false;
    }
    memcpy(seen + seen_used, name, length);
    seen_used += length;
    return true;
}

/* Objects of other namespaces (dlmopen), which dl_iterate_phdr passes over. glibc tells of them since 2.35. */
static const struct link_map *first_apart(const struct r_debug **space) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35)
    while (*space != NULL && (*space)->r_version >= 2) {
        *space = (const struct r_debug *)((const struct r_debug_extended *)*space)->r_next;
        if (*space != NULL && (*space)->r_map != NULL)
            return (*space)->r_map;
    }
#else
    (void)space;
#endif
    return NULL;
}

struct look {
    uintptr_t provider;
    size_t place;
    bool count_removals;
    bool thorough; /* how objects are bound that were seen before, too: a slot may have been bound since */
};

static void look_at_list(const struct look *look, const struct dl_phdr_info *info, size_t size) {
    if (size < offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        return;
    /* With a second namespace glibc's number is none: it takes objects from the sum that it has not added. */
    const unsigned long long most = ~0ull / 2;
    if (look->count_removals && removals < info->dlpi_subs && info->dlpi_subs < most)
        unseen += info->dlpi_subs - removals;
    removals = info->dlpi_subs;
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *argument) {
    struct look *look = argument;
    if (look->place == 0)
        look_at_list(look, info, size);
    if (look->place++ < first_objects)
        return 0;
    if (!see(info->dlpi_name) && !look->thorough)
        return 0;
    struct report report = {.text = noted + noted_used, .size = sizeof noted - noted_used};
    struct survey survey = {.report = &report};
    struct object object;
    read_object(&object, info);
    if (!object_at(look->provider, &survey.provider))
        return 0;
    survey_one(&survey, &object);
    if (survey.strays == 0 || report.cut)
        return 0;
    report.text[report.used - 1] = '\0'; /* in place of the line's end, so that it can be compared */
    for (size_t at = 0; at < noted_used; at += strlen(noted + at) + 1) {
        if (strcmp(noted + at, report.text) == 0)
            return 0;
    }
    noted_used += report.used;
    noted_strays++;
    return 0;
}

static int count_object(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)argument;
    if (first_objects++ == 0)
        look_at_list(&(struct look){0}, info, size);
    return 0;
}

void objects_begin(void) {
    struct search program = {.address = 0};
    dl_iterate_phdr(match_object, &program);
    for (size_t i = 0; program.any && i < program.found.header_count; i++) {
        const ElfW(Phdr) *header = &program.found.headers[i];
        if (header->p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entry = (const void *)(program.found.base + header->p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_DEBUG)
                namespaces = (const void *)entry->d_un.d_ptr;
        }
    }
    dl_iterate_phdr(count_object, NULL);
}

void objects_before_closing(uintptr_t provider) {
    /* Reading how a large library is bound takes a fifth of a millisecond. A program that opens and closes the same ones
     * for ever is not to pay for that each time. */
    const unsigned number = atomic_fetch_add(&looks, 1) + 1;
    /* With another closing under way, its removals are not told from unseen ones. */
    struct look look = {.provider = provider,
                        .count_removals = atomic_fetch_add(&closings, 1) == 0,
                        .thorough = number <= 8 || (number & (number - 1)) == 0};
    dl_iterate_phdr(look_at_object, &look);
    const struct r_debug *space = namespaces;
    for (const struct link_map *map; (map = first_apart(&space)) != NULL;) {
        for (; map != NULL; map = map->l_next)
            see(map->l_name);
    }
}

static int take_removals(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)argument;
    look_at_list(&(struct look){0}, info, size);
    return 1;
}

void objects_after_closing(void) {
    dl_iterate_phdr(take_removals, NULL);
    atomic_fetch_sub(&closings, 1);
}

/* --- the last words -------------------------------------------------------------------------------------------- */

struct listing {
    struct report *report;
    size_t place;
};

static void list(struct listing *listing, const char *how, const char *name) {
    if (name[0] != '/' && strchr(name, '/') == NULL)
        return; /* the program, which is known already, and the kernel's own object */
    report_word(listing->report, "object");
    report_word(listing->report, how);
    report_path(listing->report, name);
    report_line(listing->report);
}

static int list_object(struct dl_phdr_info *info, size_t size, void *argument) {
    struct listing *listing = argument;
    if (listing->place == 0)
        look_at_list(&(struct look){.count_removals = atomic_load(&closings) == 0}, info, size);
    list(listing, listing->place++ < first_objects ? "start" : "later", info->dlpi_name);
    return 0;
}

struct presence {
    const char *name;
    bool found;
};

static int find_by_name(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    struct presence *presence = argument;
    presence->found = presence->found || strcmp(info->dlpi_name, presence->name) == 0;
    return presence->found;
}

void objects_report_all(struct report *report) {
    struct listing listing = {report, 0};
    dl_iterate_phdr(list_object, &listing);
    const struct r_debug *space = namespaces;
    for (const struct link_map *map; (map = first_apart(&space)) != NULL;) {
        for (; map != NULL; map = map->l_next)
            list(&listing, "apart", map->l_name);
    }
    for (size_t at = 0; at < seen_used; at += strlen(seen + at) + 1) {
        struct presence presence = {seen + at, false};
        dl_iterate_phdr(find_by_name, &presence);
        if (!presence.found)
            list(&listing, "closed", seen + at);
    }
    report_word(report, "unseen");
    report_number(report, unseen + seen_lost);
    report_line(report);
}

void objects_report_strays(struct report *report, uintptr_t provider) {
    struct survey survey = {.report = report};
    if (object_at(provider, &survey.provider))
        dl_iterate_phdr(survey_object, &survey);
    for (size_t at = 0; at < noted_used; at += strlen(noted + at) + 1) {
        report_word(report, noted + at);
        report_line(report);
    }
    report_word(report, "objects");
    report_number(report, survey.objects);
    report_number(report, survey.strays + noted_strays);
    report_line(report);
}

/* --- the next definition --------------------------------------------------------------------------------------- */

struct next {
    const char *name;
    uintptr_t found;
    bool behind; /* past this library */
};

static int find_next(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    static const char here;
    struct next *next = argument;
    struct object object;
    read_object(&object, info);
    if (!next->behind) {
        next->behind = holds(&object, (uintptr_t)&here);
        return 0;
    }
    next->found = definition_of(&object, next->name);
    return next->found != 0;
}

uintptr_t objects_next(const char *name) {
    struct next next = {.name = name};
    dl_iterate_phdr(find_next, &next);
    return next.found;
}
