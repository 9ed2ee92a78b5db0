"""What was seen over time as figures: sizes, faults, the heap; a line where there is nothing to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from freestone.doctor.observations import HeapPoint, Observations
from freestone.doctor.over_time import FEWEST, fault_rates, faults_between, lacking
from freestone.reports.diagnosis import over_time
from freestone.reports.diagnosis.over_time import Track
from freestone.reports.drawn import NOTHING, Figure, Table
from freestone.reports.quantities import Kind, Scale
from freestone.reports.vega import document

_HEAP: Mapping[str, Callable[[HeapPoint], int | None]] = {
    "live": lambda point: point.live_kib,
    "held": lambda point: point.held_kib,
    "resident": lambda point: point.rss_kib,
}
"""What of the heap is drawn, by name."""


def figures(seen: Observations) -> list[Figure]:
    """Resident size, virtual size and faults over time, and the heap where it was sampled."""
    return [*_from_outside(seen), *_heap(seen)]


def lines(seen: Observations) -> list[str]:
    """Why something is not drawn, a line each."""
    said = [line] if (line := lacking(seen)) is not None else []
    if not _heap_is_drawn(seen):
        looks = len(seen.heap.points) if seen.heap is not None else 0
        why = f"it was looked at {looks} time{'' if looks == 1 else 's'} only" if seen.heap else None
        said.append(f"Its heap is not drawn: {why or seen.unseen.get('heap', 'it was not watched')}.")
    return said


def _from_outside(seen: Observations) -> list[Figure]:
    if lacking(seen) is not None:
        return []
    points, rates = seen.course, fault_rates(seen.course)
    looked = f"Of the whole tree, looked at from outside {len(points)} times in a run that is in no other figure."
    if seen.running is not None:
        looked = f"Of process {seen.running} alone, looked at from outside {len(points)} times."
    fastest = max(rates, key=lambda each: each.per_s)
    rate_table = Table(
        ["from", "to", "page faults a second"],
        [[f"{each.begin_s:.3f} s", f"{each.end_s:.3f} s", f"{each.per_s:,.1f}"] for each in rates],
    )
    steps = [(each.begin_s, each.per_s) for each in rates] + [(rates[-1].end_s, rates[-1].per_s)]
    total = faults_between(points)
    return [
        _figure("Resident size", looked, {"resident": [(each.at_s, each.rss_kib) for each in points]}),
        _figure("Virtual size", looked, {"virtual": [(each.at_s, each.virtual_kib) for each in points]}),
        Figure(
            "Page faults a second",
            f"{total:,} minor faults from the first look to the last, in {len(rates)} stretches of equal length.",
            f"Minor page faults a second over time: at most {fastest.per_s:,.0f}, from {fastest.begin_s:.3f} s on; "
            f"{total:,} in all.",
            document(over_time.draw({"faults": steps}, "count", per_s=True)),
            rate_table,
        ),
    ]


def _heap_is_drawn(seen: Observations) -> bool:
    return seen.heap is not None and len(seen.heap.points) >= FEWEST


def _heap(seen: Observations) -> list[Figure]:
    if seen.heap is None or not _heap_is_drawn(seen):
        return []
    tracks = {
        name: [(point.at_s, float(value)) for point in seen.heap.points if (value := of(point)) is not None]
        for name, of in _HEAP.items()
    }
    tracks = {name: track for name, track in tracks.items() if track}
    said = (
        "Live: asked for and not yet freed. Held: what the C library's heap has from the kernel. Of the process that "
        f"asks most, in a run of its own, {len(seen.heap.points)} looks."
    )
    return [_figure("The heap", said, tracks)]


def _figure(title: str, caption: str, tracks: Mapping[str, Track], kind: Kind = "memory") -> Figure:
    columns = [Scale.over(kind, [value for _, value in track]) for track in tracks.values()]
    by_name = [dict(track) for track in tracks.values()]
    moments = sorted({at for track in tracks.values() for at, _ in track})
    rows = [
        [
            f"{at:.3f} s",
            *(scale.text(found[at]) if at in found else NOTHING for scale, found in _pairs(columns, by_name)),
        ]
        for at in moments
    ]
    ends = []
    for (name, track), scale in zip(tracks.items(), columns, strict=True):
        at, top = max(track, key=lambda each: each[1])
        ends.append(f"{name} at most {scale.text(top)} at {at:.3f} s, {scale.text(track[-1][1])} at the last look")
    return Figure(
        title,
        caption,
        f"{title} over time: {'; '.join(ends)}.",
        document(over_time.draw(tracks, kind)),
        Table(["at", *tracks], rows),
    )


def _pairs(
    scales: Sequence[Scale], found: Sequence[Mapping[float, float]]
) -> list[tuple[Scale, Mapping[float, float]]]:
    return list(zip(scales, found, strict=True))
