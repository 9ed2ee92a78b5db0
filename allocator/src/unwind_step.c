/* Source of the tables: the DWARF standard, version 5, 6.4 and 2.5; for the heads of entries and the table of them the Linux
 * Standard Base, Core Specification 5.0, 10.6 (.eh_frame). Entries with rarely used instructions are not followed. */
#include "unwind_step.h"

#include <string.h>

enum { REMEMBERED_MOST = 3, STACK_MOST = 8 };

/* How the value of a register in the caller is found. */
enum kind { KEPT, UNDEFINED, AT_CFA, IS_CFA, IN_REGISTER, AT_EXPRESSION, IS_EXPRESSION };
struct rule {
    int32_t value; /* an offset, a register, or how far the expression lies from the entry */
    uint8_t kind;
};

/* The canonical frame address (CFA) is a register and an offset, or an expression. */
struct row {
    struct rule cfa; /* IS_EXPRESSION, else the offset */
    uint64_t cfa_register;
    struct rule rules[UNWIND_REGISTERS];
};

/* Read from a table; `failed` once it ends too early, or holds an unknown instruction. */
struct reader {
    const unsigned char *at, *end;
    bool failed;
};

struct walk {
    struct reader reader;
    const unsigned char *entry;
    uint64_t code_unit;
    int64_t data_unit;
    unsigned pointer_bytes; /* of an address in the entry */
    bool has_more; /* heads of entries have a length of what else they hold */
    bool is_signal; /* the caller was interrupted, and has called nothing */
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
    for (unsigned i = 0; i < bytes; i++) { /* every machine here has the low byte first */
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

/* The bytes behind an entry's length. */
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

/* The letters after the first one, 'z', name the fields that follow. */
static void read_letters(struct walk *walk, struct reader *reader, const char *letters) {
    for (; *letters != '\0' && !reader->failed; letters++) {
        if (*letters == 'R') {
            walk->pointer_bytes = pointer_bytes((unsigned)read_bytes(reader, 1));
        } else if (*letters == 'L') {
            skip(reader, 1);
        } else if (*letters == 'S') {
            walk->is_signal = true;
        } else if (*letters == 'P') {
            unsigned bytes = pointer_bytes((unsigned)read_bytes(reader, 1));
            reader->failed |= bytes == 0;
            skip(reader, bytes);
        }
    }
}

/* The head that entries have in common; afterwards the reader stands before its instructions. */
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
    reader->failed |= (version != 1 && version != 3) || column != UNWIND_RETURN;
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

static void set_rule(struct walk *walk, uint64_t column, enum kind kind, int64_t value) {
    if (column < UNWIND_REGISTERS) {
        walk->reader.failed |= value != (int32_t)value;
        walk->row.rules[column] = (struct rule){(int32_t)value, (uint8_t)kind};
    }
}

static void restore_rule(struct walk *walk, uint64_t column) {
    if (column < UNWIND_REGISTERS) {
        walk->row.rules[column] = walk->initial.rules[column];
    }
}

/* Behind its length, which comes first. */
static int64_t read_expression(struct walk *walk) {
    int64_t distance = walk->reader.at - walk->entry;
    skip(&walk->reader, read_unsigned(&walk->reader));
    return distance;
}

static void define(struct walk *walk, uint64_t number, enum kind kind, int64_t value) {
    walk->reader.failed |= value != (int32_t)value;
    walk->row.cfa_register = number;
    walk->row.cfa = (struct rule){(int32_t)value, (uint8_t)kind};
}

/* An offset in units of the entry. */
static int64_t read_offset(struct walk *walk, bool is_signed) {
    int64_t units = is_signed ? read_signed(&walk->reader) : (int64_t)read_unsigned(&walk->reader);
    return units * walk->data_unit;
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
    case 0x11: /* offset_extended_sf */
        column = read_unsigned(reader);
        set_rule(walk, column, AT_CFA, read_offset(walk, instruction == 0x11));
        break;
    case 0x06: /* restore_extended */
        restore_rule(walk, read_unsigned(reader));
        break;
    case 0x07: /* undefined */
        set_rule(walk, read_unsigned(reader), UNDEFINED, 0);
        break;
    case 0x08: /* same_value */
        set_rule(walk, read_unsigned(reader), KEPT, 0);
        break;
    case 0x09: /* register */
        column = read_unsigned(reader);
        set_rule(walk, column, IN_REGISTER, (int64_t)read_unsigned(reader));
        break;
    case 0x14: /* val_offset */
    case 0x15: /* val_offset_sf */
        column = read_unsigned(reader);
        set_rule(walk, column, IS_CFA, read_offset(walk, instruction == 0x15));
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
        define(walk, column, IS_CFA, (int64_t)read_unsigned(reader));
        break;
    case 0x12: /* def_cfa_sf */
        column = read_unsigned(reader);
        define(walk, column, IS_CFA, read_offset(walk, true));
        break;
    case 0x0d: /* def_cfa_register */
        walk->row.cfa_register = read_unsigned(reader);
        break;
    case 0x0e: /* def_cfa_offset */
        define(walk, walk->row.cfa_register, IS_CFA, (int64_t)read_unsigned(reader));
        break;
    case 0x13: /* def_cfa_offset_sf */
        define(walk, walk->row.cfa_register, IS_CFA, read_offset(walk, true));
        break;
    case 0x0f: /* def_cfa_expression */
        define(walk, 0, IS_EXPRESSION, read_expression(walk));
        break;
    case 0x10: /* expression */
        column = read_unsigned(reader);
        set_rule(walk, column, AT_EXPRESSION, read_expression(walk));
        break;
    case 0x16: /* val_expression */
        column = read_unsigned(reader);
        set_rule(walk, column, IS_EXPRESSION, read_expression(walk));
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
            set_rule(walk, operand, AT_CFA, (int64_t)read_unsigned(reader) * walk->data_unit);
        } else if (instruction >> 6 == 3) { /* restore */
            restore_rule(walk, operand);
        } else if (instruction >= 2 && instruction <= 4) { /* advance_loc1, 2, 4 */
            from += read_bytes(reader, advance_bytes[instruction]) * walk->code_unit;
        } else {
            follow_long(walk, instruction);
        }
    }
}

