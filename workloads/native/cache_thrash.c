/* Active false sharing, an idea of Berger's (Hoard, 2000): threads that allocate small blocks at the same time. An
 * allocator that serves two of them from one cache line makes each write of one stall the other. */
#include "false_sharing.h"

int main(int argc, char **argv) { return false_sharing("cache-thrash", "Active false sharing.", false, argc, argv); }
