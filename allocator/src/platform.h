/* What the library is written for: addresses and `long` of 64 bits, and Linux. Stands before everything else, so that a compiler for another
 * machine says this, and not what follows from it. Leaf: includes nothing. */
#ifndef FREESTONE_PLATFORM_H
#define FREESTONE_PLATFORM_H

#if !defined(__linux__) || !defined(__LP64__)
#error "Freestone needs a 64-bit Linux: this compiler makes programs for another system (docs/reference/platforms.md)"
/* No compiler ends at #error; every one ends where a file is not there. */
#include <nothing-more-after-this-error>
#endif

#endif
