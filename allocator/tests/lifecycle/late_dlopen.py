"""Load libfreestone into a running Python by ctypes, as extensions do, and use its heap from several threads.

Usage: late_dlopen.py LIBRARY. Exits with 1 and a line on standard error when something does not hold.
"""

import ctypes
import sys
import threading


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    identity = ctypes.c_char.in_dll(library, "freestone_identity")
    if ctypes.string_at(ctypes.addressof(identity)).split()[0] != b"freestone":
        sys.exit("the library does not name itself")
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    wrong: list[str] = []

    def work(seed: int) -> None:
        blocks: list[tuple[int, int]] = []
        for i in range(500):
            size = (seed * 7919 + i * 131) % 5000 + 1
            block = library.malloc(size)
            ctypes.memset(block, seed + 1, size)
            blocks.append((block, size))
        for block, size in blocks:
            if ctypes.string_at(block, size) != bytes([seed + 1]) * size:
                wrong.append(f"a block of {size} bytes changed")
            library.free(block)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    work(9)
    for thread in threads:
        thread.join()
    if wrong:
        sys.exit(wrong[0])


if __name__ == "__main__":
    main()
