#!/usr/bin/env python3
"""A real program to measure: CPython parsing and serialising JSON and aggregating it in an in-memory SQLite.

It stands for the many services that take documents in, keep some of them, and answer questions: small blocks of many
sizes with short lives (parsing), a long-lived population that is replaced piece by piece in no order (the cache),
long strings (serialising) and a C library with its own patterns of allocation (SQLite).

Run it with ``PYTHONMALLOC=malloc``, and without ``-E`` or ``-I``, which would drop it. Otherwise CPython keeps blocks
of up to 512 bytes to itself and no allocator ever sees them: 0.7 million calls of malloc instead of 13 million per 100
batches, and no difference to measure.

The data comes from a fixed seed, so that every run does the same work and prints the same line.

Prints one line of JSON: what was done and a digest of all answers. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sqlite3
import sys
from collections.abc import Iterator
from typing import Any

SEED = 20261120
BATCH = 400
"""Documents that arrive together: one JSON text of about 300 KB."""
TEXTS = 8
"""Different texts; they arrive again and again, so that making them up is a small part of the run."""
CACHED = 64
"""Batches that stay in memory; each new one takes the place of a random old one."""
WORDS = ("amber", "basalt", "chalk", "dolomite", "emery", "flint", "gneiss", "hornfels", "ironstone", "jasper")


def documents(source: random.Random, count: int, first: int) -> Iterator[dict[str, Any]]:
    """Orders of a stone merchant: nested, with short and long strings, small and large integers and optional parts."""
    for number in range(first, first + count):
        order: dict[str, Any] = {
            "id": number,
            "customer": f"{source.choice(WORDS)}-{source.randrange(5000)}",
            "placed": f"2026-{source.randrange(1, 13):02d}-{source.randrange(1, 29):02d}",
            "lines": [
                {
                    "stone": source.choice(WORDS),
                    "slabs": source.randrange(1, 40),
                    "cents": source.randrange(100, 90_000),
                    "marks": [source.getrandbits(40) for _ in range(source.randrange(24))],
                }
                for _ in range(source.randrange(1, 7))
            ],
        }
        if source.random() < 0.3:
            order["note"] = " ".join(source.choices(WORDS, k=source.randrange(3, 120)))
        yield order


def prepare() -> list[str]:
    """The JSON texts that arrive, each a batch of documents."""
    source = random.Random(SEED)
    return [json.dumps(list(documents(source, BATCH, text * BATCH))) for text in range(TEXTS)]


def open_database() -> sqlite3.Connection:
    """An empty in-memory database for the lines of all orders."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.execute(
        "CREATE TABLE line (number INTEGER, customer TEXT, month TEXT, stone TEXT, slabs INTEGER, cents INTEGER)"
    )
    return database


def store(database: sqlite3.Connection, orders: list[dict[str, Any]]) -> None:
    """Puts every line of the orders into the database, in one transaction."""
    database.execute("BEGIN")
    database.executemany(
        "INSERT INTO line VALUES (?, ?, ?, ?, ?, ?)",
        (
            (order["id"], order["customer"], order["placed"][:7], line["stone"], line["slabs"], line["cents"])
            for order in orders
            for line in order["lines"]
        ),
    )
    database.execute("COMMIT")


def questions(database: sqlite3.Connection) -> Iterator[list[tuple[Any, ...]]]:
    """What is asked of the database at the end; whole numbers only, so that no order of addition shows."""
    yield database.execute(
        "SELECT stone, month, count(*), sum(slabs), sum(slabs * cents) FROM line GROUP BY stone, month ORDER BY 1, 2"
    ).fetchall()
    yield database.execute(
        "SELECT customer, group_concat(DISTINCT stone), max(cents) FROM line"
        " GROUP BY customer HAVING count(*) > 3 ORDER BY 3 DESC, 1 LIMIT 400"
    ).fetchall()
    yield database.execute(
        "SELECT substr(customer, 1, instr(customer, '-') - 1) AS house, count(DISTINCT number), sum(slabs) FROM line"
        " GROUP BY house ORDER BY house"
    ).fetchall()


def run(batches: int) -> dict[str, int | str]:
    """The whole job over ``batches`` batches; what it returns depends on nothing else."""
    texts = prepare()
    chooser = random.Random(SEED + 1)
    digest = hashlib.sha256()
    database = open_database()
    cache: list[list[dict[str, Any]]] = []
    lines = 0
    for batch in range(batches):
        orders = json.loads(texts[batch % TEXTS])
        lines += sum(len(order["lines"]) for order in orders)
        store(database, orders)
        if len(cache) < CACHED:
            cache.append(orders)
        else:
            cache[chooser.randrange(CACHED)] = orders
        # Answers go out as JSON again: one cached batch, changed and sorted by what its orders cost.
        answer = [
            {**order, "total": sum(line["slabs"] * line["cents"] for line in order["lines"])}
            for order in cache[chooser.randrange(len(cache))]
        ]
        answer.sort(key=lambda order: (order["total"], order["id"]))
        digest.update(json.dumps(answer, sort_keys=True).encode())
    for rows in questions(database):
        digest.update(repr(rows).encode())
    return {"orders": batches * BATCH, "lines": lines, "digest": digest.hexdigest()[:16]}


def main(arguments: list[str] | None = None) -> int:
    """Runs the job and prints its one line."""
    parser = argparse.ArgumentParser(description="Parse and serialise JSON, aggregate it in an in-memory SQLite.")
    parser.add_argument("--batches", type=int, default=50, help=f"batches of {BATCH} orders (default 50)")
    options = parser.parse_args(arguments)
    if options.batches < 1:
        parser.error("--batches must be at least 1")
    if sys.flags.ignore_environment or not os.environ.get("PYTHONMALLOC", "").startswith("malloc"):
        print("json_sqlite: without PYTHONMALLOC=malloc CPython hides small blocks from malloc", file=sys.stderr)
    print(json.dumps(run(options.batches)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
