/* What happens when the library is loaded. */
#include <stdlib.h>

#include "freestone.h"
#include "message.h"
#include "options.h"
#include "thread_cache.h"

/* Early among constructors; allocations may have been served before. */
__attribute__((constructor(101))) static void start(void) {
    const char *text = secure_getenv("FREESTONE_OPTIONS");
    if (text != NULL) {
        options_read(text);
    }
    thread_cache_watch_forks();
    if (option_value(OPTION_IDENTIFY) != 0) {
        struct message message = {0};
        message_text(&message, freestone_version());
        message_text(&message, " serves malloc");
        message_print(&message);
    }
}