/* -- expressions ---------------------------------------------------------------------------------------------------- */

/* The frame of the callee, and the function that reads its stack. */
struct source {
    const struct unwind_frame *frame;
    unwind_read *read;
    void *context;
    uintptr_t cfa;
};

static bool read_register(const struct source *source, uint64_t number, uintptr_t *value) {
    bool known = number < UNWIND_REGISTERS && source->frame->known[number];
    *value = known ? source->frame->words[number] : 0;
    return known;
}

/* Only the operations in use: in frames of signals, frames that are aligned anew, and linkage tables. */
static bool compute(const struct source *source, struct reader code, uintptr_t *stack, unsigned depth,
                    uintptr_t *value) {
    while (code.at < code.end && !code.failed) {
        unsigned operation = (unsigned)read_bytes(&code, 1);
        uintptr_t *top = stack + depth - 1; /* of two operands the second */
        bool is_push = (operation >= 0x08 && operation <= 0x11) || (operation >= 0x30 && operation <= 0x8f);
        bool takes_two =
            operation >= 0x1a && operation <= 0x2e && operation != 0x1f && operation != 0x20 && operation != 0x23;
        uintptr_t pushed = 0;
        code.failed |= (is_push && depth == STACK_MOST) || (!is_push && depth < (takes_two ? 2u : 1u));
        if (code.failed) {
            return false;
        }
        if (operation >= 0x30 && operation <= 0x4f) { /* lit */
            pushed = operation - 0x30;
        } else if (operation >= 0x70 && operation <= 0x8f) { /* breg */
            code.failed |= !read_register(source, operation - 0x70, &pushed);
            pushed += (uintptr_t)read_signed(&code);
        } else {
            switch (operation) {
            case 0x08: /* const1u */
                pushed = (uintptr_t)read_bytes(&code, 1);
                break;
            case 0x0a: /* const2u */
                pushed = (uintptr_t)read_bytes(&code, 2);
                break;
            case 0x0c: /* const4u */
                pushed = (uintptr_t)read_bytes(&code, 4);
                break;
            case 0x10: /* constu */
                pushed = (uintptr_t)read_unsigned(&code);
                break;
            case 0x11: /* consts */
                pushed = (uintptr_t)read_signed(&code);
                break;
            case 0x06: /* deref */
                code.failed |= !source->read(source->context, *top, top);
                break;
            case 0x23: /* plus_uconst */
                *top += (uintptr_t)read_unsigned(&code);
                break;
            case 0x1a: /* and */
                top[-1] &= *top;
                break;
            case 0x1c: /* minus */
                top[-1] -= *top;
                break;
            case 0x22: /* plus */
                top[-1] += *top;
                break;
            case 0x24: /* shl */
                top[-1] = *top < 64 ? top[-1] << *top : 0;
                break;
            case 0x2a: /* ge */
                top[-1] = (intptr_t)top[-1] >= (intptr_t)*top;
                break;
            default:
                code.failed = true;
            }
        }
        if (is_push) {
            stack[depth] = pushed;
        }
        depth += is_push;
        depth -= takes_two;
    }
    *value = depth > 0 ? stack[depth - 1] : 0;
    return !code.failed && depth > 0;
}

