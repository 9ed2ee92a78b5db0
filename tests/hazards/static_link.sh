#!/bin/sh
# A static program that calls fork, malloc_trim, mallinfo2, malloc_usable_size links and runs with the allocator's archive. The
# linker itself says whose malloc it took: no program can ask a dynamic linker here.
set -u
place=$(mktemp -d) && trap 'rm -rf "$place"' EXIT
here=$(dirname "$0")
tests=$here/../../allocator/tests
unset LD_PRELOAD
case $HAZARD_NAME in
glibc) archive='' defines=libc.a ;;
planted) archive=$place/planted.o defines=planted.o ;;
*)
    # Beside the library, or where it was built before it was copied.
    defines=lib$HAZARD_NAME.a
    archive=$(dirname "$HAZARD_FILE")/$defines
    [ -f "$archive" ] || archive=$here/../../build/$defines
    ;;
esac
if [ "$HAZARD_NAME" = planted ]; then
    gcc -c -D_GNU_SOURCE -fno-builtin "-I$tests/../include" "$here/planted_library.c" -o "$archive" || exit 78
elif [ -n "$archive" ] && [ ! -f "$archive" ]; then
    echo "skipped: there is no $(basename "$archive") here" >&2
    exit 77
fi
# shellcheck disable=SC2086 # there may be no archive
gcc -D_GNU_SOURCE -fno-builtin "-I$tests" "-I$tests/../include" "$tests/lifecycle/static_program.c" $archive -static \
    -Wl,--trace-symbol=malloc,--trace-symbol=calloc,--trace-symbol=realloc,--trace-symbol=free \
    -o "$place/program" >"$place/said" 2>&1 || { tail -1 "$place/said" >&2; exit 1; }
for name in malloc calloc realloc free; do
    grep "definition of $name\$" "$place/said" | grep -qF "$defines" ||
        { echo "$name is not of $defines: $(grep -m 1 "definition of $name\$" "$place/said")" >&2; exit 78; }
done
"$place/program" 2>"$place/said" || { tail -1 "$place/said" >&2; exit 1; }
echo "links and runs"
