/* The part of the call frame information that tells where a return address lies. Source: the DWARF standard, version 5, 6.4; for the entries'
 * heads the Linux Standard Base, Core Specification 5.0, 10.6 (.eh_frame). What is seldom used is not known here. */
#include "trace_return.h"

#include <string.h>

#if defined(__x86_64__)
enum { RETURN_COLUMN = 16, SP_COLUMN = 7, KEPT = 1 << 3 | 1 << 6 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15 };
#elif defined(__aarch64__)
enum { RETURN_COLUMN = 30, SP_COLUMN = 31, KEPT = 0x3FF80000 }; /* x19 to x29 */
#else
enum { RETURN_COLUMN = -1, SP_COLUMN = -1, KEPT = 0 };
#endif

enum { REMEMBERED_MOST = 4, BREG0 = 0x70 };

/* From where the return address is so many bytes away. */
enum base { NOWHERE, FROM_FRAME, FROM_SP };

struct row {
    bool known; /* the frame's address is a register and an offset */
    uint64_t register_number;
    int64_t offset;
    enum base base;
    int64_t return_offset;
};

/* Read from a table; `failed` once it ends too early, or holds what is not known here. */
struct reader {
    const unsigned char *at, *end;
    bool failed;
};

struct walk {
    struct reader reader;
    uint64_t code_unit;
    int64_t data_unit;
    unsigned pointer_bytes; /* of an address in the entry */
    bool has_more; /* heads of entries have a length of what else they hold */
    struct row row, initial, remembered[REMEMBERED_MOST];
    unsigned depth;
};

/* -- reading ----------------------------------------------------------------------------------------------------- */

static uint64_t read_bytes(struct reader *reader, unsigned bytes) {
    uint64_t value = 0;
    if ((size_t)(reader->end - reader->at) < bytes) {
        reader->failed = true;
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++) { /* both machines have the low byte first */
        value |= (uint64_t)reader->at[i] << 8 * i;
    }
    reader->at += bytes;
    return value;
}

/* Seven bits a byte, the low ones first; *bits is how many were read. */
static uint64_t read_leb(struct reader *reader, unsigned *bits) {
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = read_bytes(reader, 1);
        value |= shift < 64 ? (byte & 0x7F) << shift : 0;
        shift += 7;
    } while ((byte & 0x80) != 0 && !reader->failed);
    *bits = shift;
    return value;
}

static uint64_t read_unsigned(struct reader *reader) {
    unsigned bits;
    return read_leb(reader, &bits);
}

static int64_t read_signed(struct reader *reader) {
    unsigned bits;
    uint64_t value = read_leb(reader, &bits);
    return (int64_t)(bits < 64 && (value >> (bits - 1) & 1) != 0 ? value | ~UINT64_C(0) << bits : value);
}

static void skip(struct reader *reader, uint64_t bytes) {
    if ((uint64_t)(reader->end - reader->at) < bytes) {
        reader->failed = true;
    } else {
        reader->at += bytes;
    }
}

/* -- heads of entries ---------------------------------------------------------------------------------------------- */

/* What follows an entry's length. */
static struct reader open_entry(const unsigned char *entry) {
    uint32_t length;
    memcpy(&length, entry, sizeof length);
    struct reader reader = {entry + 4, entry + 4 + length, length == UINT32_MAX}; /* more than that is never used */
    return reader;
}

static unsigned pointer_bytes(unsigned encoding) {
    static const unsigned char bytes[8] = {sizeof(uintptr_t), 0, 2, 4, 8, 0, 0, 0};
    return bytes[encoding & 7];
}

/* The letters after the first one, 'z', say what lies there. */
static void read_letters(struct walk *walk, struct reader *reader, const char *letters) {
    for (; *letters != '\0' && !reader->failed; letters++) {
        if (*letters == 'R') {
            walk->pointer_bytes = pointer_bytes((unsigned)read_bytes(reader, 1));
        } else if (*letters == 'L') {
            skip(reader, 1);
        } else if (*letters == 'P') {
            unsigned bytes = pointer_bytes((unsigned)read_bytes(reader, 1));
            reader->failed |= bytes == 0;
            skip(reader, bytes);
        }
    }
}