static bool evaluate(const struct walk *walk, const struct source *source, int32_t distance, bool has_cfa,
                     uintptr_t *value) {
    struct reader code = {walk->entry + distance, walk->entry + distance + 10, false};
    uint64_t bytes = read_unsigned(&code);
    code.end = code.at + bytes;
    uintptr_t stack[STACK_MOST] = {source->cfa};
    return compute(source, code, stack, has_cfa, value);
}

/* -- the interface -------------------------------------------------------------------------------------------------- */

static int32_t number_at(const unsigned char *at) {
    int32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

/* The entry that may cover an address, and the start of its function: the last of those that begin at it or before. The
 * table: version, three encodings, where .eh_frame is, how many pairs, and the pairs, sorted, relative to the table. */
static const unsigned char *find_entry(const unsigned char *table, uintptr_t address, uintptr_t *function) {
    enum { HEAD = 12, PAIR = 8, IS_4_BYTES = 3, COUNT_AS = 0x03, SORTED_AS = 0x3b };
    if (table[0] != 1 || (table[1] & 7) != IS_4_BYTES || table[2] != COUNT_AS || table[3] != SORTED_AS) {
        return NULL;
    }
    uint32_t low = 0, high = (uint32_t)number_at(table + 8);
    intptr_t distance = (intptr_t)(address - (uintptr_t)table);
    while (low < high) { /* those before `low` begin in time */
        uint32_t middle = low + (high - low) / 2;
        if (number_at(table + HEAD + (size_t)middle * PAIR) <= distance) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return NULL;
    }
    const unsigned char *pair = table + HEAD + (size_t)(low - 1) * PAIR;
    *function = (uintptr_t)table + (uintptr_t)(intptr_t)number_at(pair);
    return table + number_at(pair + 4);
}

/* Follows the entry's instructions as far as `address`. */
static bool read_entry(struct walk *walk, uintptr_t function, uintptr_t address) {
    struct reader own = open_entry(walk->entry);
    uint32_t back = (uint32_t)number_at(own.at);
    read_common(walk, own.at - back);
    follow(walk, 0, 0);
    walk->initial = walk->row;
    unsigned pointers = walk->pointer_bytes;
    bool failed = walk->reader.failed || own.failed || pointers == 0;
    walk->reader = own;
    walk->reader.failed = failed;
    skip(&walk->reader, 4 + (uint64_t)pointers);
    uint64_t bytes = read_bytes(&walk->reader, pointers);
    walk->reader.failed |= address - function >= bytes;
    if (walk->has_more) {
        skip(&walk->reader, read_unsigned(&walk->reader));
    }
    follow(walk, function, address);
    return !walk->reader.failed;
}

static bool value_of(const struct walk *walk, const struct source *source, unsigned number, uintptr_t *value) {
    const struct rule *rule = &walk->row.rules[number];
    uintptr_t at = source->cfa + (uintptr_t)(intptr_t)rule->value;
    switch (rule->kind) {
    case AT_CFA:
        return source->read(source->context, at, value);
    case IS_CFA:
        *value = at;
        return true;
    case IN_REGISTER:
        return read_register(source, (uint64_t)rule->value, value);
    case AT_EXPRESSION:
        return evaluate(walk, source, rule->value, true, &at) && source->read(source->context, at, value);
    case IS_EXPRESSION:
        return evaluate(walk, source, rule->value, true, value);
    default:
        return rule->kind == KEPT && read_register(source, number, value);
    }
}

static uintptr_t without_signature(uintptr_t address) {
#if defined(__aarch64__)
    return address & ((UINT64_C(1) << 48) - 1);
#else
    return address;
#endif
}

bool unwind_step(struct unwind_frame *frame, const unsigned char *table, unwind_read *read, void *context) {
    struct walk walk = {.is_signal = false};
    struct source source = {frame, read, context, 0};
    uintptr_t function, address = unwind_address(frame);
    walk.entry = find_entry(table, address, &function);
    if (UNWIND_CAPTURED == 0 || walk.entry == NULL || !read_entry(&walk, function, address)) {
        return false;
    }
    if (walk.row.cfa.kind == IS_EXPRESSION) {
        if (!evaluate(&walk, &source, walk.row.cfa.value, false, &source.cfa)) {
            return false;
        }
    } else if (walk.row.cfa.kind != IS_CFA || !read_register(&source, walk.row.cfa_register, &source.cfa)) {
        return false;
    } else {
        source.cfa += (uintptr_t)(intptr_t)walk.row.cfa.value;
    }
    struct unwind_frame caller = {.interrupted = walk.is_signal};
    for (unsigned number = 0; number < UNWIND_REGISTERS; number++) {
        caller.known[number] = value_of(&walk, &source, number, &caller.words[number]);
    }
    bool is_outermost = walk.row.rules[UNWIND_RETURN].kind == UNDEFINED;
    if (!caller.known[UNWIND_RETURN] && !is_outermost) {
        return false;
    }
    caller.pc = is_outermost ? 0 : without_signature(caller.words[UNWIND_RETURN]);
    caller.known[UNWIND_RETURN] = caller.known[UNWIND_RETURN] && walk.is_signal; /* a call has overwritten it */
    if (walk.row.rules[UNWIND_SP].kind == KEPT) {
        caller.words[UNWIND_SP] = source.cfa;
        caller.known[UNWIND_SP] = true;
    }
    *frame = caller;
    return true;
}

bool unwind_step_by_pointer(struct unwind_frame *frame, unwind_read *read, void *context) {
    enum { LARGEST_FRAME = 1 << 20, NUMBER = UNWIND_FRAME_POINTER < 0 ? 0 : UNWIND_FRAME_POINTER };
    uintptr_t at = frame->words[NUMBER], sp = frame->words[UNWIND_SP], outer, pc;
    if (UNWIND_FRAME_POINTER < 0 || !frame->known[NUMBER] || !frame->known[UNWIND_SP] || at < sp ||
        at - sp > LARGEST_FRAME || !read(context, at, &outer) || !read(context, at + sizeof outer, &pc)) {
        return false;
    }
    *frame = (struct unwind_frame){.pc = without_signature(pc)};
    frame->words[NUMBER] = outer;
    frame->known[NUMBER] = true;
    frame->words[UNWIND_SP] = at + 2 * sizeof outer;
    frame->known[UNWIND_SP] = true;
    return true;
}
