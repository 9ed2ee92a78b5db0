#include "elf_symbols.h"

bool elf_is_same(const char *a, const char *b) {
    while (*a == *b && *a != '\0') {
        a++;
        b++;
    }
    return *a == *b;
}

/* -- the file's header --------------------------------------------------------------------------------------- */

struct elf_object elf_object_at(uintptr_t header) {
    const ElfW(Ehdr) *file = (const ElfW(Ehdr) *)header;
    const ElfW(Phdr) *parts = (const ElfW(Phdr) *)(header + file->e_phoff);
    struct elf_object object = {0};
    uintptr_t dynamic = 0;
    bool is_loaded = false;
    for (unsigned i = 0; i < file->e_phnum; i++) {
        if (parts[i].p_type == PT_LOAD && !is_loaded) { /* the first */
            object.base = header + parts[i].p_offset - parts[i].p_vaddr;
            is_loaded = true;
        }
        dynamic = parts[i].p_type == PT_DYNAMIC ? parts[i].p_vaddr : dynamic;
    }
    object.dynamic = is_loaded && dynamic != 0 ? (const ElfW(Dyn) *)(object.base + dynamic) : NULL;
    return object;
}

/* -- a dynamic section --------------------------------------------------------------------------------------- */

/* glibc has added the base to its addresses unless the section is read-only (the vDSO's, and all on some machines); musl has not. An address that has
 * been moved lies near the section, as the whole object does: code reaches 2 GiB far. The base is "negative" if the object lies lower than it was linked
 * for. */
static const void *pointer_in(struct elf_object object, ElfW(Addr) value) {
    bool is_moved = false;
#ifdef __GLIBC__
    const uintptr_t reach = (uintptr_t)1 << 31;
    is_moved = value - (uintptr_t)object.dynamic + reach < 2 * reach;
#endif
    return (const void *)(is_moved ? value : object.base + value);
}

const ElfW(Dyn) * elf_entry(struct elf_object object, ElfW(Sxword) tag) {
    const ElfW(Dyn) *entry = object.dynamic;
    while (entry != NULL && entry->d_tag != DT_NULL && entry->d_tag != tag) {
        entry++;
    }
    return entry == NULL || entry->d_tag == DT_NULL ? NULL : entry;
}

const void *elf_table(struct elf_object object, ElfW(Sxword) tag) {
    const ElfW(Dyn) *entry = elf_entry(object, tag);
    return entry == NULL ? NULL : pointer_in(object, entry->d_un.d_ptr);
}

/* -- a function ---------------------------------------------------------------------------------------------- */

struct symbols {
    const ElfW(Sym) * table;
    const char *names;
    const uint16_t *versions; /* NULL where there are none */
    const uint32_t *by_gnu_hash, *by_hash;
};

static const void *placed(struct elf_object object, const void *value) {
    return value == NULL ? NULL : pointer_in(object, (ElfW(Addr))value);
}

static struct symbols symbols_of(struct elf_object object) {
    const void *tables[DT_SYMTAB + 1] = {NULL}, *by_gnu_hash = NULL, *versions = NULL;
    for (const ElfW(Dyn) *entry = object.dynamic; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag <= DT_SYMTAB) { /* the names and DT_HASH too */
            tables[entry->d_tag] = (const void *)entry->d_un.d_ptr;
        } else if (entry->d_tag == DT_GNU_HASH) {
            by_gnu_hash = (const void *)entry->d_un.d_ptr;
        } else if (entry->d_tag == DT_VERSYM) {
            versions = (const void *)entry->d_un.d_ptr;
        }
    }
    return (struct symbols){
        .table = placed(object, tables[DT_SYMTAB]),
        .names = placed(object, tables[DT_STRTAB]),
        .versions = placed(object, versions),
        .by_gnu_hash = placed(object, by_gnu_hash),
        .by_hash = placed(object, tables[DT_HASH]),
    };
}

/* In its default version: others are kept for what was linked to them earlier. */
static bool defines(const struct symbols *symbols, uint32_t number, const char *name) {
    enum { HIDDEN = 0x8000 };
    const ElfW(Sym) *symbol = &symbols->table[number];
    bool is_default = symbols->versions == NULL || (symbols->versions[number] & HIDDEN) == 0;
    return is_default && symbol->st_shndx != SHN_UNDEF && (symbol->st_info & 0xf) == STT_FUNC &&
           elf_is_same(symbols->names + symbol->st_name, name);
}

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name != '\0'; name++) {
        hash = hash * 33 + (unsigned char)*name;
    }
    return hash;
}

/* The number of the symbol, 0 when there is none. The table: buckets, first number, words of the filter, its shift; the filter, in which two bits
 * are set for each name; for each bucket its first number; for each number its hash, of which the lowest bit ends a bucket. */
