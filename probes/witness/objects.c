#define _GNU_SOURCE
#include "objects.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
enum { RELOC_ADDRESS = R_X86_64_64, RELOC_SLOT = R_X86_64_JUMP_SLOT, RELOC_DATA = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { RELOC_ADDRESS = R_AARCH64_ABS64, RELOC_SLOT = R_AARCH64_JUMP_SLOT, RELOC_DATA = R_AARCH64_GLOB_DAT };
#elif defined(__riscv) && __riscv_xlen == 64
enum { RELOC_ADDRESS = R_RISCV_64, RELOC_SLOT = R_RISCV_JUMP_SLOT, RELOC_DATA = R_RISCV_64 };
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

static int survey_object(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    struct survey *survey = argument;
    struct object object;
    read_object(&object, info);
    survey->objects++;
    if (!survey_table(survey, &object, object.slots, object.slot_count))
        survey_table(survey, &object, object.relocations + object.relative_count,
                     object.relocation_count - object.relative_count);
    return 0;
}

void objects_report_strays(struct report *report, uintptr_t provider) {
    struct survey survey = {.report = report};
    if (object_at(provider, &survey.provider))
        dl_iterate_phdr(survey_object, &survey);
    report_word(report, "objects");
    report_number(report, survey.objects);
    report_number(report, survey.strays);
    report_line(report);
}
