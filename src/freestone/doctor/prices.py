"""What page faults and calls about memory cost on this machine, by a small program of ours."""

from __future__ import annotations

import json
import subprocess
from typing import Final

from pydantic import ValidationError

from freestone import native
from freestone.doctor.observations import Prices

PROGRAM: Final = "freestone-prices"
_LIMIT_S: Final = 60.0


class NotPriced(RuntimeError):
    """The prices could not be taken; the message is one line."""


def take() -> Prices:
    """Measure them; takes about a second.

    Raises:
        NotPriced: the program failed, or said nothing that can be.
        NativePartMissing: it is not installed.
    """
    words = [str(native.path(PROGRAM))]
    try:
        done = subprocess.run(words, capture_output=True, timeout=_LIMIT_S, check=True)
        return read(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise NotPriced(f"{PROGRAM} does not work: {error}".splitlines()[0]) from error


def read(text: bytes) -> Prices:
    """Its line of JSON.

    Raises:
        ValueError: it is none, or holds what cannot be.
    """
    told = json.loads(text)
    if not isinstance(told, dict) or not isinstance(told.get("faults"), dict):
        raise ValueError("no prices")
    try:
        return Prices.model_validate({**told, **told["faults"]})
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{first['msg']} at {list(first['loc'])}") from error
