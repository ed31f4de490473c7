"""Space around the cells of a column, as in files whose columns have a fixed width."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Padding"]

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")


@dataclass(frozen=True)
class Padding:
    """The space around the cells of a column.

    Parameters
    ----------
    before, after : str
        Space in front of the cells and behind them.
    right, left : int
        Letters that a cell and its space in front, or behind, have together, in a column of a fixed
        width that is aligned to the right, or to the left; 0 in others.

    Examples
    --------
    >>> padding = Padding.of(["  11.2 ", "   7.5 "])
    >>> padding.around(pa.array(["3.0", "120.0"])).to_pylist()
    ['   3.0 ', ' 120.0 ']
    """

    before: str = ""
    after: str = ""
    right: int = 0
    left: int = 0

    @classmethod
    def of(cls, cells: Sequence[str]) -> Padding:
        """Find out what is around some cells, at least one; they are not all space."""
        before = [cell[: len(cell) - len(cell.lstrip())] for cell in cells]
        after = [cell[len(cell.rstrip()) :] for cell in cells]
        same_after, same_before = len(set(after)) == 1, len(set(before)) == 1
        behind = after[0] if same_after else ""
        width = len(cells[0]) if len(set(map(len, cells))) == 1 else 0
        if width and same_after and not same_before:
            return cls("", behind, right=width - len(behind))
        if width and same_before and not same_after:
            return cls(before[0], "", left=width - len(before[0]))
        # Where neither tells, the first cell stands for all.
        return cls(before[0], behind)

    def around(self, cells: Any) -> Any:
        """Return cells, a pyarrow array of text, with the space around them."""
        if self.right:
            cells = pc.utf8_lpad(cells, width=self.right)
        if self.left:
            cells = pc.utf8_rpad(cells, width=self.left)
        if not self.before and not self.after:
            return cells
        return pc.binary_join_element_wise(self.before, cells, self.after, "")
