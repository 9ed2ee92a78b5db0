/* A private folder for one run of a program, and a command line that speaks of it. */
#pragma once

#define FOLDER_WORD "@folder" /* stands for the folder's path in a command line */

/* A new folder below TMPDIR; ends the program with one line and status 1 where there can be none. */
const char *folder_make(void);

/* The words with every FOLDER_WORD in them replaced, ending in NULL; allocated once, never freed. */
char **folder_filled(char *const *words, int count);

/* Remove the folder with all that is in it. What cannot be removed stays. */
void folder_remove(void);
