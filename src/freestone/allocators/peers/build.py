"""Makes a library of a source folder, as its recipe says."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from freestone.allocators.peers import execution
from freestone.allocators.peers.catalogue import CMake, Compile, Configure, Recipe
from freestone.allocators.peers.execution import Command, CommandFailed
from freestone.allocators.peers.toolchain import CMAKE, CXX, MAKE, C, Tool

# The lab's proof compares build-ids; not every compiler gives one unasked.
_BUILD_ID = "-Wl,--build-id=sha1"


@dataclass
class Workshop:
    """A place to build in and what to build with."""

    source: Path
    """The unpacked package; objects and results are left in it."""
    work: Path
    """For temporary files."""
    log: Path
    jobs: int
    done: list[str] = field(default_factory=list)
    """The commands that were run, with folders relative to the package."""

    def run(self, commands: list[Command], more: dict[str, str] | None = None) -> None:
        """Run commands, several at a time.

        Raises:
            CommandFailed: one of them did not end well.
        """
        settings = "".join(f"{name}={shlex.quote(value)} " for name, value in (more or {}).items())
        self.done += [f"{settings}{command}".replace(f"{self.source}/", "") for command in commands]
        environment = execution.environment(self.work, more)
        execution.run(commands, jobs=self.jobs, log=self.log, environment=environment)


def build(recipe: Recipe, shop: Workshop) -> Path:
    """Build the library; returns where it is, within the source folder.

    Raises:
        CommandFailed: a tool is missing, or a command did not end well, or left no library.
        OSError: the folder cannot be written.
    """
    match recipe:
        case Compile():
            library = _compile(recipe, shop)
        case Configure():
            library = _configure(recipe, shop)
        case CMake():
            library = _cmake(recipe, shop)
    if not library.is_file():
        raise CommandFailed(f"there is no {library.name} after the build")
    return library


def sources(recipe: Compile, folder: Path) -> list[Path]:
    """What the recipe's patterns stand for in a folder, in order of their names, relative to it.

    Raises:
        CommandFailed: a pattern stands for nothing, so the recipe is not for this package.
    """
    found: set[Path] = set()
    for pattern in recipe.sources:
        names = {path.relative_to(folder) for path in folder.glob(pattern)}
        if not names:
            raise CommandFailed(f"the package has no {pattern}")
        found |= names
    return sorted(path for path in found if not any(fnmatch(path.as_posix(), leave) for leave in recipe.without))


def _compile(recipe: Compile, shop: Workshop) -> Path:
    folder = shop.source / recipe.folder
    objects = shop.source / "objects"
    objects.mkdir()
    flags = [
        *recipe.flags,
        "-fPIC",
        # Paths of this machine do not belong into the library, nor into its build-id.
        f"-ffile-prefix-map={shop.source}=.",
        *(f"-D{macro}" for macro in recipe.define),
        *(f"-I{folder / include}" for include in recipe.include),
    ]

    def command(number: int, source: Path) -> tuple[Command, Path]:
        tool, own = (C, recipe.c) if source.suffix == ".c" else (CXX, recipe.cxx)
        language = own if source.suffix != ".S" else []
        result = objects / f"{number}-{source.name}.o"
        return Command(
            (*_words(tool), *language, *flags, "-c", str(folder / source), "-o", str(result)), folder
        ), result

    steps = [command(number, source) for number, source in enumerate(sources(recipe, folder))]
    shop.run([step for step, _ in steps])
    library = objects / "library.so"
    linker = _words(CXX if recipe.is_cxx else C)
    results = [str(result) for _, result in steps]
    shop.run([Command((*linker, "-shared", "-o", str(library), *results, _BUILD_ID, *recipe.link), folder)])
    return library


def _configure(recipe: Configure, shop: Workshop) -> Path:
    folder = shop.source / recipe.folder
    script = shop.source / recipe.script
    if not script.is_file():
        raise CommandFailed(f"the package has no {recipe.script}")
    shutil.copy(script, folder / script.name)
    settings = {
        "CC": shlex.join(_words(C)),
        "CXX": shlex.join(_words(CXX)),
        # Not CFLAGS, which would take the place of the project's own.
        "EXTRA_CFLAGS": f"-ffile-prefix-map={folder}=.",
        "LDFLAGS": _BUILD_ID,
    }
    shop.run([Command(("sh", f"./{script.name}", *recipe.arguments), folder)], settings)
    shop.run([Command((*_words(MAKE), f"-j{shop.jobs}", recipe.target), folder)])
    return folder / recipe.library


def _cmake(recipe: CMake, shop: Workshop) -> Path:
    folder = shop.source / recipe.folder
    result = shop.source / "result"
    prefix_map = f"-ffile-prefix-map={shop.source}=."
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_C_FLAGS": prefix_map,
        "CMAKE_CXX_FLAGS": prefix_map,
        "CMAKE_SHARED_LINKER_FLAGS": _BUILD_ID,
        **recipe.options,
    }
    settings = {"CC": shlex.join(_words(C)), "CXX": shlex.join(_words(CXX))}
    cmake = _words(CMAKE)
    words = [f"-D{name}={value}" for name, value in options.items()]
    # The generator is named because another one may be set in the user's environment.
    shop.run(
        [Command((*cmake, "-G", "Unix Makefiles", "-S", str(folder), "-B", str(result), *words), folder)], settings
    )
    shop.run(
        [Command((*cmake, "--build", str(result), "--target", recipe.target, "--parallel", str(shop.jobs)), folder)]
    )
    return result / recipe.library


def _words(tool: Tool) -> list[str]:
    words = tool.words()
    if words is None:
        raise CommandFailed(f"no {tool.title}")
    return words
