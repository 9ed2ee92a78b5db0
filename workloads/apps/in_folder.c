/* Runs a program that needs a folder of its own, and removes it afterwards: in-folder PROGRAM [WORD...]
 * "@folder" in a word stands for the folder's path. The status is 0 where the program's is, else 1. */
#include "child.h"
#include "folder.h"

#include <stdio.h>

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: in-folder PROGRAM [WORD...]; " FOLDER_WORD " stands for a new folder\n");
        return 2;
    }
    children_keep();
    const char *folder = folder_make();
    char **command = folder_filled(argv + 1, argc - 1);
    int status = child_wait(child_start(command, false, folder), command[0], 0);
    children_gone();
    folder_remove();
    children_obey();
    return status;
}
