// Ten thousand threads, each short: each allocates and frees, also in the destructors of its thread_local objects and
// of its pthread keys, where the allocator's own state may be gone already. Memory must not grow with their number.
#include <limits.h>
#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "resident.h"
#include "serving.h"

namespace {

constexpr int threads = 10000;
constexpr int warm_threads = 1000;
constexpr std::size_t room_kib = 8 * 1024;

pthread_key_t keys[3];
constexpr std::uint64_t rounds_wanted = PTHREAD_DESTRUCTOR_ITERATIONS - 1;

// An object whose end allocates as much as its life.
struct Mourner {
    std::vector<std::string> lines;

    void speak(int words) {
        for (int i = 0; i < words; i++) {
            lines.push_back(std::string(static_cast<std::size_t>(20 + i * 37), 'x'));
        }
    }

    ~Mourner() {
        std::vector<std::string> last = lines;
        lines.clear();
        last.push_back("the last words are longer than a short string");
        EXPECT(last.back().size() == 45, "a string is %zu long", last.back().size());
    }
};

thread_local Mourner mourner;

// Runs as the thread ends; allocates again and asks for another round until the limit, as libraries do that are used
// from other libraries' destructors.
void end_of_key(void *value) {
    auto *block = static_cast<std::uint64_t *>(value);
    std::uint64_t round = block[0];
    std::uint64_t key = block[1];
    std::free(block);
    auto *next = static_cast<std::uint64_t *>(std::malloc(64 + round * 1000));
    EXPECT(next != nullptr, "malloc failed in a key's destructor");
    next[0] = round + 1;
    next[1] = key;
    if (round + 1 < rounds_wanted) {
        pthread_setspecific(keys[key], next);
    } else {
        std::free(next);
    }
}

void *live(void *argument) {
    auto seed = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(argument));
    mourner.speak(5);
    for (std::uint64_t key = 0; key < 3; key++) {
        auto *block = static_cast<std::uint64_t *>(std::malloc(48));
        EXPECT(block != nullptr, "malloc failed");
        block[0] = 0;
        block[1] = key;
        pthread_setspecific(keys[key], block);
    }
    void *blocks[20];
    for (void *&block : blocks) {
        std::size_t size = 1 + pattern_below(&seed, 3000);
        block = std::malloc(size);
        EXPECT(block != nullptr, "malloc(%zu) failed", size);
        std::memset(block, 1, size);
    }
    for (void *block : blocks) {
        std::free(block);
    }
    return nullptr;
}

}  // namespace

int main() {
    require_serving();
    for (pthread_key_t &key : keys) {
        EXPECT(pthread_key_create(&key, end_of_key) == 0, "no key");
    }
    std::size_t warm = 0;
    for (int t = 0; t < threads; t += 4) {
        // Four at a time, so that threads end while others begin.
        pthread_t running[4];
        for (int i = 0; i < 4; i++) {
            auto *seed = reinterpret_cast<void *>(static_cast<std::uintptr_t>(t + i + 1));
            EXPECT(pthread_create(&running[i], nullptr, live, seed) == 0, "no thread");
        }
        for (pthread_t thread : running) {
            pthread_join(thread, nullptr);
        }
        if (t == warm_threads) {
            warm = resident_kib();
        }
    }
    std::size_t end = resident_kib();
    EXPECT(end < warm + room_kib, "resident memory grew from %zu to %zu KiB in %d threads", warm, end,
           threads - warm_threads);
    return 0;
}
