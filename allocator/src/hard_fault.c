/* What lies where the hardened heap lets nobody touch: for the handler of a fault. Reads tags and descriptors alone, which others may be changing
 * just now: at worst the line names what was there a moment before. */
#include "hard_inside.h"
#include "message.h"

static struct message begin(const char *name, const void *address) {
    struct message line = {0};
    message_text(&line, name);
    message_text(&line, ": pointer ");
    message_pointer(&line, address);
    return line;
}

static void say_bytes(struct message *line, size_t bytes) {
    message_number(line, bytes);
    message_text(line, bytes == 1 ? " byte" : " bytes");
}

/* "overflow: pointer 0x7f52a4c10040, 5 bytes behind the end of a block of 40 bytes at 0x7f52a4c10010" */
static void say(const char *name, const unsigned char *address, const unsigned char *block, size_t size) {
    struct message line = begin(name, address);
    message_text(&line, ", ");
    if (address < block) {
        say_bytes(&line, (size_t)(block - address));
        message_text(&line, " before");
    } else if (address < block + size) {
        message_text(&line, "byte ");
        message_number(&line, (size_t)(address - block));
        message_text(&line, " of");
    } else {
        say_bytes(&line, (size_t)(address - block) - size + 1);
        message_text(&line, " behind the end of");
    }
    message_text(&line, " a block of ");
    say_bytes(&line, size);
    message_text(&line, " at ");
    message_pointer(&line, block);
    message_print(&line);
}

static bool explain_large(uint32_t slice, const unsigned char *address) {
    const struct span *span = arena_span(slice);
    struct hard_pages pages = hard_large_pages(slice);
    bool is_freed = (int)span->size_class == HARD_FREED, is_behind = address >= pages.to;
    if (span->clean_pages == 0 || (!is_freed && !is_behind && address >= pages.from)) {
        return false; /* no guard is there: it faults for another reason */
    }
    say(is_freed ? "use after free" : is_behind ? "overflow" : "underflow", address, pages.block, span->used_bytes);
    return true;
}

static bool explain_nothing(uint32_t slab, const unsigned char *address) {
    size_t bytes = hard_slot_bytes(HARD_NOTHING);
    uint32_t slot = (uint32_t)((size_t)(address - hard_slab_block(slab, 0)) / bytes);
    if (slot >= arena_span(slab)->blocks) {
        return false;
    }
    say(hard_slab_is_free(slab, slot) ? "use after free" : "overflow", address, hard_slab_block(slab, slot), 0);
    return true;
}

/* The block whose end was overrun is not known. Print the slab's last slot, which is nearest. */
static bool explain_slab(uint32_t slab, const unsigned char *address) {
    const struct span *span = arena_span(slab);
    unsigned class = span->size_class;
    size_t at = (size_t)(address - (const unsigned char *)arena_address(slab));
    if (!span->taken || at < hard_slab_guard(class) || span->blocks == 0) {
        return false;
    }
    const unsigned char *last = hard_slab_block(slab, span->blocks - 1);
    struct message line = begin("overflow", address);
    message_text(&line, ", ");
    say_bytes(&line, (size_t)(address - last) - hard_slot_bytes(class) + 1);
    message_text(&line, " behind the last place of a slab, size class ");
    say_bytes(&line, hard_slot_bytes(class));
    message_text(&line, " at ");
    message_pointer(&line, last);
    message_print(&line);
    return true;
}

bool hardened_explain(const void *address) {
    uint32_t tag, tag_at_start;
    if (!tag_of(address, &tag) || !hardened_owns(tag)) {
        return false;
    }
    uint32_t first = hard_slab_of(address);
    const void *start = arena_address(first);
    if (start > address || !tag_of(start, &tag_at_start) || tag_at_start != tag) {
        return false; /* it is going, or coming, just now */
    }
    unsigned class = arena_span(first)->size_class;
    if (tag == TAG_HARD_LARGE) {
        return explain_large(first, address);
    }
    return class == HARD_NOTHING ? explain_nothing(first, address)
                                 : class < CLASS_COUNT && explain_slab(first, address);
}
