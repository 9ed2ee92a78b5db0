// beside_loader [fork]: a thread is within dl_iterate_phdr for as long as the program lives, and waits there for the main thread, as a profiler's may.
// Whatever the library is asked meanwhile must not take that lock of the dynamic linker's: first it is asked by a child of a fork, in which
// the lock is never free again, or by the main thread itself.
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <link.h>
#include <new>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "entry.h"
#include "expect.h"
#include "serving.h"

namespace {

constexpr unsigned PATIENCE_SECONDS = 60;
constexpr std::size_t WIDE = 64;

std::atomic<bool> inside, done;
int asked;

int wait_inside(dl_phdr_info *, std::size_t, void *) {
    inside = true;
    while (!done) {
        usleep(1000);
    }
    return 1;
}

void *iterate(void *unused) {
    EXPECT(dl_iterate_phdr(wait_inside, nullptr) == 1, "the search was not ended by its function");
    return unused;
}

void give_up() {
    asked++;
    std::set_new_handler(nullptr);
}

void ignore(int) {}

struct alignas(WIDE) Wide {
    char bytes[2 * WIDE];
};

template <typename Object> void make_and_delete() {
    delete static_cast<Object *>(unseen(new Object));
    delete[] static_cast<Object *>(unseen(new Object[3]));
    delete static_cast<Object *>(unseen(new (std::nothrow) Object));
    delete[] static_cast<Object *>(unseen(new (std::nothrow) Object[3]));
}

bool is_refused(std::size_t size) {
    try {
        ::operator delete(unseen(::operator new(size)));
        return false;
    } catch (const std::bad_alloc &) {
        return true;
    }
}

// In the order of what is looked for in the objects.
void ask() {
    const std::size_t most = unseen_size(PTRDIFF_MAX / 2);
    free(unseen(malloc(100)));
    free(unseen(realloc(unseen(calloc(10, 10)), 1000)));
    make_and_delete<int>();
    make_and_delete<Wide>();
    EXPECT(::operator new(most, std::nothrow) == nullptr, "half of the addresses were had");
    EXPECT(::operator new[](most, std::align_val_t{WIDE}, std::nothrow) == nullptr, "half of the addresses were had");
    EXPECT(is_refused(most), "nothing was thrown");
    std::set_new_handler(give_up);
    EXPECT(::operator new(most, std::nothrow) == nullptr &&asked == 1, "the handler was asked %d times", asked);
    std::set_new_handler(give_up);
    EXPECT(is_refused(most) && asked == 2, "the handler was asked %d times", asked);
    EXPECT(signal(SIGUSR1, ignore) != SIG_ERR, "signal failed");
}

} // namespace

int main(int count, char **) {
    alarm(2 * PATIENCE_SECONDS);
    require_serving();
    pthread_t thread;
    EXPECT(pthread_create(&thread, nullptr, iterate, nullptr) == 0, "no thread");
    while (!inside) {
        usleep(1000);
    }
    pid_t child = count > 1 ? fork() : 0;
    EXPECT(child >= 0, "fork failed");
    if (child == 0) {
        alarm(PATIENCE_SECONDS);
        ask();
        if (count > 1) {
            _exit(0);
        }
    } else {
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child, "waitpid failed");
        EXPECT(status == 0, "the child ended with status 0x%x", static_cast<unsigned>(status));
    }
    done = true;
    pthread_join(thread, nullptr);
    return 0;
}
