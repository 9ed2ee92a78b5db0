"""What a suite file holds; ``docs/reference/suites.md`` explains it to those who write one."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Scalar = str | int | float


def _without(characters: str, said: str) -> AfterValidator:
    def checked(text: str) -> str:
        if any(character in text for character in characters):
            raise ValueError(f"it cannot hold {said}")
        return text

    return AfterValidator(checked)


def _some_command(text: str) -> str:
    if not text.strip():
        raise ValueError("it holds no command")
    return text


Name = Annotated[str, Field(min_length=1), _without("".join(map(chr, [*range(32), 127])), "a control character")]
Word = Annotated[str, _without("\0", "a NUL character")]
Line = Annotated[str, AfterValidator(_some_command), _without("\0", "a NUL character")]
"""A command for a shell."""
Variable = Annotated[str, Field(min_length=1), _without("=\0", "= or a NUL character")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Need(_Table):
    """A program that a workload uses, and the Debian package that brings it.

    ``folder``: where it lies if not in PATH, with ``*`` for what varies; of several the highest version is taken.
    """

    program: str = Field(min_length=1)
    package: str = Field(min_length=1)
    folder: str | None = Field(default=None, min_length=1)


class Entry(_Table):
    """One ``[[workload]]``: a command with placeholders, for one workload or for every combination of a matrix.

    ``memory_mib``, ``disk_mib``: what it takes under the allocator that takes most; None for what every machine has.
    ``idle``: the words behind the command by which one that reads ``json`` sleeps ``{idle}`` seconds after its work.
    ``smaller``: values to replace others with where there is too little of either; the first that suffice are taken.
    ``setup`` to ``cleanup``, ``warmup``, ``input``: what stands around its runs, as the options of these names.
    ``wait_tree`` to ``output_may_differ``: what counts as a result, as the options of those names.
    """

    name: Name
    command: list[Word] = Field(min_length=1)
    environment: dict[Variable, Word] = Field(default_factory=dict)
    needs: list[Need] = Field(default_factory=list)
    reads: Literal["process", "json"] = "process"
    counted: bool = True
    values: dict[str, Scalar] = Field(default_factory=dict)
    matrix: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = Field(default_factory=dict)
    cases: list[dict[str, Scalar]] = Field(default_factory=list)
    quick: dict[str, Scalar] = Field(default_factory=dict)
    counting: list[str] = Field(default_factory=list)
    idle: list[str] = Field(default_factory=lambda: ["--idle", "{idle}"])
    cannot: str | None = Field(None, min_length=1)
    memory_mib: Scalar | None = None
    disk_mib: Scalar | None = None
    smaller: list[dict[str, Scalar]] = Field(default_factory=list)
    setup: Line | None = None
    prepare: Line | None = None
    conclude: Line | None = None
    cleanup: Line | None = None
    warmup: int = Field(0, ge=0, le=1000)
    input: Word | None = Field(None, min_length=1)
    keep_env: bool = False
    wait_tree: bool = False
    allow_survivors: bool = False
    allow_failures: int = Field(0, ge=0)
    ignore_status: list[Annotated[int, Field(ge=0, le=255)]] = Field(default_factory=list)
    output_may_differ: bool = False
    compare_output: Line | None = None

    @model_validator(mode="after")
    def _means_one_thing(self) -> Self:
        if self.wait_tree and self.allow_survivors:
            raise ValueError("wait_tree and allow_survivors say opposite things of what outlives the first process")
        if self.output_may_differ and self.compare_output is not None:
            raise ValueError("output_may_differ compares no output, so compare_output has nothing to do")
        return self


class Setting(_Table):
    """One ``[[setting]]``: an environment under which these allocators are measured as well."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    allocators: list[str] = Field(min_length=1)
    environment: dict[Variable, Word] = Field(min_length=1)


class Suite(_Table):
    """A whole file.

    ``idles``: its programs may be made to sleep after their work: those that read ``json`` by the words of their entry,
    the others by being kept at their end. ``include``: names of suites whose workloads and settings it has too, behind
    its own.
    """

    title: str = Field(min_length=1)
    idles: bool = False
    include: list[str] = Field(default_factory=list)
    setting: list[Setting] = Field(default_factory=list)
    workload: list[Entry] = Field(min_length=1)


class SuiteError(Exception):
    """A suite cannot be found, read or used; the message is one line that names the place."""
