/* The cost of one block by its size, doubling: a Google Benchmark program.
 *
 *   malloc       N blocks are allocated on the clock, and freed off it
 *   malloc_free  N blocks are allocated and freed on the clock
 *   calloc       as malloc
 *   touch        as malloc, with a byte of every page written
 *   memset       as malloc, with every byte written
 *
 * N is as many as fit into 16 MiB, 1 to 1024; they are one iteration. The last line is JSON: nanoseconds a block, by what is done and by size;
 * `seconds` is the geometric mean of all of them. With --benchmark_out=FILE Google Benchmark writes its own JSON too. */
#include <benchmark/benchmark.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

enum class What { allocate, allocate_and_free, zeroed, touch, fill };

struct Deed {
    const char *name;
    What what;
};

constexpr Deed deeds[] = {{"malloc", What::allocate},
                          {"malloc_free", What::allocate_and_free},
                          {"calloc", What::zeroed},
                          {"touch", What::touch},
                          {"memset", What::fill}};

constexpr std::size_t batch_bytes = 16 << 20;
constexpr std::size_t batch_most = 1024;
constexpr double share_of_memory = 0.4; /* of what is available, for the largest block */

struct Settings {
    std::size_t least = 8, most = std::size_t{1} << 30;
    double seconds = 0.01; /* of each benchmark, at least */
};

[[noreturn]] void fail(const std::string &why) {
    std::fprintf(stderr, "sizes-benchmark: %s\n", why.c_str());
    std::exit(2);
}

/* The compiler must neither delete a malloc with its free nor know what it returns. */
void *unseen(void *block) {
    benchmark::DoNotOptimize(block);
    return block;
}

void *acquire(What what, std::size_t bytes, std::size_t page) {
    auto *block =
        static_cast<unsigned char *>(unseen(what == What::zeroed ? std::calloc(1, bytes) : std::malloc(bytes)));
    if (block == nullptr) {
        fail("no memory for " + std::to_string(bytes) + " bytes");
    }
    if (what == What::touch) {
        for (std::size_t at = 0; at < bytes; at += page) {
            static_cast<volatile unsigned char *>(block)[at] = 1;
        }
    } else if (what == What::fill) {
        std::memset(block, 1, bytes);
        benchmark::ClobberMemory();
    }
    return block;
}

void run(benchmark::State &state, What what, std::size_t bytes) {
    const std::size_t count = std::clamp<std::size_t>(batch_bytes / bytes, 1, batch_most);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::vector<void *> blocks(count);
    using clock = std::chrono::steady_clock;
    for (auto unused : state) {
        (void)unused;
        const auto from = clock::now();
        for (void *&block : blocks) {
            block = acquire(what, bytes, page);
        }
        auto until = clock::now();
        for (void *block : blocks) {
            std::free(block);
        }
        if (what == What::allocate_and_free) {
            until = clock::now();
        }
        state.SetIterationTime(std::chrono::duration<double>(until - from).count());
    }
    state.counters["blocks"] = static_cast<double>(count); /* of one iteration */
}

/* What the loop costs by itself: blocks from an array, and given back to nobody. */
void run_floor(benchmark::State &state) {
    std::vector<void *> blocks(batch_most);
    std::vector<unsigned char> pool(batch_most);
    using clock = std::chrono::steady_clock;
    for (auto unused : state) {
        (void)unused;
        const auto from = clock::now();
        for (std::size_t i = 0; i < batch_most; i++) {
            blocks[i] = unseen(&pool[i]);
        }
        benchmark::ClobberMemory();
        state.SetIterationTime(std::chrono::duration<double>(clock::now() - from).count());
    }
    state.counters["blocks"] = batch_most;
}

/* Nanoseconds a block by benchmark, in the order in which they were run. */
class Collector : public benchmark::BenchmarkReporter {
  public:
    bool ReportContext(const Context &) override { return true; }
    void ReportRuns(const std::vector<Run> &runs) override {
        for (const Run &run : runs) {
            if (run.run_type == Run::RT_Iteration && run.iterations > 0) {
                const double blocks = static_cast<double>(run.iterations) * run.counters.at("blocks").value;
                found.emplace_back(run.run_name.function_name, 1e9 * run.real_accumulated_time / blocks);
            }
        }
    }
    std::vector<std::pair<std::string, double>> found;
};

