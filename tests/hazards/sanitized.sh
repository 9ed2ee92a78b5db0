#!/bin/sh
# A program with a sanitizer in it, or a program under valgrind, run under the preload as without it: a right one ends well, and
# the mistake is found. The compiler itself runs without.
#
#   sanitized.sh address|thread|valgrind
set -u
place=$(mktemp -d) && trap 'rm -rf "$place"' EXIT
source=$(dirname "$0")/sanitized.c
preload=${LD_PRELOAD-}
unset LD_PRELOAD
# As the kernel names it, which the program looks for in its own mappings.
HAZARD_LOADED=$(readlink -f "$HAZARD_FILE")
export HAZARD_LOADED

compiled() {
    gcc -g -O0 -fno-builtin "$@" "$source" -o "$place/program" || exit 77
}

# Ends with what the program says where it does not do what it should; 78: the allocator is not there at all.
right() {
    "$@" 2>"$place/said"
    status=$?
    [ "$status" -eq 0 ] && return
    grep -m 1 . "$place/said" >&2
    [ "$status" -eq 78 ] && exit 78
    echo "a right program fails: $(grep -m 1 . "$place/said")" >&2
    exit 1
}

case $1 in
address)
    compiled -fsanitize=address -static-libasan
    export ASAN_OPTIONS=detect_leaks=0
    right env LD_PRELOAD="$preload" "$place/program"
    if env LD_PRELOAD="$preload" "$place/program" wrong 2>"$place/said" || ! grep -q heap-use-after-free "$place/said"; then
        echo "the mistake is not found: $(grep -m 1 . "$place/said")" >&2
        exit 1
    fi
    ;;
thread)
    compiled -fsanitize=thread -static-libtsan
    right env LD_PRELOAD="$preload" setarch -R "$place/program"
    ;;
valgrind)
    compiled
    right valgrind --quiet --error-exitcode=9 --trace-children=yes env LD_PRELOAD="$preload" "$place/program"
    ;;
*)
    echo "usage: sanitized.sh address|thread|valgrind" >&2
    exit 2
    ;;
esac
echo "$1: beside it"
