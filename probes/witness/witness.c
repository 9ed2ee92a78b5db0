/* libfreestone-witness.so: says from inside a process who serves its memory.
 *
 * Preloaded into every process of a measured tree, active when FREESTONE_WITNESS names a folder. It defines no function
 * of the heap. One file per program image:
 *
 *   start   before main: the four entry points are called once, then written down with the files that provide them
 *   exit    at exit, quick_exit and _exit: objects bound to somebody else, resident set, every object that was loaded
 *   rested  where FREESTONE_WITNESS_REST names seconds: after them, still before the end, the resident set again
 *   memory  with it: PSS, huge pages and lazily freed memory before those seconds and after them
 *
 * A fork that executes nothing runs on what its image was proved with; it writes a file of its own when it ends, because
 * it may have loaded more. A child that shares its parent's memory (vfork) writes nothing. */
#define _GNU_SOURCE
#include "../counter/counter.h"
#include "../heapwatch/heapwatch.h"
#include "heap.h"
#include "image.h"
#include "objects.h"
#include "report.h"
#include "settings.h"
#include "spent.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FORMAT = 1, REPORT = 12 * 1024, FOLDER = 3840, LONGEST_REST_S = 3600 };

static char folder[FOLDER];
static char start_file[FOLDER + 48];
static uintptr_t provider; /* the address malloc is bound to */
static uint64_t rest_ns;   /* to wait at the end of a process, 0: not at all */
static int first_pid;      /* of the process that ran the constructor; 0: not active */
static uint64_t first_ns;
static int living_pid; /* of this process: a fork's differs from first_pid */
static bool orphaned;  /* a fork of a process with several threads: a lock may have been held by one that is gone */

/* "FOLDER/PID-NANOSECONDS" */
static void name_file(char *path, size_t size, int pid, uint64_t now) {
    struct report name = {.text = path, .size = size - 1};
    report_word(&name, folder);
    name.used--; /* the space behind the word */
    path[name.used++] = '/';
    report_number(&name, (uint64_t)pid);
    path[name.used - 1] = '-';
    report_number(&name, now);
    path[name.used - 1] = '\0';
}

static void report_head(struct report *report, const char *kind, uint64_t now, int pid) {
    report_word(report, kind);
    report_number(report, FORMAT);
    report_number(report, now);
    report_number(report, (uint64_t)pid);
}

static void report_entries(struct report *report) {
    static struct image_mapping mappings[ENTRIES];
    uintptr_t slots[ENTRIES];
    objects_own_slots(heap_entry_names, ENTRIES, slots);
    provider = slots[0];
    for (size_t i = 0; i < ENTRIES; i++)
        mappings[i].address = slots[i];
    image_mappings(mappings, ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++) {
        struct build_id id;
        objects_build_id(slots[i], &id);
        report_word(report, "entry");
        report_word(report, heap_entry_names[i]);
        report_number(report, mappings[i].device_major);
        report_number(report, mappings[i].device_minor);
        report_number(report, mappings[i].inode);
        report_hex(report, id.bytes, id.count);
        report_path(report, mappings[i].path);
        report_line(report);
    }
}

static void report_start(void) {
    char text[REPORT], program[IMAGE_PATH];
    struct report report = {.text = text, .size = sizeof text, .path = start_file, .create = true};
    struct build_id id;
    report_head(&report, "start", first_ns, first_pid);
    report_number(&report, (uint64_t)image_parent());
    report_line(&report);
    image_program(program);
    objects_build_id(0, &id);
    report_word(&report, "program");
    report_hex(&report, id.bytes, id.count);
    report_path(&report, program);
    report_line(&report);
    report_word(&report, heap_call() ? "heap works" : "heap fails");
    report_line(&report);
    report_entries(&report);
    settings_report(&report);
    report_word(&report, "end");
    report_line(&report);
    report_send(&report);
}

static void report_memory(struct report *report, const char *when, const struct image_memory *memory) {
    if (!memory->known)
        return;
    report_word(report, "memory");
    report_word(report, when);
    report_number(report, memory->pss_kib);
    report_number(report, memory->huge_kib);
    report_number(report, memory->lazy_free_kib);
    report_line(report);
}

/* `path` is this process's file, which exists. What the program itself still runs (threads, timers of its
 * allocator) goes on meanwhile; a signal that ends it leaves no line. */
static void rest(const char *path) {
    char text[512];
    struct report report = {.text = text, .size = sizeof text, .path = path};
    const uint64_t from = image_now(), busy = image_thread_ns();
    const struct image_memory before = image_memory();
    image_wait_until(image_now() + rest_ns);
    const struct image_memory after = image_memory();
    const uint64_t resident = image_resident_kib(), spent = image_thread_ns() - busy;
    report_word(&report, "rested");
    report_number(&report, resident);
    report_number(&report, from);
    report_number(&report, image_now());
    report_line(&report);
    report_memory(&report, "end", &before);
    report_memory(&report, "idle", &after);
    report_word(&report, "looked");
    report_number(&report, spent);
    report_line(&report);
    report_send(&report);
}

/* There only where the counter is preloaded as well. */
#pragma weak freestone_counted
#pragma weak freestone_heapwatch_leave

