/* Writing a report: text collected in a buffer on the caller's stack, one line per fact, sent out in one write, or in
 * several where the buffer is too small.
 *
 * Nothing here allocates, uses stdio, or keeps a descriptor open: the program may have closed, replaced or counted its
 * descriptors. A path may hold any byte, so '%', spaces' neighbours (control characters) and newlines are written %XX. */
#ifndef FREESTONE_WITNESS_REPORT_H
#define FREESTONE_WITNESS_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report {
    char *text;
    size_t used, size;
    const char *path; /* the file that it goes to; NULL: text alone */
    bool create;      /* the file must not exist, and is created */
    bool cut;         /* something did not fit the text */
    bool failed;      /* the file could not hold it all, and holds none of it */
    uint64_t from;    /* where in the file it begins, once something of it was sent */
    bool begun;       /* whether something was */
};

void report_word(struct report *report, const char *word);  /* as it is, followed by a space */
void report_number(struct report *report, uint64_t number); /* decimal, followed by a space */
void report_hex(struct report *report, const unsigned char *bytes, size_t count); /* or "-" for none; and a space */
void report_path(struct report *report, const char *path); /* escaped; followed by a space */
void report_line(struct report *report); /* ends the line */

/* Appends what is still in the buffer to the file. What the file cannot take (the program limits the size of its files,
 * the disk is full) takes back the whole report: the file is then as long as it was before. */
void report_send(struct report *report);

#endif
