// The same plugin, whose constructor waits for a thread in which all that happens already: the dynamic linker's lock is held meanwhile, so
// whoever asks the linker where the runtime is waits for ever.
#include "own_runtime_plugin.cpp"

#include <climits>
#include <cstddef>
#include <cstdint>
#include <pthread.h>

#include "expect.h"

namespace {

void *in_thread(void *) {
    int wrong = own_runtime_plugin(PTRDIFF_MAX & ~std::size_t{127});
    EXPECT(wrong == 0, "the plugin's step %d, while it is loaded", wrong);
    return nullptr;
}

struct Waiting {
    Waiting() {
        pthread_t thread;
        EXPECT(pthread_create(&thread, nullptr, in_thread, nullptr) == 0, "no thread");
        EXPECT(pthread_join(thread, nullptr) == 0, "pthread_join failed");
    }
} waiting;

} // namespace
