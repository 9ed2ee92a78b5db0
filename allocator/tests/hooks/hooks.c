#include "hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "expect.h"

atomic_ulong hooks_seen[HOOKS];

static hook_decision *decide_call; /* NULL before hooks are installed */

static int decide(enum hook hook, void *at, size_t bytes) {
    if (decide_call == NULL) {
        return 0;
    }
    atomic_fetch_add(&hooks_seen[hook], 1);
    int answer = decide_call(hook, at, bytes);
    errno = answer > 0 ? answer : EXDEV; /* errno is the hook's */
    return answer;
}

int hooks_munmap(void *at, size_t bytes) {
    int answer = decide(HOOK_MUNMAP, at, bytes);
    return answer == 0 ? (int)syscall(SYS_munmap, at, bytes) : answer == HOOK_LIES ? 0 : -1;
}

int hooks_madvise(void *at, size_t bytes, int advice) {
    int answer = advice == MADV_DONTNEED ? decide(HOOK_MADVISE, at, bytes) : 0;
    return answer == 0 ? (int)syscall(SYS_madvise, at, bytes, advice) : answer == HOOK_LIES ? 0 : -1;
}

void *hooks_mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, void *to) {
    int answer = decide(HOOK_MREMAP, at, old_bytes);
    /* A move can only be made or refused. */
    return answer == 0 ? (void *)syscall(SYS_mremap, at, old_bytes, new_bytes, flags, to) : MAP_FAILED;
}

static const struct {
    const char *name;
    uintptr_t hook;
} functions[HOOKS] = {
    {"munmap", (uintptr_t)hooks_munmap},
    {"madvise", (uintptr_t)hooks_madvise},
    {"mremap", (uintptr_t)hooks_mremap},
};

static void make_writable(uintptr_t at, size_t bytes, int protection) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = at & ~(page - 1);
    if (syscall(SYS_mprotect, start, at + bytes - start, protection) != 0) {
        expect_skip("what is to be patched cannot be made writable");
    }
}

/* -- patch --------------------------------------------------------------------------------------------------- */

static void patch(unsigned char *function, uintptr_t hook) {
#if defined(__x86_64__)
    unsigned char jump[13] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3}; /* movabs $hook, %r11; jmp *%r11 */
    memcpy(jump + 2, &hook, sizeof hook);
#elif defined(__aarch64__)
    unsigned char jump[16] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6}; /* ldr x16, .+8; br x16 */
    memcpy(jump + 8, &hook, sizeof hook);
#else
    unsigned char jump[1];
    (void)hook;
    expect_skip("no jump is known for this processor");
#endif
    make_writable((uintptr_t)function, sizeof jump, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(function, jump, sizeof jump);
    __builtin___clear_cache((char *)function, (char *)function + sizeof jump);
}

static void patch_all(void) {
    for (int i = 0; i < HOOKS; i++) {
        void *function = dlsym(RTLD_DEFAULT, functions[i].name);
        EXPECT(function != NULL, "there is no %s", functions[i].name);
        patch(function, functions[i].hook);
    }
}

/* -- slots --------------------------------------------------------------------------------------------------- */

static uintptr_t value_of(const struct dl_phdr_info *object, const ElfW(Dyn) * entry, ElfW(Sxword) tag) {
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == tag) {
            return entry->d_un.d_val;
        }
    }
    (void)object;
    return 0;
}

static uintptr_t address_of(const struct dl_phdr_info *object, const ElfW(Dyn) * entry, ElfW(Sxword) tag) {
    uintptr_t value = value_of(object, entry, tag);
    return value < object->dlpi_addr ? value + object->dlpi_addr : value; /* musl adds no base */
}

/* Only those of calls (DT_JMPREL), as libfabric does. */
static int change_slots(struct dl_phdr_info *object, size_t size, void *argument) {
    (void)size;
    uintptr_t within = (uintptr_t)argument;
    const ElfW(Dyn) *dynamic = NULL;
    bool is_it = false;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr;
        is_it |= part->p_type == PT_LOAD && within - start < part->p_memsz;
        dynamic = part->p_type == PT_DYNAMIC ? (const ElfW(Dyn) *)start : dynamic;
    }
    if (!is_it || dynamic == NULL) {
        return 0;
    }
    const ElfW(Rela) *calls = (const ElfW(Rela) *)address_of(object, dynamic, DT_JMPREL);
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)address_of(object, dynamic, DT_SYMTAB);
    const char *names = (const char *)address_of(object, dynamic, DT_STRTAB);
    int changed = 0;
    for (size_t i = 0; i < value_of(object, dynamic, DT_PLTRELSZ) / sizeof *calls; i++) {
        const char *name = names + symbols[calls[i].r_info >> 32].st_name;
        for (int hook = 0; hook < HOOKS; hook++) {
            if (strcmp(name, functions[hook].name) == 0) {
                uintptr_t slot = object->dlpi_addr + calls[i].r_offset;
                make_writable(slot, sizeof slot, PROT_READ | PROT_WRITE);
                __atomic_store_n((uintptr_t *)slot, functions[hook].hook, __ATOMIC_RELAXED);
                changed++;
            }
        }
    }
    EXPECT(changed == HOOKS, "%d of %d functions are called by a table", changed, HOOKS);
    return 1;
}

void hooks_install(const char *how, hook_decision *decision) {
    decide_call = decision;
    if (strcmp(how, "patch") == 0) {
        patch_all();
    } else if (strcmp(how, "slots") == 0) {
        EXPECT(dl_iterate_phdr(change_slots, dlsym(RTLD_DEFAULT, "malloc")) == 1, "no object has malloc");
    } else {
        EXPECT(strcmp(how, "own") == 0, "hooks are installed how? %s", how);
    }
}
