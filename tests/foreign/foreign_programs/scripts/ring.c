/* Each rank sends a fresh block to the next and receives one from the previous, 200 times; block sizes go from 16 bytes to
 * 4 MiB. Blocks are resized or freed between messages, so that a stale registration of memory shows as a wrong sum. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { TURNS = 200, KEPT = 16 };

static uint64_t sum_of(const uint32_t *block, size_t words) {
    uint64_t sum = 0;
    for (size_t i = 0; i < words; i++) {
        sum = sum * 31 + block[i];
    }
    return sum;
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint32_t *kept[KEPT] = {0};
    uint64_t sum = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        size_t length = (size_t)4 << (turn * 7 % 21);
        uint32_t *block = malloc(length * sizeof *block);
        uint32_t *received = realloc(kept[turn % KEPT], length * sizeof *received);
        if (block == NULL || received == NULL) {
            MPI_Abort(MPI_COMM_WORLD, 3);
            return 3;
        }
        for (size_t i = 0; i < length; i++) {
            block[i] = (uint32_t)i * 2654435761u + (uint32_t)(rank + turn);
        }
        MPI_Sendrecv(block, (int)length, MPI_UINT32_T, (rank + 1) % ranks, turn, received, (int)length, MPI_UINT32_T,
                     (rank + ranks - 1) % ranks, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += sum_of(received, length);
        free(block);
        kept[turn % KEPT] = received;
    }
    uint64_t total = 0;
    MPI_Reduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%016llx\n", (unsigned long long)total);
    }
    for (int i = 0; i < KEPT; i++) {
        free(kept[i]);
    }
    MPI_Finalize();
    return 0;
}
