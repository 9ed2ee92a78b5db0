#!/bin/sh
# A static program that calls fork, malloc_trim, mallinfo2, malloc_usable_size links and runs with the allocator's archive.
set -u
place=$(mktemp -d) && trap 'rm -rf "$place"' EXIT
tests=$(dirname "$0")/../../allocator/tests
unset LD_PRELOAD
archive=
if [ "$HAZARD_NAME" = freestone ]; then
    archive=$(dirname "$0")/../../build/libfreestone.a
fi
# shellcheck disable=SC2086 # there may be no archive
gcc -D_GNU_SOURCE -fno-builtin "-I$tests" "-I$tests/../include" "$tests/lifecycle/static_program.c" $archive -static \
    -o "$place/program" 2>"$place/said" || { tail -1 "$place/said" >&2; exit 1; }
"$place/program" 2>"$place/said" || { tail -1 "$place/said" >&2; exit 1; }
echo "links and runs"
