"""Standard output and error that outlast their readers: who has seen enough of a table takes no verdict away."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from typing import Any, BinaryIO, TextIO, cast


class _Outlasting(io.RawIOBase):
    """Writes into a file for as long as somebody reads there, and to nowhere from then on."""

    def __init__(self, file: io.FileIO, before: TextIO) -> None:
        self._file = file
        self._before = before  # which would close the file if nobody held it

    def write(self, data: Any, /) -> int | None:
        try:
            return self._file.write(data)
        except OSError as error:
            if not self._has_nobody(error):
                raise
            # The number stays taken: what is opened next must not become standard output.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._file.fileno())
            os.close(nowhere)
            return memoryview(data).nbytes

    def _has_nobody(self, error: OSError) -> bool:
        """Whether a pipe has no reader any more, or a terminal was closed, as with the session that it belonged to."""
        if error.errno == errno.EIO:
            return stat.S_ISCHR(os.fstat(self._file.fileno()).st_mode)
        return error.errno == errno.EPIPE

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()


def outlast_readers() -> None:
    """Let standard output and error go on to nowhere when their reader leaves: ``head``, or a closed session.

    So the verb comes to its end: what was measured is kept, and the exit status is that of the measurement. Streams
    that are no files, as in a test, stay as they are.
    """
    sys.stdout, sys.stderr = _outlasting(sys.stdout), _outlasting(sys.stderr)


def _outlasting(stream: TextIO) -> TextIO:
    if type(stream) is not io.TextIOWrapper:
        return stream
    buffered = isinstance(stream.buffer, io.BufferedWriter)
    file = stream.buffer.raw if isinstance(stream.buffer, io.BufferedWriter) else stream.buffer  # PYTHONUNBUFFERED
    if not isinstance(file, io.FileIO):
        return stream
    stream.flush()
    outlasting = _Outlasting(file, stream)
    return io.TextIOWrapper(
        cast(BinaryIO, io.BufferedWriter(outlasting) if buffered else outlasting),
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
