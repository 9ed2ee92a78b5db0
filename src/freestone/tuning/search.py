"""The search itself: batch after batch of rounds, each in a results folder of its own, until its time is spent."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from freestone.experiments import Interruption, Outcome, run
from freestone.experiments.events import BudgetSpent, Event
from freestone.experiments.run import Measurement
from freestone.records.schema import Configuration, Experiment
from freestone.tuning import kept, standing
from freestone.tuning.choice import Choice
from freestone.tuning.kept import Batch, Tuning
from freestone.tuning.standing import Prices, Standing

SEARCHED: Final = 0.6
"""Of the time budget; the rest is for the finalists."""


class Search:
    """One session of a search.

    Args:
        folder: with the search's head in it.
        tuning: that head.
        choice: says what is measured next.
        tell: is told in a line before each batch what it is of.
        on_event: is told what happens.
        stop: asked between trials whether to stop.
        changed: asked after each trial what is not as it was.
        measurement: of an experiment, how its trials are taken; None for this machine.
        clock: seconds.
    """

    def __init__(
        self,
        folder: Path,
        tuning: Tuning,
        choice: Choice,
        *,
        tell: Callable[[str], None] = lambda line: None,
        on_event: Callable[[Event], None] = lambda event: None,
        stop: Interruption | None = None,
        changed: Callable[[], str | None] = lambda: None,
        measurement: Callable[[Experiment], Measurement] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._tuning = tuning
        self._choice = choice
        self._tell = tell
        self._on_event = on_event
        self._stop = stop or Interruption()
        self._changed = changed
        self._measurement = measurement
        self._clock = clock
        self._began_s = clock()
        self._batches = kept.batches(folder)
        self._earlier_s = standing.spent_s(self._batches)

    def run(self) -> Outcome:
        """Measure until the search's part of the time is spent, or nothing is left to try.

        Raises:
            StoreError: a record could not be written; earlier ones are as they were.
            LauncherBroken, NativePartMissing: the lab's own parts do not work.
        """
        if self._batches and self._take(self._batches[-1]) is Outcome.INTERRUPTED:
            return Outcome.INTERRUPTED
        while True:
            number = len(self._batches) + 1
            now = self.standing
            worked = self._choice.broken is None
            chosen = self._choice.batch(number, now, self._search_left_s(), self.prices)
            if worked and self._choice.broken is not None:
                self._tell(f"Optuna proposes nothing any more ({self._choice.broken}); every record is kept")
            if not chosen:
                return Outcome.COMPLETE
            self._tell(_line(number, chosen, now))
            batch = kept.begin_batch(self._folder, self._tuning, number, chosen, max(1.0, self._search_left_s()))
            if self._take(batch) is Outcome.INTERRUPTED:
                return Outcome.INTERRUPTED

    @property
    def standing(self) -> Standing:
        """Where it stands now."""
        return standing.of(self._tuning, self._batches)

    @property
    def prices(self) -> Prices | None:
        """What trials take with all that is around them; None before the first."""
        told_s = standing.spent_s(self._batches) - self._earlier_s
        dearer = (self._clock() - self._began_s) / told_s if told_s > 0 else 1.0
        return standing.prices(self._batches, self._tuning.head.baseline, max(1.0, dearer))

    @property
    def trials(self) -> int:
        """How many there are."""
        return sum(len(each.records) for each in self._batches)

    @property
    def left_s(self) -> float:
        """Seconds of the whole time budget that are not spent yet."""
        budget = self._tuning.head.time_budget_s or 0.0
        return budget - self._earlier_s - (self._clock() - self._began_s)

    @property
    def wanting_s(self) -> float | None:
        """The time budget that has room for the first batch; None where this one had, or nothing is known of trials."""
        if not self._batches or self.prices is None:
            return None
        first = self._batches[0]
        names = [each.name for each in first.experiment.configurations if each.name != self._tuning.head.baseline]
        if 1 + max((each.round for each in first.records), default=0) >= kept.ROUNDS:
            return None
        return self.prices.round_s(names) * kept.ROUNDS / SEARCHED

    def finalists(self) -> list[str]:
        """The names of those to confirm, the worthiest first."""
        found = self._choice.finalists(self.standing, self.left_s, self.prices)
        return [each.name for each in found]

    def _search_left_s(self) -> float:
        return self.left_s - (1 - SEARCHED) * (self._tuning.head.time_budget_s or 0.0)

    def _take(self, batch: Batch) -> Outcome:
        """Run what a batch lacks, and read again what there is."""
        outcome = run(
            batch.experiment,
            batch.folder,
            on_event=self._heard,
            stop=self._stop,
            changed=self._changed,
            measurement=None if self._measurement is None else self._measurement(batch.experiment),
            clock=self._clock,
        )
        self._batches = kept.batches(self._folder)
        return outcome

    def _heard(self, event: Event) -> None:
        # A batch that has no time for all of its rounds is nobody's concern.
        if not isinstance(event, BudgetSpent):
            self._on_event(event)


def _line(number: int, chosen: Sequence[Configuration], before: Standing) -> str:
    """What a batch is of, and how far the search has come."""
    new = sum(each.name not in before.configurations for each in chosen)
    again = len(chosen) - new
    parts = [f"{new} new" if new else "", f"{again} that may be best" if again else ""]
    tried = sum(name != before.baseline for name in before.configurations)
    so_far = f"; so far {tried} tried, {len(before.out)} out, {len(before.failed)} failed" if tried else ""
    return f"search {number}: {' and '.join(filter(None, parts))}{so_far}"
