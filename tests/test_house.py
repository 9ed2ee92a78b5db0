"""The house rules that code can be held to: which way the arrows run, what things are called, what is documented."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "freestone"
ALLOCATOR = REPOSITORY / "allocator" / "src"

# --- the lab: the table of docs/design/lab-rooms.md -------------------------------------------------------------------

ENTRANCE = {"__init__", "__main__", "cli"}
"""The package's own door: not rooms. They may open every room; no room may look back through ``cli``."""


def import_table() -> dict[str, set[str]]:
    """Room -> rooms it may import, as the design page has it."""
    text = (REPOSITORY / "docs" / "design" / "lab-rooms.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)`[^|]*\|[^|]*\| ([^|]+) \|$", text, re.MULTILINE)
    every_room = {room for room, _ in rows}
    table: dict[str, set[str]] = {}
    for room, allowed in rows:
        if allowed == "every room":
            table[room] = every_room
        elif allowed == "nothing of ours":
            table[room] = set()
        else:
            table[room] = set(re.findall(r"`(\w+)`", allowed))
    return table


def sources() -> list[Path]:
    """The package's own; what the build installs into it is not source."""
    return sorted(path for path in PACKAGE.rglob("*.py") if "_native" not in path.parts)


def room_of(source: Path) -> str:
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(source: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything a source imports, also inside functions."""
    package = ["freestone", *source.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"), str(source))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for name in node.names:
                yield node.lineno, f"{origin}.{name.name}"


def rooms_imported(source: Path) -> Iterator[tuple[int, str]]:
    rooms = {room_of(each) for each in sources()}
    for line, module in imported_modules(source):
        parts = module.split(".")
        if parts[0] == "freestone" and len(parts) > 1 and parts[1] in rooms:
            yield line, parts[1]


def test_the_table_of_rooms_can_be_read() -> None:
    table = import_table()
    assert {"records", "allocators", "trials", "experiments", "reports", "commands"} <= set(table)
    assert table["reports"] == {"records", "analysis"}
    assert table["records"] == set()
    assert table["commands"] >= set(table) - {"commands"}


def test_every_room_is_in_the_table() -> None:
    rooms = {room_of(source) for source in sources()} - ENTRANCE
    assert rooms <= set(import_table()), "a new room needs a row in docs/design/lab-rooms.md"


@pytest.mark.parametrize("source", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_one_way(source: Path) -> None:
    room = room_of(source)
    if room in ENTRANCE:
        return
    allowed = import_table().get(room, set()) | {room}
    against = [f"line {line}: {other}" for line, other in rooms_imported(source) if other not in allowed]
    assert not against, f"{room} may import {sorted(allowed)}"


def test_nothing_imports_commands_but_the_entrance() -> None:
    guilty = [
        str(source.relative_to(PACKAGE))
        for source in sources()
        if room_of(source) not in ENTRANCE | {"commands"}
        and any(other in {"commands", "cli"} for _, other in rooms_imported(source))
    ]
    assert not guilty


# --- the allocator: api -> thread cache -> heap -> slab -> arena -> os ------------------------------------------------

LAYERS = (
    "os",
    "arena",
    "large",
    "slab",
    "hardened",
    "guarded",
    "heap",
    "thread_cache",
    "allocate",
    "cxx_runtime",
    "cxx_operators",
    "libc",
    "api",
)
"""From the ground up. ``large`` stands beside the slabs, on the arena; ``allocate`` is what all entry points share."""
ROOMS = {
    "os": {"clock", "control_group", "memory_hooks"},
    "arena": {"span", "street", "bins", "ages", "spans", "huge", "purge", "arena_lock"},
    "large": {"mappings"},
    "hardened": {
        "hard_inside",
        "hard_shard",
        "hard_slab",
        "hard_held",
        "hard_large",
        "hard_share",
        "hard_closed",
        "hard_fault",
    },
    "heap": {
        "heap_inside",
        "heap_choice",
        "heap_figures",
        "shelf",
        "flush",
        "depot",
        "magazine_pool",
        "reclaim",
        "budget",
        "lend",
        "check",
    },
    "guarded": {
        "guarded_inside",
        "guarded_report",
        "fault_handler",
        "trace",
        "trace_loaded",
        "trace_linked",
        "unwind_step",
    },
    "thread_cache": {
        "last_resort",
        "sampling",
        "thread_inside",
        "thread_life",
        "borrow",
        "keeping",
        "last_look",
        "fork",
    },
}
"""What a layer is made of, where that is more than one file; the rooms of a layer know each other."""
LEAVES = {
    "platform",
    "refaults",
    "decay",
    "zeros",
    "byte_exchange",
    "bits",
    "fence",
    "size_class",
    "tag",
    "magazine",
    "options",
    "limit",
    "lock",
    "text",
    "message",
    "keeper",
    "object",
    "gate",
    "turns",
    "shelter",
    "patience",
    "direct_binding",
    "elf_objects",
    "elf_symbols",
    "made",
    "random",
    "hard_canary",
}
"""Known to every layer; they know each other and ``os``, nothing else."""
SYSTEM_CALLS = {"mmap", "munmap", "mremap", "madvise", "mprotect", "prctl", "syscall", "brk", "sbrk", "write", "open"}


def layer_of(source: Path) -> str:
    rooms = (layer for layer, rooms in ROOMS.items() if source.stem in rooms)
    several = (layer for layer in ("api", "cxx_runtime", "cxx_operators", "libc") if source.stem.startswith(layer))
    return next(several, next(rooms, source.stem))


def native_sources() -> list[Path]:
    return sorted([*ALLOCATOR.glob("*.c"), *ALLOCATOR.glob("*.h")])


def included_layers(source: Path) -> list[str]:
    text = source.read_text(encoding="utf-8")
    return [layer_of(Path(name)) for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE)]


def without_comments(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", " ", text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def test_every_native_source_has_a_layer() -> None:
    assert native_sources()
    strangers = {layer_of(source) for source in native_sources()} - set(LAYERS) - LEAVES
    assert not strangers, "a new file of the allocator needs a place among LAYERS or LEAVES"


@pytest.mark.parametrize("source", native_sources(), ids=lambda path: str(path.name))
def test_includes_run_downwards(source: Path) -> None:
    layer = layer_of(source)
    below = LAYERS[: LAYERS.index(layer) + 1] if layer in LAYERS else ("os",)
    allowed = {*below, *LEAVES, "freestone"}
    against = [other for other in included_layers(source) if other not in allowed]
    assert not against, f"{source.name} stands on {sorted(allowed)}"


@pytest.mark.parametrize(
    "source", [source for source in native_sources() if layer_of(source) != "os"], ids=lambda path: str(path.name)
)
def test_only_os_makes_system_calls(source: Path) -> None:
    called = set(re.findall(r"(?<![\w.>])(\w+)\s*\(", without_comments(source.read_text(encoding="utf-8"))))
    assert not called & SYSTEM_CALLS


@pytest.mark.parametrize("source", native_sources(), ids=lambda path: str(path.name))
def test_times_keep_their_64_bits(source: Path) -> None:
    """In 32 bits, milliseconds that are compared are wrong for 25 of every 50 days."""
    text = without_comments(source.read_text(encoding="utf-8"))
    assert not re.findall(r"\(u?int32_t\)\s*os_(?:milli|nano)seconds", text)
    assert not re.findall(r"\buint32_t\s+\w*(?:stamp|deadline|until)\b", text)


# --- names and documents ----------------------------------------------------------------------------------------------

FORBIDDEN = {"util", "utils", "utility", "utilities", "helper", "helpers", "misc", "common", "manager", "managers"}
FOLDERS = ("allocator", "probes", "workloads", "src", "tests", "tools", "cmake", "docs", "packaging")


def test_names_are_nouns_of_the_field() -> None:
    paths = [path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*") if "__pycache__" not in path.parts]
    assert len(paths) > 50
    guilty = [
        str(path.relative_to(REPOSITORY)) for path in paths if FORBIDDEN & set(re.split(r"[_\-.]", path.stem.lower()))
    ]
    assert not guilty


def test_readme_opens_with_the_two_commands() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert block
    commands = [line.split("#")[0].strip() for line in block.group(1).splitlines() if line.strip()]
    assert commands[:2] == ["make compare", "make test"]


def make_targets() -> set[str]:
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    return {name for names in re.findall(r"^([\w-]+(?: [\w-]+)*):", text, re.MULTILINE) for name in names.split()}


def test_the_help_of_make_is_one_screen_and_names_what_is_done_most() -> None:
    lines = subprocess.run(
        ["make", "help"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(lines) <= 50
    assert {"compare", "test", "build", "lint", "clean"} <= {line.split()[1] for line in lines}
    assert not [line for line in lines if len(line.split()) < 3]


def test_every_make_target_that_is_named_exists() -> None:
    """In pages and in comments of tools and tests: `make NAME`, set as code."""
    files = [*markdown(), *REPOSITORY.glob("tools/**/*.py"), *REPOSITORY.glob("tests/**/*.py")]
    named = {(file, name) for file in files for name in re.findall(r"`make ([a-z][a-z-]+)", file.read_text("utf-8"))}
    assert named
    assert not [(file.name, name) for file, name in named if name not in make_targets()]


def verbs() -> set[str]:
    from freestone.cli import VERBS

    assert VERBS
    return set(VERBS)


def test_every_verb_is_in_the_reference() -> None:
    text = (REPOSITORY / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert not [verb for verb in verbs() if f"freestone {verb}" not in text]


def test_the_readme_shows_verbs_that_exist() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    shown = {
        verb
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for verb in re.findall(r"freestone (\w+)", block)
    }
    assert {"compare", "run"} <= shown
    assert shown <= verbs()


def markdown() -> list[Path]:
    folders = [(REPOSITORY / folder).rglob("*.md") for folder in FOLDERS]
    return sorted([*REPOSITORY.glob("*.md"), *(page for pages in folders for page in pages)])


def without_code(page: Path) -> str:
    """A page without its fenced blocks, where ``#`` begins a comment and ``](`` may be anything."""
    return re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The fragments by which a page's headings are reached, made as GitHub makes them."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", without_code(page), re.MULTILINE):
        text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "").replace("\\", "")
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return {slug if number == 0 else f"{slug}-{number}" for slug, last in found.items() for number in range(last + 1)}


