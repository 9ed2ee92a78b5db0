"""Adding a peer: a source package becomes a library that is seen serving a program, or one clear line and nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from freestone import allocators
from freestone.allocators import peers
from freestone.allocators.peers import addition, toolchain
from freestone.allocators.peers.build import sources
from freestone.allocators.peers.catalogue import Compile, Package
from freestone.allocators.peers.execution import CommandFailed

BUMP = r"""
/* A malloc that gives memory out and never takes it back: enough to serve a program. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
static _Alignas(4096) char pool[64 << 20];
static size_t used;
void *memalign(size_t alignment, size_t n) {
    size_t room = n + 16 + alignment, at = __atomic_fetch_add(&used, room, __ATOMIC_RELAXED);
    if (at + room > sizeof pool) return NULL;
    char *p = (char *)(((size_t)pool + at + 16 + alignment - 1) & ~(alignment - 1));
    memcpy(p - sizeof n, &n, sizeof n);
    return p;
}
void *malloc(size_t n) { return memalign(16, n + NUMBER); }
void free(void *p) { (void)p; }
size_t malloc_usable_size(void *p) { return p ? ((size_t *)p)[-1] : 0; }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) {
    void *q = malloc(n);
    size_t old = malloc_usable_size(p);
    if (p && q) memcpy(q, p, old < n ? old : n);
    return q;
}
void *aligned_alloc(size_t alignment, size_t n) { return memalign(alignment, n); }
int posix_memalign(void **p, size_t alignment, size_t n) { return (*p = memalign(alignment, n)) ? 0 : ENOMEM; }
"""
NEEDS_ITS_ENVIRONMENT = "#include <stdlib.h>\n" + BUMP.replace(
    "void *malloc(size_t n) {", 'void *malloc(size_t n) { if (!getenv("BUMP")) __builtin_trap();'
)
CRASHING = BUMP.replace("void *malloc(size_t n) {", "void *malloc(size_t n) { __builtin_trap();")
WITHOUT_MEMALIGN = (
    BUMP.replace("memalign(size_t alignment, size_t n) {", "other(size_t alignment, size_t n) {")
    .replace("memalign(1", "other(1")
    .replace("return memalign(a", "return other(a")
    .replace("= memalign(a", "= other(a")
)

Make = Callable[..., peers.Peer]


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nothing-here"))
    if toolchain.C.words() is None:
        pytest.skip("no C compiler: no peer can be built")


@pytest.fixture
def bump(tmp_path: Path) -> Make:
    """``bump(source, **recipe)`` is a peer whose package cargo has fetched before."""

    def make(source: str = BUMP, *, operators: bool = False, **recipe: Any) -> peers.Peer:
        content = io.BytesIO()
        # Without a time of day: the same source is the same package.
        with (
            gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w") as tar,
        ):
            for name, text in {"src/bump.c": source, "src/left_out.c": "no C at all\n"}.items():
                member = tarfile.TarInfo(f"bump-sys-0.1.0/{name}")
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text.encode()))
        kept = tmp_path / "cargo" / "registry" / "cache" / "some-registry" / "bump-sys-0.1.0.crate"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(content.getvalue())
        return peers.Peer(
            name="bump",
            project="bump",
            title="Bump",
            version="1.0",
            package=Package(name="bump-sys", version="0.1.0", sha256=hashlib.sha256(content.getvalue()).hexdigest()),
            operators=operators,
            environment={"BUMP": "1"},
            recipe=Compile(
                **{
                    "kind": "compile",
                    "folder": "src",
                    "sources": ["*.c"],
                    "without": ["left_*"],
                    "define": ["NUMBER=0"],
                    "flags": ["-O1", "-fno-builtin"],
                    **recipe,
                }
            ),
        )

    return make


def add(peer: peers.Peer) -> peers.Built:
    return peers.add(peer, jobs=2, say=lambda _: None)[0]


def nothing_but(tmp_path: Path, *names: str) -> None:
    folder = tmp_path / "cache" / "freestone" / "peers"
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert peers.built() == {}


def test_a_peer_is_built_proved_and_kept_with_its_receipt(bump: Make, tmp_path: Path) -> None:
    peer = bump()
    built, new = peers.add(peer, jobs=2, say=lambda _: None)
    assert new
    assert peers.built() == {"bump": built}
    receipt = json.loads((built.folder / "receipt.json").read_text())
    assert receipt["package_sha256"] == peer.package.sha256
    assert receipt["compilers"]["C compiler"]
    compiled, linked = receipt["commands"]
    assert "-DNUMBER=0" in compiled
    assert "-O1" in compiled
    assert "-shared" in linked
    assert str(tmp_path / "cache") not in receipt["commands"], "nothing there names a folder that is gone"
    assert "bump.c" in (built.folder / "build.log").read_text()
    assert built.folder.parent == tmp_path / "cache" / "freestone" / "peers"
    assert [path.name for path in built.folder.parent.iterdir()] == [built.folder.name]


def test_no_path_of_this_machine_is_in_the_library(bump: Make, tmp_path: Path) -> None:
    library = add(bump(flags=["-O1", "-g", "-fno-builtin"])).library
    assert str(tmp_path).encode() not in library.read_bytes()


def test_what_is_there_is_not_built_again(bump: Make) -> None:
    first = add(bump())
    second, new = peers.add(bump(), jobs=2, say=lambda _: None)
    assert not new
    assert second == first


@pytest.mark.parametrize("change", [{"define": ["NUMBER=16"]}, {"flags": ["-O2", "-fno-builtin"]}])
def test_another_recipe_is_another_build_that_takes_its_place(bump: Make, change: dict[str, Any]) -> None:
    first = add(bump())
    second = add(bump(**change))
    assert second.folder != first.folder
    assert not first.folder.exists()
    assert peers.built() == {"bump": second}


def test_the_key_follows_what_a_library_is_made_of(bump: Make) -> None:
    compilers = {"C compiler": "cc 12"}
    plain = addition.key(bump(), compilers)
    assert addition.key(bump(), compilers) == plain
    assert addition.key(bump().model_copy(update={"title": "BUMP"}), compilers) == plain
    others = [
        addition.key(bump(), {"C compiler": "cc 13"}),
        addition.key(bump(BUMP + "\n"), compilers),
        addition.key(bump(link=["-lm"]), compilers),
        addition.key(bump().model_copy(update={"environment": {}}), compilers),
    ]
    assert len({plain, *others}) == 5


def test_a_built_peer_is_discovered_under_its_name(bump: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = bump()
    monkeypatch.setattr(peers, "load", lambda: {"bump": peer})
    assert allocators.find(["glibc"])[0].available
    with pytest.raises(allocators.AllocatorUnavailable, match="not built; freestone allocators add bump"):
        allocators.find(["bump"])
    library = add(peer).library
    (found,) = allocators.find(["bump"])
    assert found.file == str(library)
    assert found.preload == [str(library)]
    assert found.version == "1.0"
    assert found.origin == "built from bump-sys 0.1.0"
    assert found.build_id
    assert len(found.build_id) == 40
    assert allocators.verify(found).verified


def test_a_peer_brings_the_environment_it_needs(bump: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = bump()
    monkeypatch.setattr(peers, "load", lambda: {"bump": peer})
    library = add(peer).library
    for allocator in (*allocators.find(["bump"]), allocators.from_path(str(library))):
        assert allocators.configuration_for(allocator).environment == {"BUMP": "1"}
        mine = allocators.configuration_for(allocator, environment={"BUMP": "2", "MORE": "3"})
        assert mine.environment == {"BUMP": "2", "MORE": "3"}
    (glibc,) = allocators.find(["glibc"])
    assert allocators.configuration_for(glibc).environment == {}


def test_a_peer_is_proved_in_the_environment_it_needs(bump: Make) -> None:
    peer = bump(NEEDS_ITS_ENVIRONMENT)
    add(peer)
    with pytest.raises(peers.BuildError, match="killed by SIG"):
        add(peer.model_copy(update={"environment": {}}))


def test_a_peer_whose_library_was_damaged_says_so(bump: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = bump()
    monkeypatch.setattr(peers, "load", lambda: {"bump": peer})
    library = add(peer).library
    library.write_bytes(library.read_bytes()[:1000])
    found = {each.name: each for each in allocators.discover()}["bump"]
    assert not found.available
    assert (found.reason or "").endswith("; freestone allocators add bump")
    assert add(peer).library == library, "which builds it again"
    assert allocators.find(["bump"])[0].available


def test_a_compilers_refusal_is_one_line_and_its_log_is_kept(bump: Make, tmp_path: Path) -> None:
    with pytest.raises(peers.BuildError) as caught:
        add(bump("int bump(void) { return nonsense; }\n"))
    message, _, log = str(caught.value).partition("; full log: ")
    assert message.startswith("bump 1.0 cannot be built: ")
    assert "nonsense" in message
    assert "\n" not in message
    assert "nonsense" in Path(log).read_text()
    nothing_but(tmp_path, "bump.log")
    add(bump())
    assert not Path(log).exists(), "a build that succeeds takes the old log away"


def test_a_library_that_does_not_work_is_not_kept(bump: Make, tmp_path: Path) -> None:
    with pytest.raises(peers.BuildError, match=r"was built and does not work: a program under it was killed by SIG"):
        add(bump(CRASHING))
    nothing_but(tmp_path, "bump.log")


def test_a_library_without_all_entry_points_is_not_kept(bump: Make, tmp_path: Path) -> None:
    with pytest.raises(peers.BuildError, match=r"was built without memalign; it is not kept, full log: "):
        add(bump(WITHOUT_MEMALIGN))
    with pytest.raises(peers.BuildError, match=r"was built without _Zn.*, _ZdlPv; it is not kept, full log: "):
        add(bump(operators=True))
    nothing_but(tmp_path, "bump.log")


def test_a_recipe_for_another_package_is_one_line(bump: Make) -> None:
    with pytest.raises(peers.BuildError, match=r"cannot be built: the package has no lib/\*\.c; full log: "):
        add(bump(sources=["lib/*.c"]))


def test_a_full_disk_under_the_compiler_is_one_line(
    bump: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(
        "#!/bin/sh\necho 'fatal error: error writing to /tmp/x.s: No space left on device' >&2\nexit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(peers.CacheError, match=r"no space left for peers in .*; make room there or set XDG_CACHE_HOME"):
        add(bump())
    nothing_but(tmp_path, "bump.log")


@pytest.mark.parametrize("moment", ["fetching", "building"])
def test_an_interrupt_leaves_nothing_to_find(bump: Make, tmp_path: Path, moment: str) -> None:
    def interrupt(text: str) -> None:
        if moment in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        peers.add(bump(), jobs=2, say=interrupt)
    nothing_but(tmp_path, "bump.log")


def test_a_kill_in_the_middle_of_a_build_leaves_nothing_to_find(bump: Make, tmp_path: Path) -> None:
    peer = bump()
    compiler = tmp_path / "cc"
    compiler.write_text(
        f"#!/bin/sh\ncase $1 in --version) exec cc --version;; esac\ntouch {tmp_path}/begun\nsleep 30\n"
    )
    compiler.chmod(0o755)
    code = (
        "import sys; from freestone.allocators import peers\n"
        "peers.add(peers.Peer.model_validate_json(sys.argv[1]), jobs=1, say=print)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, peer.model_dump_json()], env={**os.environ, "CC": str(compiler)}, text=True
    )
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
    process.kill()
    process.wait()
    assert peers.built() == {}
    built = add(peer)
    assert sorted(path.name for path in built.folder.parent.iterdir()) == [built.folder.name], "the rest is swept"


def test_a_cache_that_cannot_be_preloaded_from_is_refused_at_once(bump: Make, tmp_path: Path) -> None:
    with pytest.raises(peers.CacheError, match="can be preloaded, for the space or colon in it"):
        peers.add(bump(), jobs=1, say=lambda _: None, folder=tmp_path / "my cache")
    assert not (tmp_path / "my cache").exists()


def test_missing_tools_are_named_with_the_peers_that_need_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    every = list(peers.load().values())

    def lacking() -> dict[str, list[str]]:
        return {tool.title: [peer.name for peer in without] for tool, without in peers.lacking(every).items()}

    def put(*names: str) -> None:
        for name in names:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)

    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    names = [peer.name for peer in every]
    assert lacking() == {
        "C compiler": names,
        "C++ compiler": ["jemalloc5", "snmalloc", "snmalloc-checks", "tcmalloc-google", "hardened_malloc"],
        "make": ["jemalloc5", "snmalloc", "snmalloc-checks"],
        "cmake": ["snmalloc", "snmalloc-checks"],
        "cargo": names,
    }
    put("gcc", "cargo", "make")
    assert lacking() == {
        "C++ compiler": ["jemalloc5", "snmalloc", "snmalloc-checks", "tcmalloc-google", "hardened_malloc"],
        "cmake": ["snmalloc", "snmalloc-checks"],
    }
    put("clang++", "cmake")
    assert lacking() == {}
    monkeypatch.setenv("CXX", "g++-99 -pipe")
    assert lacking() == {
        "C++ compiler": ["jemalloc5", "snmalloc", "snmalloc-checks", "tcmalloc-google", "hardened_malloc"]
    }
    assert toolchain.remedy(toolchain.CXX) == "CXX names 'g++-99 -pipe', which is not there"


def test_the_patterns_of_a_recipe_add_and_take_away(tmp_path: Path) -> None:
    for name in ("a.c", "a_test.c", "deep/b.c", "deep/er/c.c", "deep/mock_d.c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    recipe = Compile(
        kind="compile", folder=".", sources=["*.c", "deep/**/*.c"], without=["*_test.c", "*/mock_*"], flags=[]
    )
    assert [str(path) for path in sources(recipe, tmp_path)] == ["a.c", "deep/b.c", "deep/er/c.c"]
    with pytest.raises(CommandFailed, match=r"the package has no \*\.cc"):
        sources(recipe.model_copy(update={"sources": ["*.cc"]}), tmp_path)


@pytest.mark.long
def test_rpmalloc_is_fetched_from_the_registry_built_and_serves(tmp_path: Path) -> None:
    """End to end, with nothing kept from before; mirrors of the user's own do not count here."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo: nothing can be fetched")
    (peer,) = peers.chosen(["rpmalloc"])
    try:
        built = add(peer)
    except peers.Unreachable as error:
        pytest.skip(f"the registry is not reached: {error}")
    (found,) = allocators.find(["rpmalloc"])
    assert found.file == str(built.library)
    assert found.version == peer.version
    assert found.origin == "built from rpmalloc-sys 0.2.3"
    environment = {**os.environ, "LD_PRELOAD": found.preload[0]}
    program = "import threading, json\nprint(sum(len(json.dumps(list(range(n)))) for n in range(500)))"
    here = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert there.stdout == here.stdout
