#include "text.h"

static void add_one(struct text *text, char one) {
    if (text->length + 1 < text->size) {
        text->to[text->length] = one;
    }
    text->length++;
}

static void terminate(struct text *text) {
    if (text->size > 0) {
        text->to[bits_min(text->length, text->size - 1)] = '\0';
    }
}

void text_add(struct text *text, const char *more) {
    while (*more != '\0') {
        add_one(text, *more++);
    }
    terminate(text);
}

static void digits(struct text *text, uint64_t value, unsigned base) {
    char reversed[20];
    unsigned count = 0;
    do {
        reversed[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value > 0);
    while (count > 0) {
        add_one(text, reversed[--count]);
    }
    terminate(text);
}

void text_decimal(struct text *text, uint64_t value) { digits(text, value, 10); }

void text_hexadecimal(struct text *text, uint64_t value) { digits(text, value, 16); }
