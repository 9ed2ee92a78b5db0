/* Many small vectors inside one parallel loop of TBB: each is allocated, filled, added up and freed by the same thread.
 *
 * --through libc takes them by std::allocator, which is the malloc of whoever serves it; --through tbb by TBB's scalable
 * allocator, past malloc. Five sizes in turn, 145.6 bytes on average. The floor is the same loop over an allocator that hands
 * out the same few kibibytes of each thread again and again, over an eighth of the objects; --no-floor leaves it out. The last line
 * is JSON; what the loop allocates is counted in a loop of its own, off the clock. */
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_reduce.h>
#include <tbb/scalable_allocator.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t lengths[] = {3, 6, 13, 25, 44}; /* doubles: 24, 48, 104, 200, 352 bytes */
constexpr std::size_t length_count = sizeof lengths / sizeof *lengths;
constexpr std::size_t grain = 4096;
constexpr std::uint64_t floor_share = 8, floor_least = 1000000; /* of the objects, and objects */

struct Counts {
    std::uint64_t blocks = 0, bytes = 0;
};
Counts counted; /* of the one thread that counts */

/* Blocks from a ring in each thread; nobody takes them back. */
template <class T> struct NullAllocator {
    using value_type = T;
    NullAllocator() = default;
    template <class U> NullAllocator(const NullAllocator<U> &) noexcept {}
    T *allocate(std::size_t count) {
        constexpr std::size_t room = 8192;
        static_assert(room % alignof(T) == 0);
        alignas(64) static thread_local unsigned char ring[room];
        static thread_local std::size_t at = 0;
        const std::size_t bytes = (count * sizeof(T) + 15) & ~std::size_t{15};
        at = at + bytes > room ? 0 : at;
        void *block = &ring[at];
        at += bytes;
        return static_cast<T *>(block);
    }
    void deallocate(T *, std::size_t) noexcept {}
    friend bool operator==(const NullAllocator &, const NullAllocator &) noexcept { return true; }
    friend bool operator!=(const NullAllocator &, const NullAllocator &) noexcept { return false; }
};

/* std::allocator, counted. */
template <class T> struct CountingAllocator : std::allocator<T> {
    template <class U> struct rebind {
        using other = CountingAllocator<U>;
    };
    CountingAllocator() = default;
    template <class U> CountingAllocator(const CountingAllocator<U> &) noexcept {}
    T *allocate(std::size_t count) {
        counted.blocks++;
        counted.bytes += count * sizeof(T);
        return std::allocator<T>::allocate(count);
    }
};

template <template <class> class Allocator> double one(std::size_t index) {
    const std::vector<double, Allocator<double>> numbers(lengths[index % length_count], static_cast<double>(index % 7));
    double sum = 0;
    for (const double number : numbers) {
        sum += number;
    }
    return sum;
}

/* All sums are of small whole numbers, below 2^53 with fewer than 2^47 objects: the order in which threads add them up does not show. */
template <template <class> class Allocator> double all(std::uint64_t objects) {
    return tbb::parallel_reduce(
        tbb::blocked_range<std::uint64_t>(0, objects, grain), 0.0,
        [](const tbb::blocked_range<std::uint64_t> &range, double sum) {
            for (std::uint64_t at = range.begin(); at != range.end(); at++) {
                sum += one<Allocator>(at);
            }
            return sum;
        },
        std::plus<>());
}

struct Run {
    double seconds, sum;
};

template <template <class> class Allocator> Run timed(std::uint64_t objects) {
    using clock = std::chrono::steady_clock;
    const auto from = clock::now();
    const double sum = all<Allocator>(objects);
    return {std::chrono::duration<double>(clock::now() - from).count(), sum};
}

[[noreturn]] void fail(const std::string &why) {
    std::fprintf(stderr, "parallel: %s\n", why.c_str());
    std::exit(2);
}

std::uint64_t number_of(std::string_view option, const char *text, std::uint64_t most) {
    char *end = nullptr;
    errno = 0;
    const unsigned long long number = std::strtoull(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || *text == '-' || number == 0 || number > most) {
        fail(std::string(option) + " wants a whole number from 1 to " + std::to_string(most) + ", not '" + text + "'");
    }
    return number;
}

