"""A table file: its table, and a way to write it with nothing changed but some cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grapefill.errors import OutputError
from grapefill.files.cells.formats import ColumnFormat
from grapefill.files.cells.write import round_values
from grapefill.files.changes import Changes, apply_changes
from grapefill.files.options import ReadOptions
from grapefill.files.places import (
    STANDARD,
    Place,
    check_output,
    find_format,
    open_output,
    read_content,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

__all__ = ["TableFile", "read_options", "read_table"]


class TableFile(ABC):
    """A table that was read from a file, and knows how to be written like it.

    Attributes
    ----------
    place : Place
        Where it was read.
    frame : pyarrow.Table
        The table, with null where a cell is missing.
    formats : dict of str to ColumnFormat
        How the columns of the frame are written; empty for files that have types themselves.
    """

    place: Place
    frame: Any
    formats: dict[str, ColumnFormat]

    @property
    def name(self) -> str:
        """What to call the file in a message."""
        return self.place.name

    @property
    def types(self) -> dict[str, dict[str, Any]]:
        """What the columns are, in plain JSON values, for `read_table` of a file like this one."""
        return {name: shape.to_dict() for name, shape in self.formats.items()}

    @abstractmethod
    def where(self, row: int) -> str:
        """Return what to call a row of the frame in a message, such as ``"line 17"``."""

    @abstractmethod
    def has_mark(self, mark: str) -> bool:
        """Whether a cell is a mark for missing that the caller named.

        Parameters
        ----------
        mark : str
            One of `ReadOptions.na`.
        """

    def write(
        self,
        path: str | os.PathLike[str],
        table: Any,
        *,
        overwrite: bool = False,
        erase: bool = False,
        formats: Mapping[str, ColumnFormat] | None = None,
    ) -> None:
        """Write the file again, with values in cells that had none.

        What was in the file stays as it was, byte for byte where the format is text. Columns that
        the frame does not have are added behind the others.

        Parameters
        ----------
        path : str or path-like
            Where to write, ``"-"`` for standard output. A suffix of another format converts.
        table : pyarrow.Table
            The table with the rows of `frame` in their order. Its values go into the cells that
            are missing there; columns that it lacks stay as they are.
        overwrite : bool
            Whether a file at `path` may be replaced. The input never is.
        erase : bool
            Whether cells that are null in `table` lose their value.
        formats : mapping of str to ColumnFormat or None
            How columns that are added to a text are written; plainly if not given.

        Raises
        ------
        OutputError
            If `path` must not be written, or the file cannot hold a value. Nothing is written
            then.
        InputError
            If `table` has other rows.
        """
        check_output(path, inputs=[self.place.path], overwrite=overwrite)
        changes = Changes.between(self.frame, table, erase=erase, name=self.name)
        changes = replace(self._allowed(changes), formats=dict(formats or {}))
        target = self.check_target(path)
        if target.format == self.place.format:
            pieces = self._pieces(changes)
        else:
            from grapefill.files.convert import table_pieces

            pieces = table_pieces(self._whole(changes), target)
        with open_output(path) as file:
            for piece in pieces:
                file.write(piece)

    def as_written(self, table: Any) -> Any:
        """Return a filled table without the values that the file has no place for."""
        return table

    def _allowed(self, changes: Changes) -> Changes:
        """Return the changes that the file lets itself be made."""
        return changes

    def _whole(self, changes: Changes) -> Any:
        """Return all columns of the file with the changes made, for another format."""
        known = self.formats | changes.formats
        filled = {
            j: (mask, round_values(values, known.get(self.frame.column_names[j])))
            for j, (mask, values) in changes.filled.items()
        }
        added = [(name, round_values(column, known.get(name))) for name, column in changes.added]
        return apply_changes(self.frame, replace(changes, filled=filled, added=added))

    @abstractmethod
    def _pieces(self, changes: Changes) -> Iterable[bytes]:
        """Return the bytes of the new file; whatever can go wrong does so before the first."""

    def check_target(self, path: str | os.PathLike[str]) -> Place:
        """Return a place to write to with its format, or refuse it before any work is done.

        Parameters
        ----------
        path : str or path-like
            Where to write.

        Raises
        ------
        OutputError
            If its suffix is none that this file can be written as, or that format cannot hold it.
        """
        target = Place.at(path)
        if target.path == STANDARD:
            return Place(STANDARD, self.place.format, "", self.place.suffix)
        if target.suffix == self.place.suffix:
            # Whatever it usually means, for this input it meant the input's format.
            return replace(target, format=self.place.format)
        if target.format is None:
            raise OutputError(
                f"Cannot tell what {target.path!r} should be from its suffix {target.suffix!r}. "
                f"Name it like the input, with {self.place.suffix or '.csv'!r} at the end."
            )
        if target.format == "excel" and self.place.format != "excel":
            from grapefill.files.convert import check_workbook

            check_workbook(self.frame, self.name, self.where)
        return target


def read_table(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    types: Mapping[str, ColumnFormat | Mapping[str, Any] | str] | None = None,
    **options: Any,
) -> TableFile:
    r"""Read a table from a file.

    Parameters
    ----------
    path : str or path-like
        A file of delimited text (``.csv``, ``.tsv``, ``.txt``), Parquet, Feather or Arrow, Excel
        (``.xlsx``) or JSON lines (``.jsonl``), perhaps with ``.gz`` or ``.zst`` behind it; ``"-"``
        for standard input.
    format : {"delimited", "parquet", "arrow", "excel", "json"} or None
        The format, if the suffix does not tell.
    types : mapping or None
        What columns hold, by name: a word such as ``"text"``, or the `types` of a file read
        before, so that a column is read as it was there.
    **options
        The fields of `ReadOptions`.

    Returns
    -------
    TableFile
        Its `frame` is the table, its `write` writes it again.

    Raises
    ------
    InputError
        If the file cannot be read, with the line and column where it is wrong.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "prices.csv")
    ...     _ = path.write_text("item;price\n007;1,50\n008;\n")
    ...     file = read_table(path)
    ...     print(file.frame.to_pydict())
    ...     filled = file.frame.set_column(1, "price", pa.array([1.5, 2.0]))
    ...     file.write(Path(folder, "filled.csv"), filled)
    ...     print(Path(folder, "filled.csv").read_text())
    {'item': ['007', '008'], 'price': [1.5, None]}
    item;price
    007;1,50
    008;2,00
    <BLANKLINE>
    """
    place = Place.at(path)
    content = read_content(place)
    found = find_format(place, content, format)
    place = Place(place.path, found, place.compression, place.suffix)
    read = _reader(found)
    file: TableFile = read(place, content, read_options(types, **options))
    return file


def read_options(
    types: Mapping[str, ColumnFormat | Mapping[str, Any] | str] | None = None, **options: Any
) -> ReadOptions:
    """Return options of `read_table` as one object, without that of the format."""
    options.pop("format", None)
    known = {
        name: one if isinstance(one, ColumnFormat) else ColumnFormat.from_dict(one)
        for name, one in (types or {}).items()
    }
    if "na" in options:
        na = options["na"]
        options["na"] = (na,) if isinstance(na, str) else tuple(map(str, na))
    return ReadOptions(**options, types=known)


def _reader(format: str) -> Any:
    """Return the function that reads a format; each needs other packages."""
    if format == "delimited":
        from grapefill.files.text.delimited import DelimitedFile

        return DelimitedFile
    if format == "excel":
        from grapefill.files.excel import ExcelFile

        return ExcelFile
    if format == "json":
        from grapefill.files.json_lines import JsonLinesFile

        return JsonLinesFile
    from grapefill.files.arrow_files import ArrowFile, ParquetFile

    return ParquetFile if format == "parquet" else ArrowFile
