/* freestone_stats_json is asked how much its text needs, so much is taken, and it is asked again: the text is whole, though what was taken in
 * between has changed the figures. As the first thing that a process does, and beside threads whose blocks come and go. */
#include "churning.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { ROUNDS = 3000 };

static void ask(const char *when) {
    int most = freestone_stats_json(NULL, 0);
    EXPECT(most > 0, "%s: it wants %d bytes", when, most);
    char *text = unseen(malloc((size_t)most + 1));
    EXPECT(text != NULL, "malloc failed");
    int length = freestone_stats_json(text, (size_t)most + 1);
    EXPECT(length > 0 && length <= most && strlen(text) == (size_t)length && text[0] == '{' && text[length - 1] == '}',
           "%s: %d characters, %d of them told before: %s", when, length, most, text);
    char cut[100];
    int wanted = freestone_stats_json(cut, sizeof cut);
    EXPECT(wanted == most && strlen(cut) == sizeof cut - 1, "%s: %d characters behind %s", when, wanted, cut);
    free(text);
}

int main(void) {
    ask("at first");
    require_serving();
    churning_begin();
    for (int i = 0; i < ROUNDS; i++) {
        ask("beside threads");
    }
    churning_end();
    return 0;
}
