"""Programs as guests of an emulator in user mode, by which images for other architectures are built."""

from __future__ import annotations

from foreign_programs.program import ENVIRONMENT, Program
from foreign_programs.room import Room, program

EMULATOR = "qemu-x86_64"
WORDS = 'my %n; $n{$_ % 977} .= "x" x ($_ % 50) for 1 .. 40000; print scalar(keys %n), " ", length(join "", values %n)'
FORKS = (
    'for (1 .. 5) { my @a = map { "y" x $_ } 1 .. 500; my $p = fork; exit scalar(@a) % 7 unless $p; '
    "waitpid $p, 0; print $? >> 8 }"
)
NUMBERS = b"".join(b"%d\n" % (i * 7919 % 10007) for i in range(10007))


def work(room: Room) -> None:
    # Emulator and guest have the same preload. The emulator may keep a record for each page of a reservation, so its
    # data are limited; a limit on addresses would change what the guest reserves.
    limited = ["sh", "-c", 'ulimit -d 2097152 && exec "$0" "$@"', program(EMULATOR)]
    for name, script in (("words", WORDS), ("forks", FORKS)):
        room.fact(name, room.run([*limited, program("perl"), "-e", script]).text)
    room.digest("sorted", room.run([*limited, program("sort")], stdin=NUMBERS).stdout)


GUEST = Program(
    name="qemu-user",
    what="perl and sort as guests of qemu-x86_64, with 2 GiB of data",
    package="qemu-user and perl",
    needs=(EMULATOR, "perl"),
    images=("perl", EMULATOR),
    work=work,
    version=(EMULATOR, "--version"),
    modes=ENVIRONMENT,
)
