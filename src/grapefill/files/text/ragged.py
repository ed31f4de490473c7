"""What to say of a line that has more or fewer cells than the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grapefill.files.text.dialect import Dialect

__all__ = ["explain_ragged"]


def explain_ragged(
    content: bytes, position: int, found: int, columns: int, dialect: Dialect
) -> str:
    r"""Return what is wrong with a line, and what to do.

    Parameters
    ----------
    content : bytes
        The file in UTF-8.
    position : int
        Where the line begins.
    found, columns : int
        Its cells, and those of the first line.
    dialect : Dialect
        How the file is written.

    Examples
    --------
    >>> from grapefill.files.text.dialect import Dialect
    >>> explain_ragged(b"a,b\n1,2,\n", 4, 3, 2, Dialect())
    "has 3 cells, of which the last is empty, but the first line has 2. If all lines of values end
    with ',', write ',' at the end of the first line as well, or remove it from the others."
    """
    newline, mark = dialect.newline.encode(), dialect.delimiter
    end = content.find(newline, position)
    line = content[position:] if end < 0 else content[position:end]
    if found == columns + 1 and line.strip(b" \r").endswith(mark.encode()):
        return (
            f"has {found} cells, of which the last is empty, but the first line has {columns}. If "
            f"all lines of values end with {mark!r}, write {mark!r} at the end of the first line "
            "as well, or remove it from the others."
        )
    cells = "1 cell" if found == 1 else f"{found} cells"
    hint = (
        "Put quotes around a cell that contains the delimiter"
        if found > columns
        else "Add the missing delimiters"
    )
    if found == 1 and (end < 0 or not content[end:].strip()):
        hint = "If this last line is a footer, remove it"
    if columns == 1:
        hint = "If the lines above it are a title, remove them"
    if content.startswith(b"#"):
        hint = "If the lines at the start that begin with '#' are comments, remove them"
    return (
        f"has {cells}, but the first line has {columns}. {hint}, or name the delimiter if it is "
        f"not {mark!r}."
    )
