"""One results folder, opened: its records as data frames, and every figure of the report as a chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from freestone.analysis import score as scored
from freestone.analysis import summarise
from freestone.notebook.frames import Kind, frame
from freestone.records.schema import FIGURE, Experiment, InstructionCounts, Metrics, Score, Summary, TrialRecord
from freestone.reports import figures, heatmap, published, source, vega
from freestone.reports.families import families
from freestone.reports.orders import chart as orders_chart
from freestone.reports.orders import data as orders
from freestone.reports.published import picture
from freestone.reports.scaling import chart as scaling_chart
from freestone.reports.scaling.data import Measure
from freestone.reports.sizes import chart as sizes_chart
from freestone.reports.sizes import data as sizes
from freestone.reports.theme import LIGHT, Theme
from freestone.reports.vega import Chart

_METRICS = [name for name in Metrics.model_fields if name not in ("counters", "series")]


def load(folder: str | Path) -> Results:
    """Open a results folder of ``freestone compare`` or ``freestone bench``; the summary is computed from its records.

    Damaged lines are left out and named in ``Results.damage``.

    Raises:
        freestone.records.store.StoreError: it is no results folder, or cannot be read.
    """
    path = Path(folder)
    found = source.read(path, summarise)
    return Results(
        folder=path,
        experiment=found.experiment,
        records=found.records,
        summary=found.summary,
        instructions=found.instructions,
        damage=found.damage,
    )


class Results:
    """What a results folder holds.

    Attributes:
        folder: where it lies.
        experiment: its head: machine, workloads, configurations.
        records: one for each trial, as measured.
        summary: means, medians, ratios and intervals, computed from the records.
        instructions: what ``freestone count`` has counted under valgrind, or None.
        damage: one line that names damaged records, or None.
    """

    def __init__(
        self,
        *,
        folder: Path,
        experiment: Experiment,
        records: Sequence[TrialRecord],
        summary: Summary,
        instructions: InstructionCounts | None = None,
        damage: str | None = None,
    ) -> None:
        self.folder, self.experiment, self.records, self.summary = folder, experiment, records, summary
        self.instructions, self.damage = instructions, damage

    def __repr__(self) -> str:
        head = self.experiment
        return (
            f"<freestone results {head.id}: {len(head.workloads)} workloads, "
            f"{len(head.configurations)} configurations, {len(self.records)} trials>"
        )

    @property
    def workloads(self) -> list[str]:
        """Names, in the order of the experiment."""
        return [each.name for each in self.experiment.workloads]

    @property
    def configurations(self) -> list[str]:
        """Names, in the order of the experiment."""
        return [each.name for each in self.experiment.configurations]

    # --- data frames --------------------------------------------------------------------------------------------------

    def trials(self, kind: Kind = "arrow") -> Any:
        """One row for each trial.

        Columns: workload, configuration, round (from 0), position, repeat, status, reason, every metric of the schema
        (``_s`` seconds, ``_kib`` kibibytes), counters by their names, and what a program says of itself as
        ``figure:NAME``. What was not measured is null.
        """
        rows = []
        for record in self.records:
            row: dict[str, Any] = {
                name: getattr(record, name)
                for name in (
                    "workload",
                    "configuration",
                    "round",
                    "position",
                    "repeat",
                    "started_at",
                    "status",
                    "reason",
                )
            }
            row |= {name: getattr(record.metrics, name, None) for name in _METRICS}
            row |= record.metrics.counters if record.metrics is not None else {}
            row |= {FIGURE + name: value for name, value in (record.figures or {}).items()}
            rows.append(row)
        return frame(rows, kind)

    def cells(self, kind: Kind = "arrow") -> Any:
        """One row for each workload, configuration and metric.

        Columns: workload, configuration, metric, mean (geometric, null where a value was 0) and median (both in the
        metric's unit), and against the baseline ratio, low, high (which hold all at once), pairs, different; null for
        the baseline itself. What failed or was not proved has no row; see ``left_out``.
        """
        rows = []
        for cell in self.summary.cells:
            for metric, median in cell.median.items() if cell.status == "ok" else ():
                row: dict[str, Any] = {
                    "workload": cell.workload,
                    "configuration": cell.configuration,
                    "metric": metric,
                    "mean": cell.mean.get(metric),
                    "median": median,
                }
                ratio = cell.ratio.get(metric)
                row |= {
                    "ratio": ratio.value if ratio else None,
                    "low": ratio.low if ratio else None,
                    "high": ratio.high if ratio else None,
                    "pairs": ratio.pairs if ratio else None,
                    "different": ratio.different if ratio else None,
                }
                rows.append(row)
        return frame(rows, kind)

    def left_out(self, kind: Kind = "arrow") -> Any:
        """One row for each workload and configuration without a result: status (failed, timeout, invalid), reason."""
        rows = [
            {name: getattr(cell, name) for name in ("workload", "configuration", "status", "reason")}
            for cell in self.summary.cells
            if cell.status != "ok"
        ]
        return frame(rows or [], kind)

    def orders(self, kind: Kind = "arrow") -> Any:
        """One row for each workload that is an order of malloc and free, and each configuration.

        Columns: size (bytes), live (blocks), order, shuffled (whether the order is drawn inside the timed loop),
        workload, configuration; of one malloc or free the medians ns, floor_ns (the harness) and net_ns,
        and million_per_second; against LIFO ratio, low, high (95 %), pairs. The ratio is of times net of the harness,
        but with the shuffle on the clock of those with it, as others published it. Null where the harness eats it.
        """
        rows = []
        for family in orders.orders(self.experiment.workloads):
            costs = orders.costs(self.experiment, self.summary, self.records, family)
            against = orders.against_lifo(family, costs)
            for configuration, found in costs.items():
                for member, cost in found.items():
                    ratio = against[configuration].get(member)
                    low, high = (ratio.interval if ratio else None) or (None, None)
                    rows.append(
                        {
                            "size": family.size,
                            "live": family.live,
                            "order": member.order,
                            "shuffled": member.shuffled,
                            "workload": member.workload,
                            "configuration": configuration,
                            "ns": cost.gross,
                            "million_per_second": cost.million_a_second,
                            "floor_ns": cost.floor,
                            "net_ns": cost.net,
                            "ratio": ratio.value if ratio else None,
                            "low": low,
                            "high": high,
                            "pairs": ratio.pairs if ratio else None,
                        }
                    )
        return frame(rows, kind)

    def score(self, subject: str | None = None) -> Score:
        """One configuration against the best of the others on every workload, and the whole field.

        Args:
            subject: a configuration; freestone, or else the baseline, where it is None.
        """
        asked = subject or ("freestone" if "freestone" in self.configurations else self.experiment.baseline)
        self._require(asked, self.configurations, "configuration")
        return scored(self.experiment, self.records, asked)

    # --- charts -------------------------------------------------------------------------------------------------------

    def overview(self, metric: str | None = None, *, theme: Theme = LIGHT, width: int = 760) -> Chart:
        """Every workload under every configuration, coloured by its ratio to the baseline.

        Args:
            metric: whose ratio; each workload's own time where it is None.
            width: of the plot, pixels.
        """
        return _ready(heatmap.draw(heatmap.squares(self.experiment, self.summary, metric)), theme, width)

    def points(self, workload: str, metric: str = "wall_s", *, theme: Theme = LIGHT, width: int = 560) -> Chart:
        """Every trial of a workload as a dot, the geometric mean as a bar."""
        self._require(workload, self.workloads, "workload")
        return _ready(figures.points(self.experiment, self.summary, self.records, workload, metric), theme, width)

    def ratios(self, workload: str, metric: str = "wall_s", *, theme: Theme = LIGHT, width: int = 560) -> Chart:
        """The ratio of every configuration to the baseline with its interval."""
        self._require(workload, self.workloads, "workload")
        return _ready(figures.ratios(self.experiment, self.summary, workload, metric), theme, width)

    def trade(self, workload: str, memory: str = "peak_rss_kib", *, theme: Theme = LIGHT, width: int = 560) -> Chart:
        """Time against memory, with what nothing else beats in both joined by dotted stairs."""
        self._require(workload, self.workloads, "workload")
        return _ready(figures.trade(self.experiment, self.summary, workload, memory), theme, width)

    def memory_over_time(
        self, workload: str, configuration: str, *, theme: Theme = LIGHT, width: int = 560
    ) -> Chart | None:
        """Resident memory over the trial of median time; None where no trial has a series."""
        self._require(workload, self.workloads, "workload")
        self._require(configuration, self.configurations, "configuration")
        chart = figures.series(self.experiment, self.summary, self.records, workload, configuration)
        return None if chart is None else _ready(chart, theme, width)

    def noise(self, workload: str, *, theme: Theme = LIGHT, width: int = 560) -> Chart | None:
        """The baseline against itself, by quantity; None where it was not run twice."""
        self._require(workload, self.workloads, "workload")
        chart = figures.noise(self.summary, workload)
        return None if chart is None else _ready(chart, theme, width)

    def sizes(self, workload: str = "sizes", *, theme: Theme = LIGHT) -> dict[str, Chart]:
        """What a block costs by its size, for a workload that tells it: bars in a panel for each configuration.

        By title: malloc and free, calloc, every page touched, every byte written; empty where the workload tells none.
        """
        self._require(workload, self.workloads, "workload")
        held = self.experiment, self.summary, self.records, workload
        drawn = {each.title: sizes_chart.draw(*held, each) for each in sizes.courses(self.records, workload)}
        return {title: _ready(chart, theme, 0) for title, chart in drawn.items() if chart is not None}

    def scaling(self, measure: Measure = "time", *, theme: Theme = LIGHT, width: int = 560) -> dict[str, Chart]:
        """A measure against threads, size or live blocks, for workloads that differ in one number; by name and axis.

        Args:
            measure: ``time``, ``peak_rss_kib`` or ``minor_faults``; time and faults of one operation where programs say
                how many there were.
        """
        held = self.experiment, self.summary, self.records
        drawn = {
            f"{each.name} by {each.axis}": scaling_chart.draw(*held, each, measure)
            for each in families(self.experiment.workloads)
        }
        return {name: _ready(chart, theme, width) for name, chart in drawn.items() if chart is not None}

    def against_lifo(self, *, theme: Theme = LIGHT, width: int = 560) -> dict[str, Chart]:
        """The time of each order of malloc and free as ratio to LIFO's, net of the harness, by size and live blocks.

        The numbers are those of ``orders``.
        """
        drawn = {}
        for family in orders.orders(self.experiment.workloads):
            costs = orders.costs(self.experiment, self.summary, self.records, family)
            against = orders.against_lifo(family, costs)
            drawn[family.title] = orders_chart.draw(self.experiment, family, against)
        return {title: _ready(chart, theme, width) for title, chart in drawn.items() if chart is not None}

    def published(self, *, theme: Theme = LIGHT, width: int = 560) -> dict[str, Chart]:
        """Published tables of which the experiment measured, or valgrind counted, enough, drawn beside that.

        By their titles, the same as in the report.
        """
        found = published.reproductions(self.experiment, self.summary, self.records, self.instructions)
        return {each.title: _ready(picture.draw(each), theme, width) for each in found}

    @staticmethod
    def _require(name: str, names: Sequence[str], what: str) -> None:
        if name not in names:
            raise KeyError(f"no {what} is called '{name}'; there are {', '.join(names)}")


def _ready(chart: Chart, theme: Theme, width: int) -> Chart:
    """With the theme in it, and as wide as asked where the report lets it be as wide as the page."""
    return vega.standing_alone(chart, theme, width)