def links(page: Path) -> Iterator[tuple[str, Path, str]]:
    """Each link of a page that stays in the repository: as written, the file it names, and the fragment."""
    text = without_code(page)
    inline = re.findall(r"\]\(([^)\s]+)\)", text)
    for target in [*inline, *re.findall(r'(?:src|srcset|href)="([^"]+)"', text)]:
        if not re.match(r"[a-z]+:", target):
            name, _, fragment = target.partition("#")
            yield target, (page.parent / name if name else page), fragment


@pytest.mark.parametrize("page", markdown(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    assert not [target for target, file, _ in links(page) if not file.exists()]


@pytest.mark.parametrize("page", markdown(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_into_documents_name_a_heading(page: Path) -> None:
    into = [(target, file, fragment) for target, file, fragment in links(page) if fragment and file.suffix == ".md"]
    assert not [target for target, file, fragment in into if file.exists() and fragment not in anchors(file)]


def test_anchors_are_made_as_github_makes_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# What `malloc` costs, and why\n## 1. It can be repeated: harden=1\n## Set\n## Set\n```sh\n# no heading\n```\n"
        "### Time: freestone's ratio to hardened\\_malloc\n",
        encoding="utf-8",
    )
    assert anchors(page) == {
        "what-malloc-costs-and-why",
        "1-it-can-be-repeated-harden1",
        "set",
        "set-1",
        "time-freestones-ratio-to-hardened_malloc",
    }


def test_a_tool_that_needs_the_package_is_shown_with_its_python() -> None:
    tools = {path: path.read_text(encoding="utf-8") for path in (REPOSITORY / "tools").rglob("*.py")}
    needing = [path for path, text in tools.items() if re.search(r"^(?:from|import) freestone", text, re.MULTILINE)]
    assert needing
    pages = {**tools, **{page: page.read_text(encoding="utf-8") for page in markdown()}}
    commands = [f"python3 {path.relative_to(REPOSITORY)}" for path in needing]
    assert not [(page.name, command) for page, text in pages.items() for command in commands if command in text]


def listed(page: Path) -> bool:
    """Whether the index of all documents has a page, or that of its folder, which the other then has."""
    folder = REPOSITORY / "docs"
    indices = {folder / "README.md", *(each / "README.md" for each in page.parents if folder in each.parents)}
    return any(
        page.samefile(file) for index in indices if index.exists() for _, file, _ in links(index) if file.exists()
    )


def test_an_index_lists_every_document() -> None:
    pages = set((REPOSITORY / "docs").rglob("*.md")) - {REPOSITORY / "docs" / "README.md"}
    assert len(pages) > 30
    assert not {str(page.relative_to(REPOSITORY)) for page in pages if not listed(page)}


# --- what is declared -------------------------------------------------------------------------------------------------

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
DISTRIBUTIONS = {"elftools": "pyelftools", "vl_convert": "vl-convert-python"}
"""Import name -> distribution, where they differ."""


def distribution(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9_.-]+", requirement)
    assert match
    return match.group().lower()


EXTRAS = ("figures", "parquet", "dask", "notebook")
"""What the package imports only where it is there; tests/commands/test_extras.py tries it without."""


def test_dependencies_are_those_the_package_imports() -> None:
    wanted = [*PROJECT["project"]["dependencies"]]
    for extra in EXTRAS:
        wanted += PROJECT["project"]["optional-dependencies"][extra]
    declared = {distribution(requirement) for requirement in wanted}
    tops = {module.split(".")[0] for source in sources() for _, module in imported_modules(source)}
    foreign = {top for top in tops if top not in sys.stdlib_module_names and top != "freestone"}
    assert {DISTRIBUTIONS.get(top, top) for top in foreign} == declared


def test_every_dependency_has_a_lower_bound_and_a_locked_version() -> None:
    locked = {
        distribution(line).replace("_", "-")
        for line in (REPOSITORY / "tools" / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [
        *PROJECT["project"]["dependencies"],
        *(r for extra in extras for r in extra),
        *PROJECT["build-system"]["requires"],
    ]
    assert all(">=" in requirement for requirement in wanted)
    assert {distribution(requirement) for requirement in wanted} <= locked


def test_the_changelog_knows_this_version() -> None:
    init = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "(.+)"$', init, re.MULTILINE)
    assert version
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[(Unreleased|{re.escape(version.group(1))})\]", changelog, re.MULTILINE)


def changelog_repeats(text: str) -> list[str]:
    """Headings and entries that a version of the changelog has twice."""
    twice = []
    for version in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        parts = re.split(r"^(?=### |- )", version, flags=re.MULTILINE)[1:]
        said = [" ".join(part.split()) for part in parts]
        twice += sorted({part for part in said if said.count(part) > 1})
    return twice


def test_no_version_of_the_changelog_has_a_heading_or_an_entry_twice() -> None:
    assert changelog_repeats((REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")) == []


def test_the_first_version_of_the_changelog_is_one_short_list() -> None:
    """It lists what there is, and no change of something that was never released."""
    lines = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("## ")] == ["## [0.1.0] - not released yet"]
    assert len(lines) <= 80


def test_what_a_version_of_the_changelog_has_twice_is_seen() -> None:
    one = "## [2]\n\n### Added\n\n- a\n  b\n\n### Fixed\n\n- c\n"
    assert changelog_repeats(one + "\n## [1]\n\n### Added\n\n- a\n  b\n") == []
    assert changelog_repeats(one + "- a b\n\n### Added\n\n- d\n") == ["### Added", "- a b"]


def test_no_two_rooms_of_the_build_share_what_a_search_found() -> None:
    """What find_program finds is the whole build's: a compiler that one room looks for switches on no other's part.

    Only two rooms of the allocator's tests look for one Python.
    """
    found: dict[str, set[str]] = {}
    for file in [*REPOSITORY.glob("**/CMakeLists.txt"), *REPOSITORY.glob("**/*.cmake")]:
        room = file.relative_to(REPOSITORY)
        if room.parts[0] != "build" and not room.parts[0].startswith("."):
            for name in re.findall(r"\bfind_(?:program|library|path|file)\((\S+)", file.read_text(encoding="utf-8")):
                found.setdefault(name, set()).add(str(room))
    assert len(found) > 5
    assert {name: rooms for name, rooms in found.items() if len(rooms) > 1 and name != "python3"} == {}
