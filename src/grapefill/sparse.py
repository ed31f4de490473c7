"""The imputer for wide tables of which only a small part is observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from grapefill.errors import InputError, SchemaError
from grapefill.estimator import GrapeEstimator
from grapefill.training import Preset, ProgressBar
from grapefill.training.device import resolve_device
from grapefill.training.model import GrapeModel
from grapefill.training.sparse import (
    edge_cells,
    fit_sparse,
    predict_pairs,
    wide_scaling,
    wide_schema,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grapefill.graph import EdgeCells
    from grapefill.table.arrays import FloatArray, IntArray
    from grapefill.training import Progress

__all__ = ["SparseImputer"]


class SparseImputer(GrapeEstimator):
    """Predict cells of a wide table of numbers of which only few are observed.

    Such as ratings of many things by many people: thousands of columns, one cell in a hundred
    observed. Time and memory grow with the observed cells, not with rows times columns. All cells
    are numbers in the same unit. A cell that is not stored is missing; a stored zero is a zero.

    Parameters
    ----------
    preset : {"default", "fast", "paper"} or Preset, default="default"
        Architecture and training, as for `GrapeImputer`. There are no trees; a linear part, factor
        analysis of the observed cells, is blended with the network as far as that helps on
        held-out cells.
    settings : dict or None, default=None
        Changes to the preset, by the names of `NetworkConfig` and `TrainingConfig`.
    time_limit : float or None, default=None
        Seconds for fit.
    device : str, default="auto"
        ``"auto"`` takes cuda, then mps, then cpu.
    callbacks : sequence of callable or None, default=None
        Each is called with a `Progress` after every training step.
    verbose : bool, default=False
        Whether to show a progress bar.
    random_state : int, Generator, RandomState or None, default=None
        Pass an int for the same result at every call on the same machine.

    Attributes
    ----------
    model_ : GrapeModel
        Columns, scaling, network and feature states.
    history_ : History
        Losses over the course of training.
    n_features_in_ : int
        Number of columns at fit.

    Examples
    --------
    >>> import scipy.sparse
    >>> random = np.random.default_rng(0)
    >>> ratings = scipy.sparse.random(60, 40, density=0.2, random_state=random)
    >>> imputer = SparseImputer("fast", settings={"max_steps": 5}, random_state=0).fit(ratings)
    >>> imputer.predict_cells(ratings, rows=[0, 0, 7], columns=[1, 2, 39]).shape
    (3,)
    """

    missing_values = np.nan
    layout = "edges"
    o_edge = None
    checkpoint = None
    kinds = None
    _heads = ()

    def __init__(
        self,
        preset: str | Preset = "default",
        *,
        settings: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        device: str = "auto",
        callbacks: Sequence[Callable[[Progress], None]] | None = None,
        verbose: bool = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.preset = preset
        self.settings = settings
        self.time_limit = time_limit
        self.device = device
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, shape: tuple[int, int] | None = None) -> Self:
        """Learn from the observed cells of a table.

        Parameters
        ----------
        X : scipy sparse matrix or array, or (rows, columns, values)
            The observed cells; as three arrays of the same length in the second form.
        y : ignored
            Present for scikit-learn's interface.
        shape : (int, int) or None
            Rows and columns of the table, in the second form; up to the last that is named when
            None.

        Returns
        -------
        SparseImputer
            The fitted imputer.
        """
        del y
        preset = self._checked_preset()
        # One-hot features would make the first layer grow with the square of their number.
        preset = preset.change(feature_init="embedding")
        rows, columns, values, shape = _observed(X, shape)
        if not values.size:
            raise InputError("No cell is observed: there is nothing to learn from.")
        generator = self._generator()
        schema = wide_schema(values, shape[1])
        model = GrapeModel.create(
            schema,
            values[:, None],
            preset,
            generator=generator,
            scaling=wide_scaling(columns, values, shape[1]),
        )
        model.to(resolve_device(self.device))
        model.layout = "edges"
        cells = edge_cells(model, rows, columns, values, shape[0])
        callbacks = list(self.callbacks or ())
        options = {"generator": generator, "time_limit": self.time_limit, "layout": "edges"}
        if self.verbose:
            with ProgressBar() as bar:
                history = fit_sparse(model, cells, callbacks=[*callbacks, bar], **options)
        else:
            history = fit_sparse(model, cells, callbacks=callbacks, **options)
        self.model_, self.history_ = model, history
        self._remember(schema)
        return self

    def predict_cells(
        self,
        X: Any,
        rows: Any,
        columns: Any,
        *,
        shape: tuple[int, int] | None = None,
    ) -> FloatArray:
        """Predict some cells, given what is observed in their rows.

        Parameters
        ----------
        X : scipy sparse matrix or array, or (rows, columns, values)
            The observed cells of a table with the columns seen in fit; its rows may be others, and
            a row, or all of them, may have no observed cell.
        rows, columns : array of int
            The cells to predict. What the prediction for a cell is does not depend on which others
            are asked for, up to rounding.
        shape : (int, int) or None
            As in `fit`.

        Returns
        -------
        ndarray of float
            One number per cell, within the range seen in fit.
        """
        check_is_fitted(self)
        assert self.model_ is not None
        wanted_rows, wanted_columns = (_indices(each) for each in (rows, columns))
        if wanted_rows.shape != wanted_columns.shape:
            raise InputError(
                f"rows has {wanted_rows.size} numbers and columns {wanted_columns.size}. Give one "
                "row and one column for every cell to predict."
            )
        cells = self._cells(X, shape)
        limits = (("row", wanted_rows, cells.n_observations), ("column", wanted_columns, None))
        for what, found, count in limits:
            most = self.n_features_in_ if count is None else count
            outside = found[(found < 0) | (found >= most)]
            if outside.size:
                raise InputError(
                    f"A {what} to predict is {outside[0]}, but the table has {most} {what}s, "
                    "counted from 0."
                )
        return predict_pairs(self.model_, cells, wanted_rows, wanted_columns)

    def _cells(self, X: Any, shape: tuple[int, int] | None) -> EdgeCells:
        if shape is None and isinstance(X, tuple | list) and len(X) == 3:
            shape = (int(_indices(X[0]).max(initial=-1)) + 1, self.n_features_in_)
        rows, columns, values, shape = _observed(X, shape)
        if shape[1] != self.n_features_in_:
            raise SchemaError(
                f"X has {shape[1]} features, but SparseImputer is expecting {self.n_features_in_} "
                "features as input. Pass the columns of the table at fit, in their order."
            )
        assert self.model_ is not None
        return edge_cells(self.model_, rows, columns, values, shape[0])


def _observed(
    X: Any, shape: tuple[int, int] | None
) -> tuple[IntArray, IntArray, FloatArray, tuple[int, int]]:
    """Return rows, columns and values of the observed cells, and the shape of the table."""
    if hasattr(X, "tocoo"):
        matrix = X.tocoo()
        rows, columns, values = matrix.row, matrix.col, matrix.data
        shape = (int(matrix.shape[0]), int(matrix.shape[1]))
    elif isinstance(X, tuple | list) and len(X) == 3:
        rows, columns, values = X
    else:
        raise InputError(
            f"A {type(X).__name__} is not a sparse table. Pass a scipy sparse matrix, or (rows, "
            "columns, values); for dense tables there is GrapeImputer."
        )
    rows, columns = _indices(rows), _indices(columns)
    values = np.asarray(values, dtype=np.float64)
    if not rows.shape == columns.shape == values.shape:
        raise InputError(
            f"There are {rows.size} rows, {columns.size} columns and {values.size} values. Give "
            "one of each for every observed cell."
        )
    if not np.isfinite(values).all():
        raise InputError("An observed cell is NaN or infinite. Leave missing cells out.")
    last_row, last_column = int(rows.max(initial=-1)), int(columns.max(initial=-1))
    if shape is None:
        shape = (last_row + 1, last_column + 1)
    below = (rows < 0).any() or (columns < 0).any()
    if below or last_row >= shape[0] or last_column >= shape[1]:
        raise InputError(
            f"A cell is outside the table of {shape[0]} rows and {shape[1]} columns. Rows and "
            "columns are counted from 0."
        )
    place = rows * shape[1] + columns
    if np.unique(place).size < place.size:
        raise InputError("A cell is there twice. Give every observed cell once.")
    return rows, columns, values, shape


def _indices(given: Any) -> IntArray:
    array = np.atleast_1d(np.asarray(given))
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"Rows and columns are whole numbers from 0, got {array.dtype}.")
    return array.astype(np.int64)
