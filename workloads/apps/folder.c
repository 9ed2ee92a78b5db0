#define _XOPEN_SOURCE 700
#include "folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static char path[512];

const char *folder_make(void) {
    const char *base = getenv("TMPDIR");
    int length = snprintf(path, sizeof path, "%s/freestone-app.XXXXXX", base && *base ? base : "/tmp");
    if (length < 0 || (size_t)length >= sizeof path) {
        fprintf(stderr, "the path of TMPDIR is too long\n");
        exit(1);
    }
    if (mkdtemp(path) == NULL) {
        fprintf(stderr, "cannot make the folder %s: %s\n", path, strerror(errno));
        exit(1);
    }
    return path;
}

static char *filled(const char *word) {
    size_t marks = 0;
    for (const char *at = word; (at = strstr(at, FOLDER_WORD)) != NULL; at += strlen(FOLDER_WORD))
        marks++;
    char *whole = malloc(strlen(word) + marks * strlen(path) + 1);
    if (whole == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    char *to = whole;
    for (const char *from = word;;) {
        const char *mark = strstr(from, FOLDER_WORD);
        if (mark == NULL) {
            memcpy(to, from, strlen(from) + 1);
            return whole;
        }
        memcpy(to, from, (size_t)(mark - from));
        to = stpcpy(to + (mark - from), path);
        from = mark + strlen(FOLDER_WORD);
    }
}

char **folder_filled(char *const *words, int count) {
    char **copy = calloc((size_t)count + 1, sizeof *copy);
    if (copy == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    for (int i = 0; i < count; i++)
        copy[i] = filled(words[i]);
    return copy;
}

static int removed(const char *entry, const struct stat *status, int kind, struct FTW *where) {
    (void)status;
    (void)kind;
    (void)where;
    remove(entry);
    return 0;
}

void folder_remove(void) {
    struct stat there;
    /* What a program that is just being killed still writes is removed by the next try. */
    for (int tries = 0; *path && tries < 20 && stat(path, &there) == 0; tries++) {
        if (tries)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        nftw(path, removed, 16, FTW_DEPTH | FTW_PHYS);
    }
    *path = 0;
}
