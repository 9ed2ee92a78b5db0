/* The shared library as a file: what the dynamic linker demands of a process that loads it.
 *
 * It links nothing but libc; it exports the documented surface and nothing else, since every further name may
 * collide with a program's own; its thread-local block leaves half of what glibc sets aside for late dlopens
 * (1664 bytes, its rtld.optional_static_tls and what it counts on for other namespaces); no executable stack, no text relocations; what the
 * dynamic linker has bound is read-only, with the addresses that the library fills in itself, and returns may be checked. */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "expect.h"

static const char *const exported[] = {
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "free_sized",
    "free_aligned_sized",
    "cfree",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "malloc_trim",
    "mallopt",
    "mallinfo",
    "mallinfo2",
    "malloc_info",
    "malloc_stats",
    /* Before these change who the process is, the keeper ends. */
    "setuid",
    "setgid",
    "seteuid",
    "setegid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "setgroups",
    "initgroups",
    /* These it is not to be in the way of. */
    "pthread_create",
    "_Fork",
    "clone",
    /* Before and after which it is not there, or never again. */
    "capset",
    "prctl",
    "syscall",
    "unshare",
    "setns",
    "close_range",
    /* By which a program sets handlers, behind the library's own. */
    "sigaction",
    "signal",
    "bsd_signal",
    "ssignal",
    "sysv_signal",
    "__sysv_signal",
    "sigset",
    "sigignore",
    /* Without RTLD_DEEPBIND, which goes past every preload. */
    "dlopen",
};

/* Families of names: ours, C++ operators, and libc's own names for the heap entries. */
static const char *const exported_prefixes[] = {"freestone_",      "_Znw", "_Zna", "_Zdl", "_Zda", "__libc_",
                                                "__posix_memalign"};

static const char *const needed_prefixes[] = {"libc.so", "ld-linux", "ld-musl", "libc.musl"};

enum { STATIC_TLS_SHARE = 1664 / 2 };

struct image {
    const unsigned char *bytes;
    size_t size;
    const Elf64_Ehdr *head;
};

static const void *at(const struct image *image, uint64_t offset, uint64_t length) {
    EXPECT(offset <= image->size && length <= image->size - offset, "the file is cut short at %zu bytes", image->size);
    return image->bytes + offset;
}

static const Elf64_Shdr *section(const struct image *image, uint32_t type) {
    const Elf64_Shdr *sections = at(image, image->head->e_shoff, (uint64_t)image->head->e_shnum * sizeof(Elf64_Shdr));
    for (size_t i = 0; i < image->head->e_shnum; i++) {
        if (sections[i].sh_type == type) {
            return &sections[i];
        }
    }
    return NULL;
}

static const char *text_of(const struct image *image, const Elf64_Shdr *from, uint64_t index) {
    const Elf64_Shdr *sections = at(image, image->head->e_shoff, (uint64_t)image->head->e_shnum * sizeof(Elf64_Shdr));
    const Elf64_Shdr *strings = &sections[from->sh_link];
    EXPECT(index < strings->sh_size, "a name lies outside its table");
    return at(image, strings->sh_offset + index, 1);
}

