"""How libfreestone scales, by counting: locks, lines that travel, system calls, and instructions of calls."""
