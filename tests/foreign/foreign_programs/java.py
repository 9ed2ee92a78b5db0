"""The JVM: javac compiles, jar packs, and the program runs under each collector."""

from __future__ import annotations

from pathlib import Path

from foreign_programs.program import Program
from foreign_programs.room import Room

SOURCE = Path(__file__).parent / "scripts" / "Work.java"
COLLECTORS = ("Serial", "Parallel", "G1", "Z", "Shenandoah")


def work(room: Room) -> None:
    for run in range(3):
        room.run(["javac", "-d", f"classes{run}", "-Xlint:all", str(SOURCE)])
        for path in sorted((room.folder / f"classes{run}").rglob("*.class")):
            room.digest(f"{path.name} of run {run}", path.read_bytes())
    room.run(["jar", "--create", "--file", "work.jar", "--main-class", "Work", "-C", "classes0", "."])
    for collector in COLLECTORS:
        options = ["-Xmx256m", "-XX:-UsePerfData", f"-XX:+Use{collector}GC", "-XX:ErrorFile=crash.txt"]
        done = room.run(["java", *options, "-jar", "work.jar"], statuses=None)
        room.fact(f"under {collector}", f"status {done.status}, {done.text.splitlines()[-1:]}")
        if done.status != 0:
            room.complain(f"java, {collector}", done.stdout, done.stderr)
    room.fact("crashed", (room.folder / "crash.txt").exists())


JAVA = Program(
    name="java",
    what=f"javac three times, class files compared; jar; threads, zip, direct buffers under {', '.join(COLLECTORS)}",
    package="default-jdk-headless",
    needs=("java", "javac", "jar"),
    images=("java", "javac"),
    work=work,
    version=("java", "-version"),
)