std::size_t bytes_of(std::string_view option, const char *text) {
    char *end = nullptr;
    errno = 0;
    const unsigned long long number = std::strtoull(text, &end, 10);
    const char *const units = "KMG";
    const char *unit = *end != '\0' ? std::strchr(units, std::toupper(static_cast<unsigned char>(*end))) : nullptr;
    const bool whole =
        end != text && errno == 0 && text[0] != '-' && (*end == '\0' || (unit != nullptr && end[1] == '\0'));
    const unsigned shift = unit != nullptr ? 10 * static_cast<unsigned>(unit - units + 1) : 0;
    if (!whole || number == 0 || number > (~0ULL >> shift) >> 1) {
        fail("--" + std::string(option) + " takes bytes, as in 64K, not '" + text + "'");
    }
    return static_cast<std::size_t>(number << shift);
}

Settings parsed(int argc, char **argv) {
    Settings settings;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name = argv[i];
        if (i + 1 == argc) {
            fail(std::string(name) + " needs a value");
        }
        if (name == "--least") {
            settings.least = bytes_of("least", argv[i + 1]);
        } else if (name == "--most") {
            settings.most = bytes_of("most", argv[i + 1]);
        } else if (name == "--milliseconds") {
            settings.seconds = static_cast<double>(bytes_of("milliseconds", argv[i + 1])) / 1000;
        } else {
            fail("there is no " + std::string(name) + "; there are --least, --most, --milliseconds, --benchmark_...");
        }
    }
    if (settings.least > settings.most) {
        fail("--least is more than --most");
    }
    return settings;
}

std::size_t available_bytes() {
    std::size_t kib = 0;
    if (std::FILE *file = std::fopen("/proc/meminfo", "r")) {
        char line[256];
        while (std::fgets(line, sizeof line, file) != nullptr) {
            if (std::sscanf(line, "MemAvailable: %zu kB", &kib) == 1) {
                break;
            }
        }
        std::fclose(file);
    }
    return kib == 0 ? ~std::size_t{0} : kib * 1024;
}

void lock_memory_if_told() {
    const char *told = std::getenv("FREESTONE_LOCK_MEMORY");
    if (told != nullptr && std::strcmp(told, "1") == 0 && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        fail(std::string("mlockall: ") + std::strerror(errno));
    }
}

void print(const std::vector<std::pair<std::string, double>> &found) {
    std::map<std::string, std::string> lists;
    std::vector<std::string> order;
    double logs = 0, floor_ns = 0;
    int count = 0;
    for (const auto &[name, ns] : found) {
        const auto slash = name.find('/');
        if (slash == std::string::npos) {
            floor_ns = ns;
            continue;
        }
        const std::string deed = name.substr(0, slash);
        std::string &list = lists[deed];
        if (list.empty()) {
            order.push_back(deed);
        }
        char entry[96];
        std::snprintf(entry, sizeof entry, "%s\"%s\": %.6g", list.empty() ? "" : ", ", name.c_str() + slash + 1, ns);
        list += entry;
        logs += std::log(std::max(ns, 1e-3));
        count++;
    }
    std::printf("{\"program\": \"sizes-benchmark\"");
    for (const std::string &deed : order) {
        std::printf(", \"%s_ns\": {%s}", deed.c_str(), lists[deed].c_str());
    }
    std::printf(", \"floor_ns\": %.6g, \"seconds\": %.9g}\n", floor_ns, 1e-9 * std::exp(count > 0 ? logs / count : 0));
}

} // namespace

int main(int argc, char **argv) {
    benchmark::Initialize(&argc, argv);
    const Settings settings = parsed(argc, argv);
    lock_memory_if_told();
    const auto room = static_cast<std::size_t>(share_of_memory * static_cast<double>(available_bytes()));
    for (const Deed &deed : deeds) {
        for (std::size_t bytes = settings.least; bytes <= settings.most; bytes *= 2) {
            if (bytes > room) {
                std::fprintf(stderr, "sizes-benchmark: %s of %zu bytes is left out: too little memory\n", deed.name,
                             bytes);
                continue;
            }
            const std::string name = std::string(deed.name) + "/" + std::to_string(bytes);
            benchmark::RegisterBenchmark(
                name.c_str(), [what = deed.what, bytes](benchmark::State &state) { run(state, what, bytes); })
                ->UseManualTime()
                ->MinTime(settings.seconds);
        }
    }
    benchmark::RegisterBenchmark("floor", run_floor)->UseManualTime()->MinTime(settings.seconds);
    Collector collector;
    benchmark::RunSpecifiedBenchmarks(&collector);
    benchmark::Shutdown();
    if (collector.found.empty()) {
        fail("nothing was measured");
    }
    print(collector.found);
    return 0;
}
