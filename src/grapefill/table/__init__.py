"""Tables: columns and their kinds, cells to numbers and back, the caller's container kept.

`Table` wraps what the caller passed, `Schema` learns its columns, `Schema.encode` gives the
numbers for the graph, `Column.decode` and `Table.rebuild` lead back.

Examples
--------
>>> import numpy as np
>>> table = Table.wrap(np.array([[1.0, 10.0], [2.0, np.nan]]))
>>> schema = Schema.infer(table)
>>> rows = np.flatnonzero(table.missing(1))
>>> values = schema.columns[1].decode(np.array([99.0]))
>>> table.rebuild({1: (rows, values)}, keep=[0, 1])
array([[ 1., 10.],
       [ 2., 10.]])
"""

from grapefill.table.column import Column
from grapefill.table.encode import Encoded
from grapefill.table.kinds import Kind
from grapefill.table.scaling import Scaling
from grapefill.table.schema import Schema
from grapefill.table.table import Table

__all__ = ["Column", "Encoded", "Kind", "Scaling", "Schema", "Table"]
