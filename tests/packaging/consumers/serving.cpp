// The same for operator new, in few words.
#include <cstdio>
#include <cstdlib>
#include <freestone.h>

int main() {
    constexpr std::size_t bytes = std::size_t{32} << 20;
    freestone_stats before{};
    freestone_stats after{};
    freestone_stats_read(&before);
    char *volatile block = new char[bytes];
    freestone_stats_read(&after);
    delete[] block;
    std::printf("version %s\n", freestone_version());
    std::printf("serves %s\n", after.in_use - before.in_use >= bytes ? "yes" : "no");
    return 0;
}
