"""The Parquet file holds the same rows under the same names as the lines of JSON."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from freestone.records.parquet import column_types, write_parquet
from freestone.records.schema import TrialRecord
from freestone.records.store import PARQUET_FILE, StoreError


def test_every_field_of_every_record_is_there(tmp_path: Path, records: list[TrialRecord]) -> None:
    path = write_parquet(tmp_path, records)
    table = duckdb.sql(f"SELECT * FROM '{path}'")
    assert table.columns == list(TrialRecord.model_fields)
    read = [TrialRecord.model_validate(dict(zip(table.columns, row, strict=True))) for row in table.fetchall()]
    assert read == records


def test_no_records_still_give_the_columns(tmp_path: Path) -> None:
    table = duckdb.sql(f"SELECT * FROM '{write_parquet(tmp_path, [])}'")
    assert table.columns == list(TrialRecord.model_fields)
    assert table.fetchall() == []


def test_a_second_writing_replaces_the_first(tmp_path: Path, records: list[TrialRecord]) -> None:
    write_parquet(tmp_path, records[:1])
    path = write_parquet(tmp_path, records)
    assert duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall() == [(3,)]
    assert [entry.name for entry in tmp_path.iterdir()] == [PARQUET_FILE]


def test_folders_of_different_programs_can_be_queried_together(tmp_path: Path, records: list[TrialRecord]) -> None:
    """Types come from the schema: a folder without a single counter or series has the same columns."""
    bare = records[0].model_copy(update={"metrics": None, "output": None})
    for name, rows in (("one", records), ("it's", [bare])):
        (tmp_path / name).mkdir()
        write_parquet(tmp_path / name, rows)
    paths = ", ".join("'" + str(tmp_path / name / PARQUET_FILE).replace("'", "''") + "'" for name in ("one", "it's"))
    found = duckdb.sql(f"SELECT metrics.wall_s, metrics.series[1].rss_kib FROM read_parquet([{paths}])").fetchall()
    assert sorted(found, key=str)[0] == (1.5, 900)
    assert (None, None) in found


def test_every_field_of_the_schema_has_a_type() -> None:
    types = column_types()
    assert types["round"] == "BIGINT"
    assert types["reason"] == "VARCHAR"
    assert '"counters" MAP(VARCHAR, BIGINT)' in types["metrics"]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, records: list[TrialRecord]) -> None:
    with pytest.raises(StoreError, match=r"cannot write .*trials\.parquet") as caught:
        write_parquet(tmp_path / "nowhere", records)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mib", [1, 40])
def test_a_record_of_any_length_is_written(tmp_path: Path, records: list[TrialRecord], mib: int) -> None:
    long = records[0].model_copy(update={"notes": ["ä" * (mib << 19)]})
    path = write_parquet(tmp_path, [*records, long])
    assert duckdb.sql(f"SELECT max(len(notes[1])), count(*) FROM '{path}'").fetchall() == [(mib << 19, 4)]


def test_it_is_written_where_memory_is_short(tmp_path: Path, records: list[TrialRecord]) -> None:
    """1200 MiB of address space, 700 of which DuckDB reserves to begin with, and 80 MiB that it may use."""
    (tmp_path / "trials.jsonl").write_text("".join(f"{record.model_dump_json()}\n" for record in records))
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from freestone.records import parquet\n"
        "from freestone.records.schema import TrialRecord\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1200 << 20, 1200 << 20))\n"
        "parquet._CONFIG['memory_limit'] = '80MiB'\n"
        "folder = Path(sys.argv[1])\n"
        "lines = (folder / 'trials.jsonl').read_text().splitlines()\n"
        "parquet.write_parquet(folder, [TrialRecord.model_validate_json(line) for line in lines])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path / PARQUET_FILE}'").fetchall() == [(3,)]
