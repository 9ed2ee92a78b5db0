/* Passive false sharing, an idea of Berger's (Hoard, 2000): the main thread allocates one small block for each thread, one
 * beside the other, and hands them out. Each thread frees its own and goes on with blocks of its own: an allocator that
 * gives it that memory again has put two threads into one cache line. */
#include "false_sharing.h"

int main(int argc, char **argv) { return false_sharing("cache-scratch", "Passive false sharing.", true, argc, argv); }