/* What entries have in common; afterwards the reader stands before the common instructions. */
static void read_common(struct walk *walk, const unsigned char *entry) {
    struct reader *reader = &walk->reader;
    *reader = open_entry(entry);
    skip(reader, 4);
    unsigned version = (unsigned)read_bytes(reader, 1);
    const char *letters = (const char *)reader->at;
    while (read_bytes(reader, 1) != 0 && !reader->failed) {
    }
    walk->code_unit = read_unsigned(reader);
    walk->data_unit = read_signed(reader);
    uint64_t column = version == 1 ? read_bytes(reader, 1) : read_unsigned(reader);
    reader->failed |= (version != 1 && version != 3) || (int64_t)column != RETURN_COLUMN;
    walk->pointer_bytes = sizeof(uintptr_t);
    walk->has_more = !reader->failed && letters[0] == 'z';
    reader->failed |= !walk->has_more && letters[0] != '\0';
    if (walk->has_more) {
        uint64_t bytes = read_unsigned(reader);
        struct reader more = *reader;
        read_letters(walk, &more, letters + 1);
        skip(reader, bytes);
        reader->failed |= more.failed;
    }
}

/* -- instructions --------------------------------------------------------------------------------------------------- */

static void set_rule(struct walk *walk, uint64_t column, enum base base, int64_t offset) {
    if ((int64_t)column == RETURN_COLUMN) {
        walk->row.base = base;
        walk->row.return_offset = offset;
    }
}

/* An expression; one of them is understood, as the frame of a signal has it: so many bytes from the stack pointer. */
static void read_expression(struct walk *walk, uint64_t column) {
    struct reader *reader = &walk->reader;
    uint64_t bytes = read_unsigned(reader);
    struct reader inner = *reader;
    skip(reader, bytes);
    if (reader->failed) {
        return;
    }
    inner.end = inner.at + bytes;
    bool from_sp = read_bytes(&inner, 1) == BREG0 + SP_COLUMN;
    int64_t offset = read_signed(&inner);
    bool simple = from_sp && !inner.failed && inner.at == inner.end;
    set_rule(walk, column, simple ? FROM_SP : NOWHERE, offset);
}

static void define(struct walk *walk, uint64_t number, int64_t offset) {
    walk->row.known = true;
    walk->row.register_number = number;
    walk->row.offset = offset;
}

/* Those without an operand in their first byte, but for advances. */
static void follow_long(struct walk *walk, unsigned instruction) {
    struct reader *reader = &walk->reader;
    uint64_t column;
    switch (instruction) {
    case 0x00: /* nop */
    case 0x2d: /* window_save; return addresses are signed from here on, or no longer */
        break;
    case 0x05: /* offset_extended */
        column = read_unsigned(reader);
        set_rule(walk, column, FROM_FRAME, (int64_t)read_unsigned(reader) * walk->data_unit);
        break;
    case 0x11: /* offset_extended_sf */
        column = read_unsigned(reader);
        set_rule(walk, column, FROM_FRAME, read_signed(reader) * walk->data_unit);
        break;
    case 0x06: /* restore_extended */
        column = read_unsigned(reader);
        set_rule(walk, column, walk->initial.base, walk->initial.return_offset);
        break;
    case 0x07: /* undefined */
    case 0x08: /* same_value */
        set_rule(walk, read_unsigned(reader), NOWHERE, 0);
        break;
    case 0x09: /* register */
    case 0x14: /* val_offset */
    case 0x15: /* val_offset_sf */
        column = read_unsigned(reader);
        (void)read_unsigned(reader);
        set_rule(walk, column, NOWHERE, 0);
        break;
    case 0x0a: /* remember_state */
        reader->failed |= walk->depth == REMEMBERED_MOST;
        if (!reader->failed) {
            walk->remembered[walk->depth++] = walk->row;
        }
        break;
    case 0x0b: /* restore_state */
        reader->failed |= walk->depth == 0;
        if (!reader->failed) {
            walk->row = walk->remembered[--walk->depth];
        }
        break;
    case 0x0c: /* def_cfa */
        column = read_unsigned(reader);
        define(walk, column, (int64_t)read_unsigned(reader));
        break;
    case 0x12: /* def_cfa_sf */
        column = read_unsigned(reader);
        define(walk, column, read_signed(reader) * walk->data_unit);
        break;
    case 0x0d: /* def_cfa_register */
        walk->row.register_number = read_unsigned(reader);
        break;
    case 0x0e: /* def_cfa_offset */
        walk->row.offset = (int64_t)read_unsigned(reader);
        break;
    case 0x13: /* def_cfa_offset_sf */
        walk->row.offset = read_signed(reader) * walk->data_unit;
        break;
    case 0x0f: /* def_cfa_expression */
        skip(reader, read_unsigned(reader));
        walk->row.known = false;
        break;
    case 0x10: /* expression */
        column = read_unsigned(reader);
        read_expression(walk, column);
        break;
    case 0x16: /* val_expression */
        column = read_unsigned(reader);
        skip(reader, read_unsigned(reader));
        set_rule(walk, column, NOWHERE, 0);
        break;
    case 0x2e: /* GNU_args_size */
        (void)read_unsigned(reader);
        break;
    default:
        reader->failed = true;
    }
}

