/* Included before every source, the library's and the simulator's: which fault is planted. Each is text of variants.toml beside the library's
 * own, chosen as the simulator runs. */
#ifndef FREESTONE_SIMULATOR_PLANTED_H
#define FREESTONE_SIMULATOR_PLANTED_H

extern unsigned simulator_fault; /* 0: none */
#define PLANTED(number) (simulator_fault == (number))

#endif
