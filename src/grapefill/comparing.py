"""Compare grapefill with what people use instead, on a table of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grapefill.errors import ConfigError
from grapefill.evaluate.methods import PEERS, Method, OnTable, read_methods
from grapefill.evaluate.trial import compare_methods
from grapefill.imputer import GrapeImputer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from grapefill.evaluate.comparison import Comparison
    from grapefill.evaluate.trial import Step
    from grapefill.table import Kind

__all__ = ["METHODS", "compare"]


def _preset(name: str) -> Method:
    return OnTable(lambda seed, kinds: GrapeImputer(name, kinds=kinds, random_state=seed))


METHODS: dict[str, Method] = {
    **PEERS,
    "grapefill fast": _preset("fast"),
    "grapefill default": _preset("default"),
}
"""The methods that are compared when none are named."""


def compare(
    X: Any,
    methods: Mapping[str, Any] | Iterable[Any] | None = None,
    *,
    rate: float = 0.2,
    repeats: int = 3,
    mechanism: str = "mcar",
    max_rows: int | None = 5000,
    kinds: Mapping[Any, Kind | str] | None = None,
    missing_values: Any = np.nan,
    callbacks: Sequence[Callable[[Step], None]] | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Comparison:
    """Find out which imputer fills the holes of a table best.

    Some of the observed cells are hidden, every method fills them, and what it says is held against
    what was there; several times over, every time with the same cells for all methods.

    Parameters
    ----------
    X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
        The table. It may have holes; they stay.
    methods : list, dict of str to method, or None, default=None
        What to compare: names of the usual methods, imputers of scikit-learn or like them, and
        functions from a table with holes to a filled one. None is all of the usual methods:
        ``"mean"`` (of categories the most frequent), ``"KNN"``, ``"MICE"``, ``"chained trees"``,
        ``"grapefill fast"`` and ``"grapefill default"``.
    rate : float, default=0.2
        Share of the observed cells of each column that are hidden.
    repeats : int, default=3
        How often. More repeats tell smaller differences from chance.
    mechanism : {"mcar", "mar", "mnar"}, default="mcar"
        How the cells are chosen, see `ampute`.
    max_rows : int or None, default=5000
        Of a longer table, so many rows are drawn at random. None takes all.
    kinds : dict or None, default=None
        Kinds of columns that the dtype does not tell, as in `GrapeImputer`.
    missing_values : int, float, str, np.nan, None or pandas.NA, default=np.nan
        A mark for missing cells, besides NaN, None, NaT, NA and null.
    callbacks : sequence of callable or None, default=None
        Each is called with a `Step` before every filling and at the end.
    random_state : int, Generator, RandomState or None, default=None
        Pass an int for the same result at every call, seconds apart. Imputers whose own
        ``random_state`` is None get one that follows from it.

    Returns
    -------
    Comparison
        Print it for a table; `Comparison.recommendation` says in a sentence what to use. A method
        that failed is in it too, with its error.

    Notes
    -----
    Columns take part that `GrapeImputer` can fill, and cells are hidden in those that are not
    constant. ``"KNN"`` is scikit-learn's ``KNNImputer()``, ``"MICE"`` its ``IterativeImputer()``,
    and ``"chained trees"`` the latter around 50 extra trees with ``min_samples_leaf=2`` and
    ``max_iter=5``, much like MissForest. These take long on tables with hundreds of columns.

    An imputer gets the table in the caller's container if scikit-learn's tags say that it takes
    categories or texts, and so does a function. All other imputers get an array of numbers in their
    own units, dates as numbers too, and a category as columns of 0 and 1, one for each but the most
    frequent, or as codes if there are more than 20; the likeliest category is their answer. The
    usual methods get numbers scaled to [0, 1], and chained trees get codes of categories, with
    which they do better. Answers are scored as they are, neither rounded nor held within a range.

    Ctrl-C ends the comparison with the repeats that are finished, if there are any.

    Examples
    --------
    >>> from sklearn.impute import SimpleImputer
    >>> random = np.random.default_rng(0)
    >>> table = random.normal(size=(200, 1)) + 0.1 * random.normal(size=(200, 4))
    >>> found = compare(table, ["KNN", SimpleImputer(strategy="median")], random_state=0)
    >>> found.best, found["SimpleImputer"].tied
    ('KNN', False)
    >>> print(found)
    20% of the observed cells (MCAR) of 200 rows and 4 columns were hidden, 3 times.
    <BLANKLINE>
    method                 error         behind  seconds
    KNN            ...
    """
    if callable(callbacks):
        raise ConfigError("callbacks must be a sequence. Pass a list: [callback].")
    return compare_methods(
        X,
        read_methods(methods, METHODS),
        rate=rate,
        repeats=repeats,
        mechanism=mechanism,
        max_rows=max_rows,
        kinds=kinds,
        missing_values=missing_values,
        callbacks=tuple(callbacks or ()),
        random_state=random_state,
    )