/* Those up to `at`; `from` is where the first of them holds. */
static void follow(struct walk *walk, uintptr_t from, uintptr_t at) {
    static const unsigned char advance_bytes[5] = {0, 0, 1, 2, 4};
    struct reader *reader = &walk->reader;
    while (!reader->failed && reader->at < reader->end && from <= at) {
        unsigned instruction = (unsigned)read_bytes(reader, 1), operand = instruction & 0x3F;
        if (instruction >> 6 == 1) { /* advance_loc */
            from += operand * walk->code_unit;
        } else if (instruction >> 6 == 2) { /* offset */
            set_rule(walk, operand, FROM_FRAME, (int64_t)read_unsigned(reader) * walk->data_unit);
        } else if (instruction >> 6 == 3) { /* restore */
            set_rule(walk, operand, walk->initial.base, walk->initial.return_offset);
        } else if (instruction >= 2 && instruction <= 4) { /* advance_loc1, 2, 4 */
            from += read_bytes(reader, advance_bytes[instruction]) * walk->code_unit;
        } else {
            follow_long(walk, instruction);
        }
    }
}

/* -- the interface ------------------------------------------------------------------------------------------------- */

static uintptr_t slot_of(const struct row *row, const struct trace_frame *frame) {
    if (row->base == FROM_SP) {
        return frame->sp != 0 ? frame->sp + (uintptr_t)row->return_offset : 0;
    }
    bool kept = row->register_number < 32 && ((unsigned)KEPT >> row->register_number & 1) != 0;
    bool is_sp = (int64_t)row->register_number == SP_COLUMN;
    if (row->base == NOWHERE || !row->known || (!kept && !is_sp) || (is_sp && frame->sp == 0)) {
        return 0;
    }
    uintptr_t value = is_sp ? frame->sp : frame->word(frame->context, (int)row->register_number);
    return value + (uintptr_t)row->offset + (uintptr_t)row->return_offset;
}

uintptr_t trace_return_slot(const struct trace_frame *frame, const void *entry, uintptr_t function) {
    struct walk walk = {0};
    struct reader own = open_entry(entry);
    uint32_t back;
    memcpy(&back, own.at, sizeof back);
    read_common(&walk, own.at - back);
    follow(&walk, 0, 0);
    walk.initial = walk.row;
    unsigned pointers = walk.pointer_bytes;
    bool failed = walk.reader.failed || own.failed || pointers == 0;
    walk.reader = own;
    walk.reader.failed = failed;
    skip(&walk.reader, 4 + 2 * (uint64_t)pointers);
    if (walk.has_more) {
        skip(&walk.reader, read_unsigned(&walk.reader));
    }
    follow(&walk, function, frame->at);
    return walk.reader.failed ? 0 : slot_of(&walk.row, frame);
}
