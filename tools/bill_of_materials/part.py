"""A part of a package: what it is called, which it is, and whose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from license_expression import ExpressionError, get_spdx_licensing

Kind = Literal["python", "script", "c library", "compiler", "debian", "rust"]
REGISTRIES: dict[Kind, str] = {"python": "pypi", "script": "npm", "debian": "deb/debian", "rust": "cargo"}
"""How a package URL names where a part comes from (https://github.com/package-url/purl-spec)."""
SPDX = get_spdx_licensing()


@dataclass(frozen=True, order=True)
class Part:
    """Something of somebody else's that a package holds, or cannot do without."""

    name: str
    version: str | None
    """None where nothing says it."""
    kind: Kind
    licence: str | None = None
    """An expression of SPDX; None where nothing says it in these terms."""
    licence_said: str = ""
    """What the part says of its licence in its own words."""

    def url(self) -> str | None:
        """The package URL, ``pkg:pypi/rich@15.0.0``; None where the part is of no registry."""
        registry = REGISTRIES.get(self.kind)
        version = f"@{self.version}" if self.version else ""
        return f"pkg:{registry}/{self.name}{version}" if registry else None


def licence_expression(text: str) -> str | None:
    """A licence as SPDX writes it; None where the text is none of its names and expressions."""
    try:
        return str(SPDX.parse(text.strip(), validate=True)) if text.strip() else None
    except (ExpressionError, AttributeError, TypeError):  # the parser's ways to meet what is no expression
        return None
