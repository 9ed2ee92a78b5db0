"""What a terminal has shown is told without what is this machine's, and what was lost is not told as kept."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from freestone.records import store
from place_transcripts import Terminal, shortened, went_on

SAID = """slurm-arm: is job 2
# in another terminal: it is lost
solve: 2 allocators
faults: mimalloc has the fewest
Records: results/x/slurm-arm

solve on 2 machines

              best in time
freestone: not finished: slurm-arm""".splitlines()


def test_places_and_the_table_of_all_are_left_and_single_tables_are_not() -> None:
    assert shortened(SAID) == [*SAID[:2], "[the table of each place]", "", *SAID[6:]]
    assert shortened(SAID[:2]) == SAID[:2]
    places = [line.replace("machines", "places") for line in SAID]
    assert shortened(places)[2:] == ["[the table of each place]", "", *places[6:]]


def test_paths_and_ports_of_this_machine_are_taken_out(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.lines = [f"{sys.executable} -m freestone compare --resume {tmp_path}/results/x", "tcp://127.0.0.1:4711#a"]
    assert terminal.text() == "freestone compare --resume ~/results/x\ntcp://10.0.0.1:8786#a"


def test_runs_that_are_gone_are_no_transcript(tmp_path: Path) -> None:
    (tmp_path / store.TRIALS_FILE).write_bytes(b"one\ntwo\nthree\n")
    assert went_on(tmp_path, b"one\ntwo") == f"\n# of the 3 runs of {tmp_path.name}, the first 2 are from before\n"
    with pytest.raises(RuntimeError, match="runs that were finished are not there"):
        went_on(tmp_path, b"other")


@pytest.mark.parametrize(
    "title",
    ["on 2 machines", "on 4 places", "on 2 of 3 places", "in 4 results of one machine", "in 3 results of 2 machines"],
)
def test_the_table_of_all_places_is_found_by_any_of_its_titles(title: str) -> None:
    """The transcript had no table once two workers of one machine counted as one."""
    assert shortened([*SAID[:2], f"solve {title}", "a row"])[-2:] == [f"solve {title}", "a row"]
