/* Nothing: what an allocator costs a program that needs none. */
#include "report.h"

static const struct program program = {"empty", "Does nothing: the cost of starting under an allocator.", NULL, 0};

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    report_open(&program);
    report_measurement((struct measurement){0});
    report_no_floor();
    report_close();
    return 0;
}
