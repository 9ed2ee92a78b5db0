"""How long single calls of malloc and free take, and how many of them take longer than that."""
