#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's set of signals, which is not libc's: 64 bits. */
static uint64_t only(int number) { return (uint64_t)1 << (number - 1); }

/* A write behind the program's own limit on the size of files (RLIMIT_FSIZE) fails, and sends SIGXFSZ to the thread
 * that wrote, which ends a program by default. The signal is the witness's doing, so it is held back meanwhile and
 * taken out. One that was waiting before is the program's, and stays. */
static bool write_all(long descriptor, const char *text, size_t size) {
    const uint64_t excess = only(SIGXFSZ);
    const long now[2] = {0, 0}; /* a timespec of the kernel's */
    uint64_t before = 0, waiting = 0;
    const bool held = syscall(SYS_rt_sigprocmask, SIG_BLOCK, &excess, &before, sizeof excess) == 0;
    syscall(SYS_rt_sigpending, &waiting, sizeof waiting);
    size_t sent = 0;
    while (sent < size) {
        const long done = syscall(SYS_write, descriptor, text + sent, size - sent);
        if (done < 0 && errno == EFBIG && held && (waiting & excess) == 0)
            syscall(SYS_rt_sigtimedwait, &excess, NULL, now, sizeof excess);
        if (done <= 0)
            break;
        sent += (size_t)done;
    }
    if (held)
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    return sent == size;
}

/* Plain system calls: open and write may be wrapped by the program or by another preload. */
void report_send(struct report *report) {
    if (report->failed) {
        report->used = 0;
        return;
    }
    const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (report->create ? O_CREAT | O_EXCL : 0);
    const long descriptor = syscall(SYS_openat, AT_FDCWD, report->path, flags, 0644);
    if (descriptor < 0)
        return; /* the image then counts as unseen, which is the truth about it */
    report->create = false;
    if (!report->begun) {
        const long end = syscall(SYS_lseek, descriptor, 0, SEEK_END);
        report->from = end < 0 ? 0 : (uint64_t)end;
        report->begun = true;
    }
    if (!write_all(descriptor, report->text, report->used)) {
        report->failed = true;
        syscall(SYS_ftruncate, descriptor, (long)report->from);
    }
    syscall(SYS_close, descriptor);
    report->used = 0;
}

static void put(struct report *report, char byte) {
    if (report->used == report->size && report->path != NULL)
        report_send(report);
    if (report->used < report->size)
        report->text[report->used++] = byte;
    else
        report->cut = true;
}

void report_word(struct report *report, const char *word) {
    while (*word != '\0')
        put(report, *word++);
    put(report, ' ');
}

void report_number(struct report *report, uint64_t number) {
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0)
        put(report, digits[--count]);
    put(report, ' ');
}

static void put_hex(struct report *report, unsigned char byte) {
    static const char digits[] = "0123456789abcdef";
    put(report, digits[byte >> 4]);
    put(report, digits[byte & 15]);
}

void report_hex(struct report *report, const unsigned char *bytes, size_t count) {
    if (count == 0)
        put(report, '-');
    for (size_t i = 0; i < count; i++)
        put_hex(report, bytes[i]);
    put(report, ' ');
}

void report_path(struct report *report, const char *path) {
    for (const unsigned char *s = (const unsigned char *)path; *s != '\0'; s++) {
        if (*s <= 0x20 || *s == '%' || *s == 0x7F) {
            put(report, '%');
            put_hex(report, *s);
        } else {
            put(report, (char)*s);
        }
    }
    put(report, ' ');
}

void report_line(struct report *report) {
    if (report->used > 0 && report->text[report->used - 1] == ' ')
        report->used--;
    put(report, '\n');
}
