"""perl, ruby, node, java, sqlite3, z3 and ghostscript print, or draw, the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

PERL = r"""
use strict; use warnings;
my %words; my $state = 12345; my @lists;
for my $i (1 .. 200000) {
    $state = ($state * 1103515245 + 12345) % 2147483648;
    my $word = join '', map { chr(97 + ($state >> $_ * 3) % 26) } 0 .. 5;
    $words{$word}++;
    push @{ $lists[$i % 500] }, $word . $i;
    splice @{ $lists[$state % 500] }, 0, 3 if $i % 7 == 0 && $lists[$state % 500];
}
for my $round (1 .. 20) { my $text = 'x' x (1 << $round); $text =~ s/x{3}/yz/g; print length($text), "\n"; }
print "$_ $words{$_}\n" for (sort { $words{$b} <=> $words{$a} || $a cmp $b } keys %words)[0 .. 49];
print scalar(@$_), ' ', $_->[0] // '', "\n" for grep { defined } @lists;
"""

RUBY = r"""
state = 4711
tree = {}
100_000.times do |i|
  state = (state * 6364136223846793005 + 1442695040888963407) & 0xffffffffffffffff
  key = (state >> 40) % 5000
  (tree[key] ||= []) << [i, state.to_s(36), (state % 1000).to_f / 7]
  tree.delete(key) if tree[key].size > 15