static bool is_among(const char *name, const char *const *names, size_t count, bool as_prefix) {
    for (size_t i = 0; i < count; i++) {
        if (as_prefix ? strncmp(name, names[i], strlen(names[i])) == 0 : strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void check_segments(const struct image *image) {
    const Elf64_Phdr *segments = at(image, image->head->e_phoff, (uint64_t)image->head->e_phnum * sizeof(Elf64_Phdr));
    for (size_t i = 0; i < image->head->e_phnum; i++) {
        if (segments[i].p_type == PT_TLS) {
            EXPECT(segments[i].p_memsz <= STATIC_TLS_SHARE, "the thread-local block takes %zu bytes, more than %d",
                   (size_t)segments[i].p_memsz, STATIC_TLS_SHARE);
        }
        if (segments[i].p_type == PT_GNU_STACK) {
            EXPECT((segments[i].p_flags & PF_X) == 0, "it asks for an executable stack");
        }
        EXPECT(segments[i].p_type != PT_LOAD || (segments[i].p_flags & (PF_W | PF_X)) != (PF_W | PF_X),
               "segment %zu is writable and executable", i);
    }
}

static void check_dynamic(const struct image *image) {
    const Elf64_Shdr *dynamic = section(image, SHT_DYNAMIC);
    EXPECT(dynamic != NULL, "it has no dynamic section");
    const Elf64_Dyn *entries = at(image, dynamic->sh_offset, dynamic->sh_size);
    for (size_t i = 0; i < dynamic->sh_size / sizeof *entries; i++) {
        if (entries[i].d_tag == DT_NEEDED) {
            const char *name = text_of(image, dynamic, entries[i].d_un.d_val);
            EXPECT(is_among(name, needed_prefixes, sizeof needed_prefixes / sizeof *needed_prefixes, true),
                   "it links %s besides libc", name);
        }
        EXPECT(entries[i].d_tag != DT_TEXTREL, "it has text relocations");
    }
}

/* Bound at load, and then read-only. */
static const Elf64_Phdr *relro_of(const struct image *image) {
    const Elf64_Phdr *segments = at(image, image->head->e_phoff, (uint64_t)image->head->e_phnum * sizeof(Elf64_Phdr));
    for (size_t i = 0; i < image->head->e_phnum; i++) {
        if (segments[i].p_type == PT_GNU_RELRO) {
            return &segments[i];
        }
    }
    EXPECT(false, "it has no PT_GNU_RELRO");
    return NULL;
}

static void check_bound_at_load(const struct image *image) {
    const Elf64_Shdr *dynamic = section(image, SHT_DYNAMIC);
    const Elf64_Dyn *entries = at(image, dynamic->sh_offset, dynamic->sh_size);
    bool now = false;
    for (size_t i = 0; i < dynamic->sh_size / sizeof *entries; i++) {
        now |= entries[i].d_tag == DT_BIND_NOW ||
               (entries[i].d_tag == DT_FLAGS && (entries[i].d_un.d_val & DF_BIND_NOW) != 0);
        now |= entries[i].d_tag == DT_FLAGS_1 && (entries[i].d_un.d_val & DF_1_NOW) != 0;
    }
    EXPECT(now, "names are bound when they are called");
}

#if defined(__x86_64__)

/* Addresses of code that are found at run time; not in a library without symbols. read_only.c finds a new one. */
static void check_tables(const struct image *image) {
    const Elf64_Phdr *relro = relro_of(image);
    const Elf64_Shdr *symbols = section(image, SHT_SYMTAB);
    const Elf64_Sym *entries = symbols == NULL ? NULL : at(image, symbols->sh_offset, symbols->sh_size);
    for (size_t i = 1; entries != NULL && i < symbols->sh_size / sizeof *entries; i++) {
        const char *name = text_of(image, symbols, entries[i].st_name);
        static const char *const sealed[] = {"libc_functions", "libc_syscall_function", "libc_others",
                                             "os_vdso_clock",  "elf_find_object",       "in_force"};
        if (is_among(name, sealed, sizeof sealed / sizeof *sealed, false)) {
            EXPECT(entries[i].st_value >= relro->p_vaddr &&
                       entries[i].st_value + entries[i].st_size <= relro->p_vaddr + relro->p_memsz,
                   "%s can be written", name);
        }
    }
}

/* GNU_PROPERTY_X86_FEATURE_1_AND with SHSTK: one library without it, and the process has no shadow stack. */
static void check_returns(const struct image *image) {
    enum { FEATURES = (int)0xc0000002, SHADOW_STACK = 2, HEAD = 16 };
    const Elf64_Phdr *segments = at(image, image->head->e_phoff, (uint64_t)image->head->e_phnum * sizeof(Elf64_Phdr));
    for (size_t i = 0; i < image->head->e_phnum; i++) {
        if (segments[i].p_type == 0x6474e553 /* PT_GNU_PROPERTY */) {
            const unsigned char *note = at(image, segments[i].p_offset, segments[i].p_filesz);
            for (uint64_t place = HEAD; place + 12 <= segments[i].p_filesz;) {
                uint32_t words[3]; /* kind, length, and the first of its data */
                memcpy(words, note + place, sizeof words);
                if ((int)words[0] == FEATURES) {
                    EXPECT((words[2] & SHADOW_STACK) != 0, "it is built without -fcf-protection=return");
                    return;
                }
                place += 8 + (uint64_t)(words[1] + 7) / 8 * 8;
            }
        }
    }
    EXPECT(false, "it does not say that its returns may be checked");
}

#else

static void check_tables(const struct image *image) { (void)relro_of(image); }

static void check_returns(const struct image *image) { (void)image; }

#endif

static void check_exports(const struct image *image) {
    const Elf64_Shdr *symbols = section(image, SHT_DYNSYM);
    EXPECT(symbols != NULL, "it exports nothing");
    const Elf64_Sym *entries = at(image, symbols->sh_offset, symbols->sh_size);
    bool identity = false;
    for (size_t i = 1; i < symbols->sh_size / sizeof *entries; i++) {
        if (entries[i].st_shndx == SHN_UNDEF || ELF64_ST_BIND(entries[i].st_info) == STB_LOCAL) {
            continue; /* another's, or the linker's mark of a section */
        }
        const char *name = text_of(image, symbols, entries[i].st_name);
        identity = identity || strcmp(name, "freestone_identity") == 0;
        EXPECT(is_among(name, exported, sizeof exported / sizeof *exported, false) ||
                   is_among(name, exported_prefixes, sizeof exported_prefixes / sizeof *exported_prefixes, true),
               "it exports %s, which is not part of its surface", name);
    }
    EXPECT(identity, "it does not export freestone_identity");
}

int main(int count, char **arguments) {
    EXPECT(count == 2, "usage: library_shape LIBRARY");
    int file = open(arguments[1], O_RDONLY | O_CLOEXEC);
    EXPECT(file >= 0, "%s cannot be opened", arguments[1]);
    struct stat facts;
    EXPECT(fstat(file, &facts) == 0, "%s cannot be examined", arguments[1]);
    struct image image = {.size = (size_t)facts.st_size};
    void *bytes = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, file, 0);
    EXPECT(bytes != MAP_FAILED, "%s cannot be mapped", arguments[1]);
    image.bytes = bytes;
    image.head = at(&image, 0, sizeof *image.head);
    EXPECT(memcmp(image.head->e_ident, ELFMAG, SELFMAG) == 0 && image.head->e_ident[EI_CLASS] == ELFCLASS64,
           "%s is not a 64-bit ELF file", arguments[1]);
    check_segments(&image);
    check_dynamic(&image);
    check_bound_at_load(&image);
    check_tables(&image);
    check_returns(&image);
    check_exports(&image);
    return 0;
}
