/* What the process can ask about its own heap is true: mallinfo2 follows what is allocated, malloc_info writes one
 * well-formed document, malloc_trim gives memory back. */
#include <stdbool.h>

#include "entry.h"
#include "expect.h"
#include "resident.h"
#include "serving.h"

enum { COUNT = 20000, SIZE = 1000 };

static void *blocks[COUNT];

static size_t in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void counts(void) {
    size_t before = in_use();
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = malloc(SIZE);
        EXPECT(blocks[i] != NULL, "malloc failed");
        memset(blocks[i], 1, SIZE);
    }
    size_t full = in_use();
    EXPECT(full >= before + COUNT * SIZE, "%d bytes more are in use, mallinfo2 says %zu", COUNT * SIZE, full - before);
    EXPECT(full <= before + 2 * COUNT * SIZE, "%d bytes more are in use, mallinfo2 says %zu", COUNT * SIZE,
           full - before);
    for (size_t i = 0; i < COUNT; i++) {
        free(blocks[i]);
    }
    malloc_trim(0);
    size_t after = in_use();
    EXPECT(after <= before + COUNT * SIZE / 4, "all was freed, and mallinfo2 says %zu bytes are still in use",
           after - before);
    size_t large_before = in_use();
    void *large = malloc(50 << 20);
    EXPECT(large != NULL, "malloc of 50 MiB failed");
    EXPECT(in_use() >= large_before + (50 << 20), "mallinfo2 does not see a block of 50 MiB");
    free(large);
    EXPECT(in_use() < large_before + (50 << 20), "mallinfo2 still sees a freed block of 50 MiB");
}

static void trimmed(void) {
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = malloc(SIZE);
        EXPECT(blocks[i] != NULL, "malloc failed");
        memset(blocks[i], 1, SIZE);
    }
    size_t full = resident_kib();
    for (size_t i = 0; i < COUNT; i++) {
        free(blocks[i]);
    }
    malloc_trim(0);
    size_t after = resident_kib();
    EXPECT(after + COUNT * SIZE / 1024 / 2 < full, "%d KiB were freed, but malloc_trim took %zu KiB to %zu KiB",
           COUNT * SIZE / 1024, full, after);
}

/* Tags open and close in order, and every attribute is quoted: enough to see that a parser would take it. */
static void check_document(const char *text) {
    const char *stack[32];
    size_t lengths[32];
    size_t depth = 0;
    bool any = false;
    for (const char *at = strchr(text, '<'); at != NULL; at = strchr(at, '<')) {
        const char *end = strchr(at, '>');
        EXPECT(end != NULL, "a tag is not closed: %s", at);
        bool closing = at[1] == '/';
        const char *name = at + 1 + (closing ? 1 : 0);
        size_t length = strcspn(name, " />");
        size_t quotes = 0;
        for (const char *c = at; c < end; c++) {
            quotes += *c == '"';
        }
        EXPECT(quotes % 2 == 0, "an attribute is not quoted: %.80s", at);
        if (closing) {
            EXPECT(depth > 0 && lengths[depth - 1] == length && strncmp(stack[depth - 1], name, length) == 0,
                   "'%.*s' closes what was not opened", (int)length, name);
            depth--;
        } else if (at[1] != '?' && end[-1] != '/') {
            EXPECT(depth < 32, "nested too deep");
            EXPECT(depth > 0 || !any, "a second root: %.80s", at);
            stack[depth] = name;
            lengths[depth++] = length;
            any = true;
        }
        at = end;
    }
    EXPECT(any && depth == 0, "not one whole document: %s", text);
}

static void document(void) {
    static char text[1 << 20];
    FILE *file = fmemopen(text, sizeof text, "w");
    EXPECT(file != NULL, "fmemopen failed");
    EXPECT(malloc_info(0, file) == 0, "malloc_info failed");
    fclose(file);
    EXPECT(strncmp(text, "<malloc", 7) == 0, "malloc_info wrote '%.40s'", text);
    check_document(text);
    EXPECT(malloc_info(1, stdout) != 0, "malloc_info took options it does not know");
}

int main(void) {
    require_serving();
    counts();
    trimmed();
    document();
    EXPECT(mallopt(M_TRIM_THRESHOLD, 1 << 20) == 1, "mallopt(M_TRIM_THRESHOLD) was refused");
    malloc_stats();
    return 0;
}