end
text = tree.sort.map { |key, rows| "#{key}:#{rows.map { |row| row.join(',') }.join(';')}" }.join("\n")
puts text.bytes.sum, text.size
10.times { |i| puts text.scan(/[a-z]{#{i + 1}}/).tally.sort_by { |k, v| [-v, k] }.first(5).inspect }
fibers = 200.times.map { |n| Fiber.new { 50.times { |k| Fiber.yield((n * k).to_s * 40) }; 'end' } }
51.times { puts fibers.sum { |fiber| fiber.resume.size } }
threads = 8.times.map { |n| Thread.new { (1..3000).map { |k| "#{n}-#{k}" * 3 }.join.size } }
puts threads.map(&:value).inspect
3.times { GC.start; puts ObjectSpace.count_objects[:T_HASH].positive? }
"""

SQL = """
PRAGMA journal_mode = memory;
CREATE TABLE event (id INTEGER PRIMARY KEY, kind INTEGER, name TEXT, value REAL);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000)
INSERT INTO event SELECT i, (i * 7919) % 97, printf('%08x-%s', (i * 2654435761) % 4294967296,
                                                    substr('abcdefghijklmnopqrstuvwxyz', i % 26 + 1)), i * 0.37 FROM n;
CREATE INDEX by_name ON event (name);
CREATE INDEX by_kind ON event (kind, value DESC);
SELECT kind, count(*), round(sum(value), 2), min(name), max(name) FROM event GROUP BY kind ORDER BY kind;
SELECT kind, group_concat(id) FROM (SELECT kind, id, row_number() OVER (PARTITION BY kind ORDER BY name) AS place
                                    FROM event) WHERE place <= 5 GROUP BY kind;
DELETE FROM event WHERE kind % 3 = 0;
UPDATE event SET name = name || '-' || kind WHERE kind % 5 = 1;
VACUUM;
SELECT count(*), sum(length(name)) FROM event;
SELECT a.id, b.id FROM event a JOIN event b ON b.name > a.name AND b.kind = a.kind + 1
WHERE a.id < 200 ORDER BY a.id, b.name LIMIT 50;
SELECT json_group_array(json_object('id', id, 'name', name)) FROM event WHERE id < 500;
PRAGMA integrity_check;
"""

SMT = "\n".join(
    [
        "(set-option :produce-models true)",
        "(set-logic QF_BV)",
        *(f"(declare-const x{i} (_ BitVec 24))" for i in range(8)),
        *(
            f"(assert (= (bvmul x{i} (bvadd x{(i + 1) % 8} #x0000{i + 3:02x}))"
            f" (bvxor x{(i + 3) % 8} #x{i * 7919 + 11:06x})))"
            for i in range(5)
        ),
        "(assert (bvult x0 x1))",
        "(check-sat)",
        "(get-model)",
        "(exit)",
    ]
)

POSTSCRIPT = """%!PS
/Times-Roman findfont 11 scalefont setfont
/seed 17 def
/next { /seed seed 1103515245 mul 12345 add 2147483647 and def seed 1000 mod } def
1 1 6 {
    pop
    1 1 60 { 12 mul 40 exch moveto (the quick brown fox jumps over the lazy dog 0123456789) show } for
    1 1 400 { pop newpath next 0.6 mul next 0.8 mul moveto
        next 0.6 mul next 0.8 mul next 0.6 mul next 0.8 mul next 0.6 mul next 0.8 mul curveto
        next 1000 div next 1000 div next 1000 div setrgbcolor next 300 div setlinewidth stroke } for
    showpage
} for
"""


NODE = r"""
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib'), { execFileSync } = require('child_process');
function work(seed) {
    let state = seed, map = new Map(), digest = crypto.createHash('sha256');
    for (let i = 0; i < 30000; i++) {
        state = (state * 1103515245 + 12345) % 2147483648;
        const list = map.get(state % 700) || [];
        const text = state.toString(36).repeat(state % 9 + 1);
        list.push({ i, text, block: Buffer.alloc(state % 3000, state % 256) });
        if (list.length > 20) { list.splice(0, 10); }
        map.set(state % 700, list);
    }
    for (const [key, list] of [...map].sort((a, b) => a[0] - b[0])) {
        for (const { i, text, block } of list) {
            digest.update(key + ' ' + i + text);
            digest.update(zlib.gunzipSync(zlib.gzipSync(block)));
        }
    }
    return digest.digest('hex');
}
if (isMainThread) {
    const running = [1, 2, 3].map(seed => new Promise((resolve, reject) => {
        const worker = new Worker(process.argv[1], { workerData: seed });
        worker.on('message', resolve); worker.on('error', reject);
    }));
    Promise.all(running).then(all => {
        console.log(all.join('\n'), work(4));
        const sum = 'console.log([..."x".repeat(1e5)].map((_, i) => i * i).reduce((a, b) => a + b))';
        console.log(execFileSync(process.argv[0], ['-e', sum]) + '');
    });
} else { parentPort.postMessage(work(workerData)); }
"""

JAVA = r"""
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;
public class Work {
    static long work(int seed) {
        Random random = new Random(seed);
        Map<Integer, List<String>> map = new TreeMap<>();
        CRC32 sum = new CRC32();
        Deflater deflater = new Deflater();
        byte[] packed = new byte[8192];
        for (int i = 0; i < 40000; i++) {
            List<String> list = map.computeIfAbsent(random.nextInt(900), k -> new ArrayList<>());
            list.add(Integer.toString(random.nextInt(), 36).repeat(random.nextInt(9) + 1));
            if (list.size() > 30) { list.subList(0, 10).clear(); }
            if (i % 40 == 0) {
                deflater.reset(); deflater.setInput(list.toString().getBytes()); deflater.finish();
                sum.update(packed, 0, deflater.deflate(packed));
            }
        }
        map.forEach((key, list) -> sum.update((key + list.toString()).getBytes()));
        return sum.getValue();
    }
    public static void main(String[] words) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Long>> all = new ArrayList<>();
        for (int seed = 0; seed < 12; seed++) { int s = seed; all.add(pool.submit(() -> work(s))); }
        for (Future<Long> one : all) { System.out.println(one.get()); }
        pool.shutdown();
    }
}
"""


def same_output(bench: Any, command: list[str], text: str, images: list[str], least: int) -> None:
    system, served = bench.both(
        lambda folder, served: bench.one(command, folder, served=served, stdin=text.encode()), images
    )
    assert len(system.stdout) >= least
    assert served.stdout == system.stdout


def test_perl(bench: Any, program: Callable[..., str]) -> None:
    perl = program("perl")
    same_output(bench, [perl, "-"], PERL, [Path(perl).resolve().name], 3000)


def test_ruby(bench: Any, program: Callable[..., str]) -> None:
    ruby = program("ruby")
    same_output(bench, [ruby, "-"], RUBY, [Path(ruby).resolve().name], 1000)


def test_sqlite(bench: Any, program: Callable[..., str]) -> None:
    sqlite = program("sqlite3")
    same_output(bench, [sqlite, "-batch", "test.db"], SQL, ["sqlite3"], 10000)


def test_z3(bench: Any, program: Callable[..., str]) -> None:
    z3 = program("z3")
    same_output(bench, [z3, "-in"], SMT, ["z3"], 100)


def test_ghostscript(bench: Any, program: Callable[..., str]) -> None:
    gs = program("gs", "ghostscript")

    def work(folder: Path, served: bool) -> Any:
        (folder / "pages.ps").write_text(POSTSCRIPT)
        command = [gs, "-q", "-dBATCH", "-dNOPAUSE", "-dSAFER", "-r100", "-sDEVICE=ppmraw", "-sOutputFile=page-%d.ppm"]
        return bench.one([*command, "pages.ps"], folder, served=served)

    system, served = bench.both(work, [Path(gs).resolve().name])
    for page in range(1, 7):
        pictures = [(run.folder / f"page-{page}.ppm").read_bytes() for run in (system, served)]
        assert len(pictures[0]) > 1_000_000
        assert pictures[0] == pictures[1], f"page {page} is drawn differently"


def test_node(bench: Any, program: Callable[..., str]) -> None:
    node = program("node", "nodejs")

    def work(folder: Path, served: bool) -> Any:
        (folder / "work.js").write_text(NODE)
        return bench.one([node, "work.js"], folder, served=served)

    system, served = bench.both(work, [Path(node).resolve().name])
    assert len(system.stdout) > 250
    assert served.stdout == system.stdout


def test_java_compiles_and_runs(bench: Any, program: Callable[..., str]) -> None:
    compiler, java = program("javac", "default-jdk-headless"), program("java", "default-jre-headless")

    def work(folder: Path, served: bool) -> Any:
        (folder / "Work.java").write_text(JAVA)
        bench.one([compiler, "Work.java"], folder, served=served)
        return bench.one([java, "-Xmx256m", "Work"], folder, served=served)

    system, served = bench.both(work, ["java", "javac"])
    assert len(system.stdout.split()) == 12
    assert served.stdout == system.stdout
