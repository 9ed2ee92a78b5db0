"""Threads that allocate beside forks and naps, by whatever clock there is; the last line is what came of it."""

import os
import threading
import time

THREADS, FORKS, ROUNDS = 3, 12, 25
sums = [0] * THREADS


def work(number: int) -> None:
    for turn in range(ROUNDS):
        blocks = [bytearray(1000 * k % 200_000 + 1) for k in range(1200)]
        sums[number] += sum(len(block) for block in blocks[turn::7])


threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
statuses = []
for number in range(FORKS):
    child = os.fork()
    if child == 0:
        os._exit(len([bytearray(3000 + k) for k in range(2000)]) % (100 + number))
    statuses.append(os.waitpid(child, 0)[1] >> 8)
for thread in threads:
    thread.join()
begun = time.monotonic()
os.system("sleep 1")  # memory goes back meanwhile
print(time.strftime("%Y", time.gmtime()), time.monotonic() >= begun, sums, statuses)
