/* linked_elsewhere is linked with it. */
int linked_elsewhere_value(int value);

int linked_elsewhere_value(int value) { return value + 1; }
