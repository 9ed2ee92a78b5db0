// operator new[](size_t), delete[](void *) and their aligned forms are the program's.
#define REPLACED ARRAYS
#include "replaced_operators.h"
