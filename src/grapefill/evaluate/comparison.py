"""What a comparison of methods found, as numbers, as a table and in a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.evaluate.metrics import paired_difference, standard_error
from grapefill.evaluate.text import join_words
from grapefill.lines import align, wrap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grapefill.table.arrays import BoolArray, FloatArray

__all__ = ["Comparison", "MethodResult", "Record", "TriedColumn", "rank"]

# What is further behind the best than this share of its error is no tie.
CLOSE = 0.1


@dataclass
class Record:
    """What one method did: the errors of hidden cells by repeat, seconds, or why it failed."""

    errors: list[FloatArray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failure: str = ""


@dataclass(frozen=True)
class TriedColumn:
    """A column that took part.

    Parameters
    ----------
    name, kind : str
        The column and its kind.
    hidden : int
        Cells hidden in it, over all repeats.
    """

    name: str
    kind: str
    hidden: int


@dataclass(frozen=True)
class MethodResult:
    """How well one method filled hidden cells.

    Parameters
    ----------
    name : str
        The method.
    error : float or None
        Sum of its errors over that of the best constant: 1 is as bad as filling with the median
        and the most frequent category, 0 is perfect. A number's error is its absolute error, in
        units of the column's mean distance from the median; a category's is 1 if it is wrong. All
        errors are means over the repeats, and None for a method that failed.
    standard_error : float or None
        Of the error, over the repeats; None with one repeat.
    behind, behind_error : float or None
        How far the error is above that of the best method on the same holes, and the standard
        error of this difference, which is what counts when methods are compared.
    tied : bool
        Whether it is at most a tenth behind the best method, and cannot be told apart from it at
        a confidence of 90%.
    numbers : float or None
        Mean error of numbers in units of the column's mean distance from the median.
    categories : float or None
        Share of wrong categories.
    seconds : float or None
        Time to fit and fill once.
    columns : dict of str to float
        Errors by column: like `numbers` or `categories`, by its kind.
    repeats : tuple of float
        The error in every repeat.
    failure : str
        Why the method failed; empty if it did not.
    """

    name: str
    error: float | None = None
    standard_error: float | None = None
    behind: float | None = None
    behind_error: float | None = None
    tied: bool = False
    numbers: float | None = None
    categories: float | None = None
    seconds: float | None = None
    columns: dict[str, float] = field(default_factory=dict)
    repeats: tuple[float, ...] = ()
    failure: str = ""


@dataclass(frozen=True)
class Comparison:
    """What `grapefill.compare` found; print it for a table.

    Parameters
    ----------
    methods : tuple of MethodResult
        The methods, best first, those that failed last.
    columns : tuple of TriedColumn
        The columns that took part.
    rate : float
        Share of the observed cells that were hidden each time.
    mechanism : {"mcar", "mar", "mnar"}
        How they were chosen.
    repeats : int
        How often cells were hidden.
    rows, rows_given : int
        Rows that took part, and rows of the table.
    """

    methods: tuple[MethodResult, ...]
    columns: tuple[TriedColumn, ...]
    rate: float
    mechanism: str
    repeats: int
    rows: int
    rows_given: int

    @property
    def best(self) -> str | None:
        """The method with the lowest error; None if all failed."""
        return None if self.methods[0].failure else self.methods[0].name

    @property
    def ties(self) -> tuple[str, ...]:
        """The best method and those that cannot be told apart from it, best first."""
        return tuple(method.name for method in self.methods if method.tied)

    @property
    def recommended(self) -> str | None:
        """The fastest of the `ties`; None if all failed."""
        tied = [method for method in self.methods if method.tied]
        return min(tied, key=lambda each: each.seconds or 0.0).name if tied else None

    @property
    def recommendation(self) -> str:
        """One sentence on what to use."""
        if self.best is None:
            return "All methods failed, so none can be recommended."
        chosen = self[self.recommended]
        share = f"{chosen.error:.0%} of the error of {self._constant()}"
        if chosen.error is not None and chosen.error > 0.98:
            return f"No method is better than {self._constant()}: {chosen.name!r} leaves {share}."
        working = [method for method in self.methods if not method.failure]
        if len(working) == 1:
            return f"Only {chosen.name!r} worked; it leaves {share}."
        if len(self.ties) > 1:
            names = join_words([repr(name) for name in self.ties])
            return (
                f"{names} cannot be told apart with {self.repeats} repeats; use {chosen.name!r}, "
                f"the fastest of them, which leaves {share}."
            )
        second = working[1]
        sure = "" if self.repeats > 1 else " in the only repeat"
        return (
            f"Use {chosen.name!r}: it leaves {share}, the least of {len(working)} methods{sure}; "
            f"the next is {second.name!r} with {second.error:.0%}."
        )

    def __getitem__(self, name: str | None) -> MethodResult:
        """Return the result of a method by its name."""
        for method in self.methods:
            if method.name == name:
                return method
        raise KeyError(name)

    def __str__(self) -> str:
        lines = [self._heading(), ""]
        header, rows = self._cells()
        lines += align([header, *rows], right=range(1, len(header)), narrow=[0])
        failed = [method for method in self.methods if method.failure]
        if failed:
            lines += ["", *(f"{m.name} failed: {_first_line(m.failure)}" for m in failed)]
        for words in (self._legend(), self.recommendation):
            lines += ["", wrap(words)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        header, rows = self._cells()
        parts = [f"<p>{escape(self._heading())}</p>", "<table><thead><tr>"]
        parts += [f"<th>{escape(cell)}</th>" for cell in header]
        parts.append("</tr></thead><tbody>")
        for row in rows:
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
            parts.append(f"<tr>{cells}</tr>")
        parts.append("</tbody></table>")
        for method in self.methods:
            if method.failure:
                why = f"{method.name} failed: {_first_line(method.failure)}"
                parts.append(f"<p>{escape(why)}</p>")
        parts.append(f"<p>{escape(self._legend())}</p>")
        parts.append(f"<p><strong>{escape(self.recommendation)}</strong></p>")
        return "".join(parts)

    def to_pandas(self) -> Any:
        """Return the methods as a pandas DataFrame, one row each, indexed by their names.

        The errors by column are beside it in `columns_to_pandas`.
        """
        import pandas as pd

        rows = [asdict(method) for method in self.methods]
        frame = pd.DataFrame(rows).drop(columns=["columns", "repeats"])
        return frame.set_index("name")

    def columns_to_pandas(self) -> Any:
        """Return the errors by column as a pandas DataFrame, one row per column."""
        import pandas as pd

        frame = pd.DataFrame([asdict(column) for column in self.columns]).set_index("name")
        for method in self.methods:
            if not method.failure:
                frame[method.name] = pd.Series(method.columns, dtype=float)
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        plain = asdict(self)
        plain["methods"] = [
            {**asdict(method), "repeats": list(method.repeats)} for method in self.methods
        ]
        plain["columns"] = [asdict(column) for column in self.columns]
        plain |= {"best": self.best, "ties": list(self.ties), "recommended": self.recommended}
        return plain | {"recommendation": self.recommendation}

    def _heading(self) -> str:
        rows = f"{self.rows:,} rows"
        if self.rows < self.rows_given:
            rows = f"{self.rows:,} of {self.rows_given:,} rows, chosen at random,"
        times = "once" if self.repeats == 1 else f"{self.repeats} times"
        return (
            f"{self.rate:.0%} of the observed cells ({self.mechanism.upper()}) of {rows} and "
            f"{len(self.columns)} columns were hidden, {times}."
        )

    def _legend(self) -> str:
        words = f"Error 1 is that of {self._constant()}."
        if self.repeats > 1:
            words += " ± is one standard error over repeats; = is a tie with the best."
        return words

    def _constant(self) -> str:
        words = ["the median"] if self._has("numbers") else []
        words += ["the most frequent category"] if self._has("categories") else []
        return "filling with " + " or ".join(words)

    def _has(self, what: str) -> bool:
        return any(getattr(method, what) is not None for method in self.methods)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        header = ["method", "error", "behind"]
        both = self._has("numbers") and self._has("categories")
        header += ["numbers", "wrong categories"] if both else []
        rows = []
        for method in self.methods:
            if method.failure:
                continue
            behind = _with_error(method.behind, method.behind_error)
            row = [method.name, _with_error(method.error, method.standard_error)]
            row.append("" if method.name == self.best else f"{'= ' if method.tied else ''}{behind}")
            if both:
                row += [f"{method.numbers:.3f}", f"{method.categories:.1%}"]
            rows.append([*row, f"{method.seconds:.1f}"])
        return [*header, "seconds"], rows


def rank(
    records: Mapping[str, Record],
    places: Sequence[BoolArray],
    *,
    constant: FloatArray,
    discrete: BoolArray,
    labels: Sequence[str],
) -> tuple[MethodResult, ...]:
    """Put methods in order.

    Parameters
    ----------
    records : mapping of str to Record
        What the methods did; of a method's repeats those in `places` count.
    places : sequence of ndarray of bool, shape (rows, columns)
        The hidden cells of every repeat.
    constant : ndarray of shape (columns,)
        The mean error of the best constant, see `constant_errors`.
    discrete : ndarray of bool, shape (columns,)
        Which columns are categories.
    labels : sequence of str
        Names of the columns.
    """
    where = [np.nonzero(hidden)[1] for hidden in places]
    unit = np.where(discrete | (constant == 0), 1.0, constant)
    base = np.array([(constant / unit)[columns].sum() for columns in where])
    scores, results = {}, []
    for name, record in records.items():
        if record.failure:
            results.append(MethodResult(name, failure=record.failure))
            continue
        errors = [record.errors[r] / unit[columns] for r, columns in enumerate(where)]
        scores[name] = np.array([part.sum() for part in errors]) / base
        all_errors, all_columns = np.concatenate(errors), np.concatenate(where)
        results.append(
            MethodResult(
                name,
                error=float(scores[name].mean()),
                standard_error=standard_error(scores[name]),
                numbers=_mean(all_errors[~discrete[all_columns]]),
                categories=_mean(all_errors[discrete[all_columns]]),
                seconds=float(np.mean(record.seconds[: len(where)])),
                columns={
                    label: float(all_errors[all_columns == j].mean())
                    for j, label in enumerate(labels)
                    if (all_columns == j).any()
                },
                repeats=tuple(scores[name].tolist()),
            )
        )
    return _relate(results, scores)


def _relate(
    results: Sequence[MethodResult], scores: Mapping[str, FloatArray]
) -> tuple[MethodResult, ...]:
    """Sort results and tell how far each is behind the best."""
    ordered = sorted(results, key=lambda each: np.inf if each.error is None else each.error)
    best = scores.get(ordered[0].name)
    related = []
    for result in ordered:
        if result.failure or best is None:
            related.append(result)
            continue
        behind, error, tied = paired_difference(scores[result.name], best)
        # Few repeats can hardly tell any two methods apart, and are no reason to take a worse one.
        tied = tied and behind <= CLOSE * float(best.mean())
        fields = {**vars(result), "behind": behind, "behind_error": error, "tied": tied}
        related.append(MethodResult(**fields))
    return tuple(related)


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if values.size else None


def _with_error(value: float | None, error: float | None) -> str:
    shown = "" if value is None else f"{value:.3f}"
    return shown if error is None else f"{shown} ± {error:.3f}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
