"""nginx, reloaded again and again while wrk asks it for files: no worker dies of anything but its orders."""

from __future__ import annotations

import re
import signal
import time
import urllib.request

from foreign_programs.program import Program
from foreign_programs.room import Room, free_port, program

SIZES = (10, 1_000, 20_000, 300_000)
RELOAD_S = 0.25


def configuration(room: Room, port: int) -> str:
    return f"""
daemon off;
worker_processes 2;
pid {room.folder}/pid;
error_log {room.folder}/error.log notice;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {room.folder}/body;
    proxy_temp_path {room.folder}/proxy;
    fastcgi_temp_path {room.folder}/fastcgi;
    uwsgi_temp_path {room.folder}/uwsgi;
    scgi_temp_path {room.folder}/scgi;
    gzip on;
    gzip_types text/plain;
    proxy_cache_path {room.folder}/cache keys_zone=kept:1m;
    server {{
        listen 127.0.0.1:{port};
        root {room.folder}/files;
        location /through/ {{
            proxy_pass http://127.0.0.1:{port}/;
            proxy_cache kept;
            proxy_cache_valid 200 1s;
        }}
    }}
}}
"""


def fetched(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bytes(answer.read())
    except OSError:
        return b""


def work(room: Room) -> None:
    port = free_port()
    (room.folder / "files").mkdir()
    for size in SIZES:
        (room.folder / "files" / f"{size}.txt").write_bytes(bytes(97 + i * 7 % 26 for i in range(size)))
    (room.folder / "nginx.conf").write_text(configuration(room, port))
    room.folder.chmod(0o755)
    url = f"http://127.0.0.1:{port}"
    command = [program("nginx", "/usr/sbin"), "-p", str(room.folder), "-c", "nginx.conf", "-e", "error.log"]
    script = room.folder / "paths.lua"
    paths = ", ".join(f'"/{where}{size}.txt"' for size in SIZES for where in ("", "through/"))
    script.write_text(
        f"local paths = {{ {paths} }}\nlocal turn = 0\n"
        'request = function()\n  turn = turn + 1\n  return wrk.format("GET", paths[turn % #paths + 1], '
        '{ ["Accept-Encoding"] = turn % 2 == 0 and "gzip" or "identity" })\nend\n'
    )
    with room.server(command, lambda: bool(fetched(f"{url}/10.txt")), "log") as server:
        load = room.start(["wrk", "-t2", "-c32", f"-d{2 * room.seconds:.0f}s", "-s", str(script), url], "wrk.log")
        reloads = 0
        while load.poll() is None:
            server.send_signal(signal.SIGHUP)
            reloads += 1
            time.sleep(RELOAD_S)
        room.fact("wrk's exit", load.returncode)
        room.fact("reloaded many times", reloads > room.seconds)
        for size in SIZES:
            for where in ("", "through/"):
                room.digest(f"{where}{size}", fetched(f"{url}/{where}{size}.txt"))
        room.stop(server, signal.SIGQUIT, "end")
    said = (room.folder / "wrk.log").read_text()
    room.fact("wrk got answers", int((re.search(r"(\d+) requests in", said) or ["", "0"])[1]) > 0)
    room.fact("answers that were no file", (re.search(r"Non-2xx or 3xx responses: (\d+)", said) or ["", "0"])[1])
    log = (room.folder / "error.log").read_text(errors="replace")
    faults = re.findall(r"\[(?:alert|crit|emerg)\] \d+#\d+: (.*)", log)
    room.fact("faults", sorted({re.sub(r"\d+", "N", fault) if "signal" not in fault else fault for fault in faults}))
    if faults:
        room.complain("nginx", "\n".join(faults).encode())


NGINX = Program(
    name="nginx",
    what="two workers, files, gzip, a caching proxy to itself; reloaded four times a second under wrk",
    package="nginx and wrk",
    needs=("/usr/sbin/nginx", "wrk"),
    images=("nginx", "wrk"),
    work=work,
    version=("/usr/sbin/nginx", "-v"),
)
