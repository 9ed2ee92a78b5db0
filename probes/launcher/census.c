#include "census.h"

#include <stdlib.h>
#include <string.h>

struct event {
    uint64_t at_ns;
    uint64_t order; /* of arrival: what one CPU says at one instant stays in its order */
    pid_t pid, parent;
    enum census_event_kind kind;
    const char *text;
};

/* Paths repeat (every shell, every library), so each is kept once. Open addressing, at most half full. */
struct names {
    char **slots;
    size_t count, capacity;
};

struct census {
    const char *source;
    const char *reason; /* why it is incomplete; NULL: complete */
    struct event *events;
    size_t count, capacity;
    struct names names;
};

struct census *census_new(const char *source) {
    struct census *census = calloc(1, sizeof *census);
    if (census != NULL)
        census->source = source;
    return census;
}

void census_incomplete(struct census *census, const char *reason) {
    if (census->reason == NULL)
        census->reason = reason;
}

static size_t hash(const char *text) {
    uint64_t h = 14695981039346656037u; /* FNV-1a, 64 bits */
    for (const unsigned char *s = (const unsigned char *)text; *s != '\0'; s++)
        h = (h ^ *s) * 1099511628211u;
    return (size_t)h;
}

static char **slot_for(struct names *names, const char *text) {
    size_t i = hash(text) & (names->capacity - 1);
    while (names->slots[i] != NULL && strcmp(names->slots[i], text) != 0)
        i = (i + 1) & (names->capacity - 1);
    return &names->slots[i];
}

static const char *intern(struct names *names, const char *text) {
    if (names->count * 2 >= names->capacity) {
        struct names grown = {NULL, names->count, names->capacity == 0 ? 256 : names->capacity * 2};
        grown.slots = calloc(grown.capacity, sizeof *grown.slots);
        if (grown.slots == NULL)
            return NULL;
        for (size_t i = 0; i < names->capacity; i++) {
            if (names->slots[i] != NULL)
                *slot_for(&grown, names->slots[i]) = names->slots[i];
        }
        free(names->slots);
        *names = grown;
    }
    char **slot = slot_for(names, text);
    if (*slot == NULL) {
        *slot = strdup(text);
        names->count += *slot != NULL;
    }
    return *slot;
}

void census_add(struct census *census, enum census_event_kind kind, uint64_t at_ns, pid_t pid, pid_t parent,
                const char *text) {
    if (census->count == census->capacity) {
        const size_t capacity = census->capacity == 0 ? 256 : census->capacity * 2;
        struct event *events = realloc(census->events, capacity * sizeof *events);
        if (events == NULL) {
            census_incomplete(census, "no memory for more events");
            return;
        }
        census->events = events;
        census->capacity = capacity;
    }
    const char *kept = text == NULL ? NULL : intern(&census->names, text);
    if (text != NULL && kept == NULL)
        census_incomplete(census, "no memory for more names");
    census->events[census->count] = (struct event){at_ns, census->count, pid, parent, kind, kept};
    census->count++;
}

static int by_time(const void *a, const void *b) {
    const struct event *left = a, *right = b;
    if (left->at_ns != right->at_ns)
        return left->at_ns < right->at_ns ? -1 : 1;
    return left->order < right->order ? -1 : left->order > right->order;
}

/* Each pid's latest exec that still lacks its program's path, as index + 1 into the events. */
struct pending {
    pid_t pid;
    size_t exec;
};

static struct pending *pending_for(struct pending *table, size_t capacity, pid_t pid) {
    size_t i = ((size_t)pid * 0x9E3779B97F4A7C15u) & (capacity - 1);
    while (table[i].pid != 0 && table[i].pid != pid)
        i = (i + 1) & (capacity - 1);
    table[i].pid = pid;
    return &table[i];
}

/* Gives every exec the path of the first executable file mapped after it: `paths[i]` belongs to event i. */
static bool resolve_programs(const struct census *census, const char **paths) {
    size_t capacity = 64;
    while (capacity < census->count * 2 + 2)
        capacity *= 2;
    struct pending *table = calloc(capacity, sizeof *table);
    if (table == NULL)
        return false;
    for (size_t i = 0; i < census->count; i++) {
        const struct event *event = &census->events[i];
        if (event->kind == CENSUS_FORK)
            continue;
        struct pending *pending = pending_for(table, capacity, event->pid);
        if (event->kind == CENSUS_EXEC) {
            pending->exec = i + 1;
        } else if (event->kind == CENSUS_IMAGE && pending->exec != 0) {
            paths[pending->exec - 1] = event->text;
            pending->exec = 0;
        } else if (event->kind == CENSUS_EXIT) {
            pending->exec = 0;
        }
    }
    free(table);
    return true;
}

static void write_events(struct census *census, struct json *json) {
    qsort(census->events, census->count, sizeof *census->events, by_time);
    const char **paths = calloc(census->count + 1, sizeof *paths);
    if (paths == NULL || !resolve_programs(census, paths))
        census_incomplete(census, "no memory to resolve programs");
    json_open(json, "events", '[');
    for (size_t i = 0; i < census->count; i++) {
        static const char *const words[] = {[CENSUS_FORK] = "fork", [CENSUS_EXEC] = "exec", [CENSUS_EXIT] = "exit"};
        const struct event *event = &census->events[i];
        if (event->kind == CENSUS_IMAGE)
            continue;
        json_open(json, NULL, '[');
        json_text(json, NULL, words[event->kind]);
        json_seconds(json, NULL, event->at_ns);
        json_integer(json, NULL, event->pid);
        if (event->kind == CENSUS_FORK)
            json_integer(json, NULL, event->parent);
        if (event->kind == CENSUS_EXEC) {
            json_text(json, NULL, event->text);
            json_text(json, NULL, paths == NULL ? NULL : paths[i]);
        }
        json_close(json, ']');
    }
    json_close(json, ']');
    free(paths);
}

static int by_address(const void *a, const void *b) {
    const uintptr_t left = (uintptr_t)*(const char *const *)a, right = (uintptr_t)*(const char *const *)b;
    return left < right ? -1 : left > right;
}

/* Every file that was ever mapped as code, once: names are kept once, so equal names are equal addresses. */
static void write_files(struct census *census, struct json *json) {
    const char **files = calloc(census->count + 1, sizeof *files);
    size_t count = 0;
    if (files == NULL)
        census_incomplete(census, "no memory for the names of mapped files");
    for (size_t i = 0; files != NULL && i < census->count; i++) {
        if (census->events[i].kind == CENSUS_IMAGE && census->events[i].text != NULL)
            files[count++] = census->events[i].text;
    }
    if (files != NULL)
        qsort(files, count, sizeof *files, by_address);
    json_open(json, "files", '[');
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || files[i] != files[i - 1])
            json_text(json, NULL, files[i]);
    }
    json_close(json, ']');
    free(files);
}

void census_write(struct census *census, const char *refusal, struct json *json) {
    json_open(json, "census", '{');
    json_text(json, "source", census == NULL ? "none" : census->source);
    if (census != NULL) {
        write_events(census, json);
        write_files(census, json);
    }
    json_bool(json, "complete", census != NULL && census->reason == NULL);
    json_text(json, "reason", census == NULL ? refusal : census->reason);
    json_close(json, '}');
}
