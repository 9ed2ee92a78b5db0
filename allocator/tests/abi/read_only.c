/* Who can write anywhere in the library does not choose what it calls. What the dynamic linker makes read-only when it loads the library stays
 * so, with the addresses that the library fills in itself; and of what can be written nothing holds an address of code, in a process that
 * has used what is looked up at run time: clocks, C++ operators of the program's, the keeper, a fork, a stack for a report. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../expect.h"
#include "../serving.h"

enum { RANGES_MOST = 256, WORD = sizeof(uintptr_t) };

struct range {
    uintptr_t start, end;
};

static struct {
    uintptr_t base;
    char file[512];
    struct range relro, written; /* relro: its start and end as the program header has them */
} library;

static struct range code[RANGES_MOST];
static size_t codes;

static void add_code(uintptr_t start, uintptr_t bytes) {
    EXPECT(codes < RANGES_MOST, "more than %d pieces of code", RANGES_MOST);
    code[codes++] = (struct range){start, start + bytes};
}

/* In the library code and constants lie in one segment: its sections tell them apart. */
static int note_object(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    bool is_library = strstr(object->dlpi_name, "libfreestone") != NULL;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        struct range range = {object->dlpi_addr + segment->p_vaddr,
                              object->dlpi_addr + segment->p_vaddr + segment->p_memsz};
        if (is_library && segment->p_type == PT_GNU_RELRO) {
            library.relro = range;
        } else if (is_library && segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0) {
            library.written = range;
        } else if (!is_library && segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0) {
            add_code(range.start, segment->p_memsz);
        }
    }
    if (is_library) {
        library.base = object->dlpi_addr;
        snprintf(library.file, sizeof library.file, "%s", object->dlpi_name);
    }
    return 0;
}

static void expect_read_only(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    EXPECT(maps != NULL, "/proc/self/maps cannot be opened");
    char line[512], rights[5];
    bool seen = false;
    for (uintptr_t from, to; fgets(line, sizeof line, maps) != NULL;) {
        EXPECT(sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) == 3, "%s", line);
        if (from < library.relro.end && to > library.relro.start) {
            EXPECT(strchr(rights, 'w') == NULL, "it can be written: %s", line);
            seen = true;
        }
    }
    EXPECT(seen, "it is not mapped");
    fclose(maps);
}

/* -- addresses of code --------------------------------------------------------------------------------------- */

static const unsigned char *image;
static const ElfW(Shdr) * sections;
static unsigned section_count;

static void read_file(void) {
    int file = open(library.file, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    EXPECT(file >= 0 && fstat(file, &facts) == 0, "%s cannot be opened", library.file);
    void *bytes = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    EXPECT(bytes != MAP_FAILED, "%s cannot be mapped", library.file);
    close(file);
    image = bytes;
    const ElfW(Ehdr) *head = bytes;
    sections = (const ElfW(Shdr) *)(image + head->e_shoff);
    section_count = head->e_shnum;
    for (unsigned i = 0; i < section_count; i++) {
        if ((sections[i].sh_flags & SHF_EXECINSTR) != 0) {
            add_code(library.base + sections[i].sh_addr, sections[i].sh_size);
        }
    }
}

static const char *variable_at(uintptr_t address) {
    for (unsigned i = 0; i < section_count; i++) {
        if (sections[i].sh_type != SHT_SYMTAB) {
            continue;
        }
        const ElfW(Sym) *symbols = (const ElfW(Sym) *)(image + sections[i].sh_offset);
        const char *names = (const char *)(image + sections[sections[i].sh_link].sh_offset);
        for (size_t j = 0; j < sections[i].sh_size / sizeof *symbols; j++) {
            if ((symbols[j].st_info & 0xf) == STT_OBJECT &&
                address - library.base - symbols[j].st_value < symbols[j].st_size) {
                return names + symbols[j].st_name;
            }
        }
    }
    return "?";
}

/* memory_hooks.c compares with these, and calls none. Handlers of the program's own stand behind the library's, and are changed at any time. */
static bool is_known(const char *variable) {
    return strcmp(variable, "functions") == 0 || strcmp(variable, "behind_segv") == 0 ||
           strcmp(variable, "behind_bus") == 0;
}

static void expect_no_code(void) {
#if !defined(__x86_64__) /* the linker does not know the size of a page there: the addresses lie with what is written */
    return;
#endif
    unsigned known = 0;
    for (uintptr_t at = library.relro.end & ~(uintptr_t)(WORD - 1); at + WORD <= library.written.end; at += WORD) {
        uintptr_t word = *(const uintptr_t *)at;
        for (size_t i = 0; i < codes; i++) {
            if (word - code[i].start < code[i].end - code[i].start) {
                const char *variable = variable_at(at);
                EXPECT(is_known(variable), "%s can be written, and holds %#" PRIxPTR ", an address of code", variable,
                       word);
                known++;
            }
        }
    }
    EXPECT(known > 0, "of %zu pieces of code none is found where the known addresses are", codes);
}

/* -- a process that has used everything ----------------------------------------------------------------------- */

/* The program's operator new: the library's for arrays calls it. */
void *_Znwm(size_t size) __attribute__((visibility("default")));
void *_Znwm(size_t size) { return malloc(size); }
extern void *_Znam(size_t size) __attribute__((weak));
extern void _ZdaPv(void *block) __attribute__((weak));

static void handle(int number) { (void)number; }

static void *work(void *unused) {
    (void)unused;
    enum { BLOCKS = 64, BYTES = 1 << 20 };
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        EXPECT(blocks[i] != NULL, "no memory");
        memset(blocks[i], 1, BYTES);
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    return NULL;
}

static void use_everything(void) {
    pthread_t thread;
    for (int i = 0; i < 3; i++) {
        EXPECT(pthread_create(&thread, NULL, work, NULL) == 0 && pthread_join(thread, NULL) == 0, "no thread");
    }
    (void)signal(SIGSEGV, handle);
    (void)dlopen("libm.so.6", RTLD_NOW);
    if (_Znam != NULL && _ZdaPv != NULL) {
        _ZdaPv(_Znam(100));
    }
    pid_t child = fork();
    EXPECT(child >= 0, "no fork");
    if (child == 0) {
        free(malloc(100));
        expect_no_code();
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with %#x", (unsigned)status);
}

int main(void) {
    require_serving();
    (void)dl_iterate_phdr(note_object, NULL);
    EXPECT(library.relro.end > library.relro.start, "the library has nothing that is made read-only");
    read_file();
    use_everything();
    expect_read_only();
    expect_no_code();
    return 0;
}
