/* What a tracer asks the kernel about a call (PTRACE_GET_SYSCALL_INFO): the head of struct ptrace_syscall_info, which is younger than some
 * headers, and its part for an entry. */
#ifndef FREESTONE_TESTS_SYSCALL_INFO_H
#define FREESTONE_TESTS_SYSCALL_INFO_H

#include <stdint.h>

enum { STOP_ENTRY = 1, STOP_EXIT = 2 };

struct syscall_info {
    uint8_t stop;
    uint32_t architecture;
    uint64_t instruction;
    uint64_t stack;
    uint64_t number;
    uint64_t arguments[6];
};

#endif
