"""Tables as files, and their holes filled in a way that needs no model."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from grapefill.files.table_file import read_table


@pytest.fixture
def read(tmp_path):
    """Write content to a file and read it as a table."""

    def read_content(content, name="table.csv", *, charset="utf-8", **options):
        path = tmp_path / name
        path.write_bytes(content.encode(charset) if isinstance(content, str) else content)
        return read_table(path, **options)

    return read_content


@pytest.fixture
def written(tmp_path):
    """Write a table of a file and return the bytes."""

    def write_table(file, table=None, name="written", **options):
        path = tmp_path / f"{name}{file.place.suffix}"
        file.write(path, file.frame if table is None else table, overwrite=True, **options)
        return path.read_bytes()

    return write_table


@pytest.fixture
def filled():
    """Return a table with every hole filled with the first value of its column, or the given."""

    def fill(frame, **values):
        columns = []
        for name, column in zip(frame.column_names, frame.columns, strict=True):
            observed = pc.drop_null(column)
            value = values.get(name, observed[0] if len(observed) else None)
            if not isinstance(value, pa.Scalar):
                value = pa.scalar(value, column.type)
            columns.append(column if not value.is_valid else pc.fill_null(column, value))
        return pa.table(columns, names=frame.column_names)

    return fill