struct Settings {
    std::uint64_t objects = 175000000, threads = std::thread::hardware_concurrency();
    std::string_view through = "libc";
    bool floor = true;
};

Settings read(int argc, char **argv) {
    Settings settings;
    for (int i = 1; i < argc; i++) {
        const std::string_view option = argv[i];
        if (option == "--help") {
            std::puts("usage: parallel [--objects N] [--threads N] [--through libc|tbb] [--no-floor]");
            std::exit(0);
        }
        if (option == "--no-floor") {
            settings.floor = false;
            continue;
        }
        if (option != "--objects" && option != "--threads" && option != "--through") {
            fail("there is no option '" + std::string(option) +
                 "'; there are --objects, --threads, --through and --no-floor");
        }
        if (++i == argc) {
            fail(std::string(option) + " wants a value");
        }
        if (option == "--objects") {
            settings.objects = number_of(option, argv[i], std::uint64_t{1} << 47);
        } else if (option == "--threads") {
            settings.threads = number_of(option, argv[i], 1024);
        } else {
            settings.through = argv[i];
            if (settings.through != "libc" && settings.through != "tbb") {
                fail("--through is libc or tbb, not '" + std::string(settings.through) + "'");
            }
        }
    }
    return settings;
}

/* What all sums come to: of as many whole periods of lengths and numbers as there are, and of the rest. */
double expected(std::uint64_t objects) {
    constexpr std::uint64_t period = 7 * length_count;
    double whole = 0, rest = 0;
    for (std::size_t index = 0; index < period; index++) {
        const double sum = static_cast<double>(lengths[index % length_count] * (index % 7));
        whole += sum;
        rest += index < objects % period ? sum : 0;
    }
    return whole * static_cast<double>(objects / period) + rest;
}

} // namespace

int main(int argc, char **argv) {
    const Settings settings = read(argc, argv);
    const tbb::global_control control(tbb::global_control::max_allowed_parallelism, settings.threads);
    (void)all<NullAllocator>(settings.threads * grain * 4); /* TBB's threads are there before the clock starts */
    const Run run = settings.through == "tbb" ? timed<tbb::scalable_allocator>(settings.objects)
                                              : timed<std::allocator>(settings.objects);
    const std::uint64_t floored = std::min(settings.objects, std::max(settings.objects / floor_share, floor_least));
    const double scale = static_cast<double>(floored) / static_cast<double>(settings.objects);
    const Run floor = settings.floor ? timed<NullAllocator>(floored) : Run{0, expected(floored)};
    double sum = 0;
    for (std::size_t i = 0; i < length_count; i++) {
        sum += one<CountingAllocator>(i);
    }
    const std::uint64_t rounds = settings.objects / length_count;
    if (run.sum != expected(settings.objects) || floor.sum != expected(floored) || sum < 0) {
        fail("the sum is wrong: a block was lost or handed out twice");
    }
    const std::string floor_seconds = settings.floor ? std::to_string(floor.seconds / scale) : "null";
    /* What a turn of the five sizes takes, so many times; the rest of the last turn is not in it. */
    std::printf("{\"program\": \"parallel\", \"through\": \"%s\", \"threads\": %" PRIu64 ", \"objects\": %" PRIu64
                ", \"operations\": %" PRIu64 ", \"seconds\": %.9f, \"floor_seconds\": %s, \"floor_scale\": %.9g"
                ", \"ns_per_object\": %.3f, \"allocations\": %" PRIu64 ", \"allocated_bytes\": %" PRIu64
                ", \"checksum\": %.0f}\n",
                std::string(settings.through).c_str(), settings.threads, settings.objects, 2 * settings.objects,
                run.seconds, floor_seconds.c_str(), scale, run.seconds * 1e9 / static_cast<double>(settings.objects),
                counted.blocks * rounds, counted.bytes * rounds, run.sum);
    return 0;
}