static uint32_t find_by_gnu_hash(const struct symbols *symbols, const char *name, uint32_t hash) {
    enum { BITS = 8 * sizeof(ElfW(Addr)) };
    const uint32_t *table = symbols->by_gnu_hash;
    uint32_t buckets = table[0], first = table[1], words = table[2];
    const ElfW(Addr) *filter = (const ElfW(Addr) *)(table + 4);
    const uint32_t *bucket = (const uint32_t *)(filter + words);
    const uint32_t *chain = bucket + buckets;
    ElfW(Addr) word = filter[hash / BITS & (words - 1)];
    if ((word >> hash % BITS & word >> (hash >> table[3]) % BITS & 1) == 0) {
        return 0;
    }
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

void elf_search_begin(struct elf_search *search, const char *const *names, void **found, unsigned count) {
    search->names = names;
    search->found = found;
    search->count = count;
    search->is_other = false;
    search->others = 0;
    for (unsigned i = 0; i < count; i++) {
        search->hashes[i] = hash_of(names[i]);
    }
}

void elf_search_in(struct elf_object object, struct elf_search *search) {
    struct symbols symbols = symbols_of(object);
    bool has_table = symbols.table != NULL && symbols.names != NULL;
    for (unsigned i = 0; has_table && i < search->count; i++) {
        uint32_t number = 0;
        if (search->found[i] != NULL) {
            continue;
        }
        if (symbols.by_gnu_hash != NULL) {
            number = find_by_gnu_hash(&symbols, search->names[i], search->hashes[i]);
        } else if (symbols.by_hash != NULL) {
            number = find_one_by_one(symbols.by_hash, &symbols, search->names[i]);
        }
        if (number != 0) {
            search->found[i] = (void *)(object.base + symbols.table[number].st_value);
            search->others |= (uint32_t)search->is_other << i;
        }
    }
}

void *elf_function_in(struct elf_object object, const char *name) {
    struct elf_search search;
    void *found = NULL;
    elf_search_begin(&search, &name, &found, 1);
    elf_search_in(object, &search);
    return found;
}

/* -- what it calls ------------------------------------------------------------------------------------------- */

/* The entries of a table that have symbols. Machines whose tables have entries of another kind are left out. */
struct slots {
    const ElfW(Rela) * at, *end;
};

static struct slots slots_of(struct elf_object object, bool of_plt) {
    const ElfW(Rela) *at = elf_table(object, of_plt ? DT_JMPREL : DT_RELA);
    const ElfW(Dyn) *bytes = elf_entry(object, of_plt ? DT_PLTRELSZ : DT_RELASZ);
    const ElfW(Dyn) *kind = elf_entry(object, DT_PLTREL);
    bool none = at == NULL || bytes == NULL || (of_plt && (kind == NULL || kind->d_un.d_val != DT_RELA));
    return none ? (struct slots){NULL, NULL} : (struct slots){at, at + bytes->d_un.d_val / sizeof *at};
}

static size_t symbol_of(const ElfW(Rela) * slot) { return slot->r_info >> 32; } /* ELF64_R_SYM */

static void *const *slot_in(struct elf_object object, bool of_plt, const char *name) {
    struct slots slots = slots_of(object, of_plt);
    struct symbols symbols = symbols_of(object);
    for (; slots.at != slots.end && symbols.table != NULL && symbols.names != NULL; slots.at++) {
        size_t symbol = symbol_of(slots.at);
        if (symbol != 0 && elf_is_same(symbols.names + symbols.table[symbol].st_name, name)) {
            return (void *const *)(object.base + slots.at->r_offset);
        }
    }
    return NULL;
}

void *const *elf_slot_in(struct elf_object object, const char *name) {
    void *const *slot = slot_in(object, true, name);
    return slot != NULL ? slot : slot_in(object, false, name);
}

void elf_for_each_slot(struct elf_object object, int (*look)(void *held, void *argument), void *argument) {
    int end = 0;
    for (unsigned of_plt = 0; of_plt < 2; of_plt++) {
        for (struct slots slots = slots_of(object, of_plt != 0); slots.at != slots.end && end == 0; slots.at++) {
            uintptr_t slot = object.base + slots.at->r_offset;
            bool is_named = symbol_of(slots.at) != 0 && slot % sizeof(void *) == 0;
            end = is_named ? look(*(void *const *)slot, argument) : 0;
        }
    }
}

/* -- a symbol ------------------------------------------------------------------------------------------------ */

/* By the newer table the last one is found at the end of the chain that begins last. */
static uint32_t count_by_gnu_hash(const uint32_t *table) {
    uint32_t buckets = table[0], first = table[1], words = table[2], last = 0;
    const uint32_t *bucket = table + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++) {
        last = bucket[i] > last ? bucket[i] : last;
    }
    if (last < first) {
        return 0;
    }
    while ((chain[last - first] & 1) == 0) {
        last++;
    }
    return last + 1;
}

const char *elf_symbol_at(struct elf_object object, uintptr_t address, uintptr_t *start) {
    const ElfW(Sym) *table = elf_table(object, DT_SYMTAB);
    const char *names = elf_table(object, DT_STRTAB), *found = NULL;
    const uint32_t *by_gnu_hash = elf_table(object, DT_GNU_HASH), *by_hash = elf_table(object, DT_HASH);
    uint32_t count = by_gnu_hash != NULL ? count_by_gnu_hash(by_gnu_hash) : by_hash != NULL ? by_hash[1] : 0;
    *start = 0;
    for (uint32_t number = 1; table != NULL && names != NULL && number < count; number++) {
        const ElfW(Sym) *symbol = &table[number];
        uintptr_t its_start = object.base + symbol->st_value;
        bool is_code = (symbol->st_info & 0xf) == STT_FUNC || (symbol->st_info & 0xf) == STT_GNU_IFUNC;
        if (is_code && symbol->st_shndx != SHN_UNDEF && its_start >= *start && address - its_start < symbol->st_size) {
            *start = its_start;
            found = names + symbol->st_name;
        }
    }
    return found;
}
