/* What the loader does for any library that is preloaded, and no more. */
int nothing_in_this_library;
