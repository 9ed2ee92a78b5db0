/* The second free lies in the cache of a thread that sleeps: it is the library's keeper that finds it, and stops the
 * program as any thread would. */
#include "while_idle.h"

int main(void) { return free_twice_and_sleep(""); }
