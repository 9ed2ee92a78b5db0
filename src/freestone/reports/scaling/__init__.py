"""A quantity against the number in which workloads differ: a line for each configuration."""
