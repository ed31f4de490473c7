"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, TextIO, overload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

# Where Linux shows the open files of a process.
OPEN_FILES = Path("/proc/self/fd")


@overload
def write_whole(
    path: str | os.PathLike[str], *, text: Literal[False] = False
) -> AbstractContextManager[BinaryIO]: ...


@overload
def write_whole(
    path: str | os.PathLike[str], *, text: Literal[True]
) -> AbstractContextManager[TextIO]: ...


def write_whole(
    path: str | os.PathLike[str], *, text: bool = False
) -> AbstractContextManager[BinaryIO] | AbstractContextManager[TextIO]:
    r"""Open a file for writing that takes its name only once it is complete.

    The content goes to a file without a name in the same folder. When the ``with`` block ends
    normally, that file is flushed to disk and takes the place of ``path`` in one step. When
    the block is left by an exception, Ctrl-C included, or the process is killed, it is gone and
    whatever was at ``path`` before is untouched. Where the system has no files without names, as
    outside of Linux, it is a hidden one named ``.grapefill-*.part``, which a kill leaves behind; it
    can be deleted.

    Parameters
    ----------
    path : str or path-like
        Where the file will be. Its folder must exist. A symbolic link is followed.
    text : bool, default=False
        Open for text, in UTF-8 and with line ends written as given, instead of bytes.

    Returns
    -------
    context manager
        Gives the open file.

    Raises
    ------
    OSError
        If the folder is missing, or ``path`` is something other than an ordinary file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from grapefill.files.atomic import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "filled.csv"
    ...     with write_whole(path, text=True) as file:
    ...         _ = file.write("a,b\n1,2\n")
    ...         before_the_end = path.exists()
    ...     before_the_end, path.read_text(encoding="utf-8")
    (False, 'a,b\n1,2\n')
    """
    return _write_text(Path(path)) if text else _write_bytes(Path(path))


@contextlib.contextmanager
def _write_text(path: Path) -> Iterator[TextIO]:
    with _write_bytes(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()


@contextlib.contextmanager
def _write_bytes(path: Path) -> Iterator[BinaryIO]:
    # Replacing a link would leave the file it points to with its old content.
    target = Path(os.path.realpath(path))
    _check_target(path, target)
    # The name does not contain the target's, which may already be as long as a name can be.
    temporary = target.parent / f".grapefill-{secrets.token_hex(8)}.part"
    try:
        with _open_nameless(target.parent) or temporary.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not temporary.exists():
                _give_name(file, temporary)
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _folder_to_disk(target.parent)


def _open_nameless(folder: Path) -> BinaryIO | None:
    """Open a file that has no name yet and goes with the process, where the system can."""
    nameless = getattr(os, "O_TMPFILE", None)
    if nameless is None or not OPEN_FILES.is_dir():
        return None
    try:
        descriptor = os.open(folder, nameless | os.O_RDWR, 0o666)
    except OSError:  # not every file system has them; if it is something else, we will see
        return None
    return open(descriptor, "r+b")  # noqa: PTH123


def _give_name(file: BinaryIO, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # Without the folder's descriptor Python asks for a link to the link.
        os.link(OPEN_FILES / str(file.fileno()), path.name, dst_dir_fd=folder)
    except OSError:
        file.seek(0)
        with path.open("xb") as copy:
            shutil.copyfileobj(file, copy)
            os.fsync(copy.fileno())
    finally:
        os.close(folder)


def _check_target(path: Path, target: Path) -> None:
    if not target.parent.exists():
        raise FileNotFoundError(
            f"Cannot write {str(path)!r}: the folder {str(target.parent)!r} does not exist. "
            "Create it first or choose another place."
        )
    if not target.parent.is_dir():
        raise NotADirectoryError(
            f"Cannot write {str(path)!r}: {str(target.parent)!r} is a file, not a folder."
        )
    if target.is_dir():
        raise IsADirectoryError(
            f"Cannot write {str(path)!r}: it is a folder. Add a file name to it."
        )
    # Replacing a device such as /dev/null would remove it from the system.
    if target.exists() and not target.is_file():
        raise OSError(f"Cannot write {str(path)!r}: it is a device or a pipe, not a file.")


def _folder_to_disk(folder: Path) -> None:
    """Make the new name itself survive a power cut, where the system can."""
    # Windows cannot open a folder, some network drives cannot sync one; the file is complete.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
