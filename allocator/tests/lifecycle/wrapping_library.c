/* A preload behind libfreestone whose functions go before those of libc, as tracers' do. */
#include <dlfcn.h>
#include <stdint.h>

#define WRAPPED(name, parameters, ...)                                                 \
    int name parameters;                                                               \
    int name parameters {                                                              \
        int(*next) parameters = (int(*) parameters)(uintptr_t)dlsym(RTLD_NEXT, #name); \
        return next(__VA_ARGS__);                                                      \
    }

WRAPPED(unshare, (int flags), flags)
WRAPPED(setns, (int file, int type), file, type)
WRAPPED(prctl, (int option, long a, long b, long c, long d), option, a, b, c, d)
