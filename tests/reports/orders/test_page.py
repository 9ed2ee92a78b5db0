"""Orders of malloc and free on the page: their tables, and the picture against LIFO."""

from __future__ import annotations

import json
from typing import Any

from invented_orders import Measured, measured, ordered

from freestone.reports import html, pictures
from freestone.reports.orders import chart as drawing
from freestone.reports.orders import data as orders
from freestone.reports.orders import page as orders_page
from freestone.reports.page import experiment_part


def test_without_lifo_there_is_no_figure() -> None:
    workloads = [ordered("fifo"), ordered("random")]
    (part,) = orders_page.parts(*measured({(each.name, "glibc"): [(5.0, 1.0)] for each in workloads}, workloads))
    assert part.against is None
    assert part.gist == ""


def test_the_tables_say_what_was_measured_and_what_the_floor_ate(made: Measured) -> None:
    (part,) = orders_page.parts(*made)
    assert part.title == "16 B, 100 live"
    assert part.gist == "to LIFO: 2.00 (freestone, random)"
    assert part.costs.columns == ["", "lifo", "random", "random, shuffle on the clock"]
    assert part.costs.rows == [
        ["glibc", "5.00 ns, 200 M/s", "2.00 ns, 500 M/s", "10.00 ns, 100 M/s"],
        ["freestone", "3.00 ns, 333 M/s", "7.00 ns, 143 M/s", "–"],
    ]
    assert part.against is not None
    assert part.against.numbers.columns == ["", "random", "random, shuffle on the clock"]
    (_, eaten, published), (_, net, absent) = part.against.numbers.rows
    assert (eaten, absent) == ("–", "–")
    assert published.startswith("2.00 [2.00")
    assert net.startswith("2.00 [2.00")


def test_of_too_few_rounds_the_ratio_stands_alone(made: Measured) -> None:
    experiment, summary, records = made
    (part,) = orders_page.parts(experiment, summary, [record for record in records if record.round == 0])
    assert part.against is not None
    assert part.against.numbers.rows[1][1] == "2.00 [?]"


def test_they_stand_on_the_page_and_among_the_pictures(made: Measured, results: Any, tmp_path: Any) -> None:
    part = experiment_part(*made, anchor="only")
    page = html.render([part])
    assert "<h2>Orders of malloc and free</h2>" in page
    assert "333 M/s" in page
    assert "2.00 [2.00, 2.00]" in page
    assert "orders.16-b-100-live.time-against-lifo.svg" in {p.name for p in pictures.write(part, tmp_path, "svg")}
    alone = experiment_part(results.experiment, results.summary, results.records, anchor="only")
    assert "<h2>Orders of malloc and free</h2>" not in html.render([alone])


def test_the_picture_has_a_point_for_each_ratio(made: Measured) -> None:
    (family,) = orders.orders(made[0].workloads)
    against = orders.against_lifo(family, orders.costs(*made, family))
    chart = drawing.draw(made[0], family, against)
    assert chart is not None
    text = json.dumps(chart.to_dict())
    assert '"freestone 2.00"' in text
    assert '"glibc 2.00"' in text
    assert drawing.draw(made[0], family, {"glibc": {}}) is None
