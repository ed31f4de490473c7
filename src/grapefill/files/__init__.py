"""Files: tables in and out with observed cells unchanged, the model file, whole files or none.

`read_table` returns a `TableFile`: its `frame` is a pyarrow table to fill, its `write` puts the
values that were filled in into a copy of the file.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grapefill.files.table_file import TableFile, read_table

__all__ = ["TableFile", "read_table"]


def __getattr__(name: str) -> Any:
    """Import what reads tables when it is asked for; a model file needs no pyarrow."""
    if name in __all__:
        from grapefill.files import table_file

        return getattr(table_file, name)
    raise AttributeError(f"module 'grapefill.files' has no attribute {name!r}")
