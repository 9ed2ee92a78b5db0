#!/bin/sh
# A program with a sanitizer in it, and a program under valgrind, run under the preload as without it: right ones end well, and
# the mistake is found. The compiler itself runs without.
set -u
place=$(mktemp -d) && trap 'rm -rf "$place"' EXIT
source=$(dirname "$0")/sanitized.c

compiled() {
    env -u LD_PRELOAD gcc -g -O0 -fno-builtin "$@" "$source" -o "$place/program" || exit 77
}

fails() {
    echo "$*" >&2
    exit 1
}

compiled -fsanitize=address -static-libasan
ASAN_OPTIONS=detect_leaks=0 "$place/program" 2>"$place/said" || fails "address sanitizer: a right program fails: $(grep -m 1 . "$place/said")"
ASAN_OPTIONS=detect_leaks=0 "$place/program" wrong 2>"$place/said" && fails "address sanitizer: the mistake is not found"
grep -q heap-use-after-free "$place/said" || fails "address sanitizer: the mistake is not found: $(grep -m 1 . "$place/said")"
compiled -fsanitize=thread -static-libtsan
setarch -R "$place/program" 2>"$place/said" || fails "thread sanitizer: a right program fails: $(grep -m 1 . "$place/said")"
compiled
preload=$LD_PRELOAD
unset LD_PRELOAD
valgrind --quiet --error-exitcode=9 --trace-children=yes env LD_PRELOAD="$preload" "$place/program" 2>"$place/said" ||
    fails "valgrind: a right program fails: $(grep -m 1 . "$place/said")"
echo "two sanitizers and valgrind"