static void report_counted(struct report *report) {
    if (&freestone_counted == NULL)
        return;
    struct counted counted;
    freestone_counted(&counted);
    report_word(report, "counted");
    report_number(report, counted.calls);
    report_number(report, counted.most_bytes / 1024);
    report_number(report, image_private_peak_kib());
    report_line(report);
}

/* `pid` is this process's. Safe in a signal handler and in a fork of a threaded program: nothing shared is written. */
static void report_exit(int pid) {
    char text[REPORT], path[sizeof start_file];
    const uint64_t now = image_now();
    const bool forked = pid != first_pid;
    struct report report = {.text = text, .size = sizeof text, .path = forked ? path : start_file, .create = forked};
    if (forked) {
        name_file(path, sizeof path, pid, now);
        report_head(&report, "fork", now, pid);
        report_number(&report, (uint64_t)image_parent());
        report_number(&report, (uint64_t)first_pid);
        report_number(&report, first_ns);
        report_line(&report);
    }
    report_head(&report, "exit", now, pid);
    report_line(&report);
    report_word(&report, "resident");
    report_number(&report, image_resident_kib());
    report_line(&report);
    spent_report(&report);
    /* The dynamic linker's list of objects has a lock of its own, which fork does not reset. */
    report_counted(&report);
    if (!orphaned) {
        objects_report_strays(&report, provider);
        objects_report_all(&report);
    }
    report_word(&report, "end");
    report_line(&report);
    report_send(&report);
    if (forked && report.failed)
        syscall(SYS_unlinkat, AT_FDCWD, path, 0); /* a fork without last words, as if it had been killed */
    if (!orphaned && &freestone_heapwatch_leave != NULL)
        freestone_heapwatch_leave();
    if (rest_ns != 0)
        rest(forked ? path : start_file);
}

/* Reports the end of this process unless it is a child that shares its parent's memory: such a one was started neither
 * by the dynamic linker nor by fork, so its number is not the one noted here. */
static void take_leave(void) {
    const int pid = first_pid == 0 ? 0 : image_pid();
    if (pid == 0 || pid != living_pid)
        return;
    const int saved = errno;
    report_exit(pid);
    errno = saved;
}

/* glibc's word on whether there was ever a second thread; absent elsewhere, which counts as yes. */
extern __attribute__((weak)) char __libc_single_threaded;

static void before_fork(void) {
    if (&__libc_single_threaded == NULL || !__libc_single_threaded)
        orphaned = true;
}

static void after_fork_in_parent(void) { orphaned = living_pid != first_pid && orphaned; }

static void after_fork_in_child(void) { living_pid = image_pid(); }

/* A number of digits alone, up to `most`; 0 for anything else. */
static uint64_t whole_number(const char *text, uint64_t most) {
    uint64_t number = 0;
    for (; *text >= '0' && *text <= '9' && number <= most; text++)
        number = 10 * number + (uint64_t)(*text - '0');
    return *text == '\0' && number <= most ? number : 0;
}

__attribute__((constructor)) static void witness_start(void) {
    const int saved = errno;
    const char *where = getauxval(AT_SECURE) != 0 ? NULL : getenv("FREESTONE_WITNESS");
    if (where == NULL || where[0] != '/' || strlen(where) >= FOLDER)
        return;
    memcpy(folder, where, strlen(where) + 1);
    const char *seconds = getenv("FREESTONE_WITNESS_REST");
    rest_ns = seconds == NULL ? 0 : whole_number(seconds, LONGEST_REST_S) * 1000000000u;
    first_pid = living_pid = image_pid();
    first_ns = image_now();
    objects_begin();
    name_file(start_file, sizeof start_file, first_pid, first_ns);
    report_start();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    at_quick_exit(take_leave);
    errno = saved;
}

/* dlclose alone is wrapped: whatever an object was opened by, it goes this way, or is still there at the end. dlopen
 * could not be: it asks from where it was called, for the caller's search path and namespace. An audit library would see
 * both, but has a C library of its own in every process and slows every lazily bound call. What calls libc's dlclose
 * past this one (RTLD_DEEPBIND, libc itself for its converters) shows in the dynamic linker's own count. */
__attribute__((visibility("default"))) int dlclose(void *handle) {
    static int (*_Atomic next)(void *);
    int (*close)(void *) = next;
    if (close == NULL)
        next = close = (int (*)(void *))objects_next("dlclose"); /* every thread finds the same */
    if (close == NULL)
        return -1;
    if (first_pid == 0 || orphaned)
        return close(handle);
    objects_before_closing(provider);
    const int result = close(handle);
    objects_after_closing();
    return result;
}

__attribute__((destructor)) static void witness_end(void) { take_leave(); }

/* Some programs (dash among them) leave without running any destructor. The C library's own exit does not come this
 * way. */
static _Noreturn void leave(int status) {
    take_leave();
    for (;;)
        syscall(SYS_exit_group, status);
}

__attribute__((visibility("default"))) _Noreturn void _exit(int status) { leave(status); }

__attribute__((visibility("default"))) _Noreturn void _Exit(int status) { leave(status); }
