"""What predictors share: labels from rows with holes, end to end."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from grapefill.errors import InputError
from grapefill.estimator import GrapeEstimator
from grapefill.table import Kind, Schema, Table
from grapefill.table.labels import Labels
from grapefill.table.usable import report_useless, require_observed
from grapefill.training.device import resolve_device
from grapefill.training.fill import fill_holes, predict_labels
from grapefill.training.model import GrapeModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from torch import nn

    from grapefill.graph import Layout
    from grapefill.table.arrays import FloatArray
    from grapefill.training import CheckpointFile, Preset, Progress
    from grapefill.trees import Guess

# A label that counts less than that beside the one that counts most is taken to count as much.
SMALLEST_WEIGHT = 1e-9


class GrapePredictor(GrapeEstimator):
    """Base of the predictors; the parameters are described where they are used."""

    _heads: ClassVar[tuple[str, ...]] = ("o_edge", "o_node")
    _predicts_labels: ClassVar[bool] = True
    _task: ClassVar[Literal["regression", "classification"]]
    # A column that predictions do not look at.
    _hidden: int | None = None

    def __init__(
        self,
        preset: str | Preset = "default",
        *,
        settings: Mapping[str, Any] | None = None,
        kinds: Mapping[Any, Kind | str] | None = None,
        missing_values: Any = np.nan,
        time_limit: float | None = None,
        layout: Layout = "auto",
        o_edge: nn.Module | None = None,
        o_node: nn.Module | None = None,
        device: str = "auto",
        callbacks: Sequence[Callable[[Progress], None]] | None = None,
        verbose: bool = False,
        checkpoint: str | Path | CheckpointFile | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.preset = preset
        self.settings = settings
        self.kinds = kinds
        self.missing_values = missing_values
        self.time_limit = time_limit
        self.layout = layout
        self.o_edge = o_edge
        self.o_node = o_node
        self.device = device
        self.callbacks = callbacks
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn to predict the labels of rows, holes and all.

        Rows whose label is missing (NaN, None, NA or null in ``y``) take part too: what is observed
        of them helps to understand the table.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            The table.
        y : array, list, or Series, DataFrame or column of pandas, polars or pyarrow
            The labels, one for each row.
        sample_weight : array of shape (rows,) or None
            How much the label of every row counts, beside the others; one that counts 0 is taken
            as missing.

        Returns
        -------
        GrapePredictor
            The fitted predictor.
        """
        preset = self._checked_preset()
        if self.o_node is not None:
            preset = preset.change(labels="node")
        resolve_device(self.device)
        table = Table.wrap(X, missing_values=self.missing_values)
        schema = Schema.infer(table, kinds=self.kinds)
        report_useless(schema)
        schema = schema.with_ends(table)
        if not schema.features:
            raise InputError(
                "None of the columns of X can be learned from. Give a table with a column of "
                "numbers, categories, booleans or dates."
            )
        labels, known = Labels.learn(y, task=self._task, n_rows=table.n_rows)
        weights = self._label_weights(sample_weight, labels, known)
        if weights is not None:
            known, weights = _weigh(known, weights)
        numbers = np.hstack([schema.encode(table).numbers, known])
        generator = self._generator()
        model = GrapeModel.create(
            schema,
            numbers,
            preset,
            generator=generator,
            labels=labels.n_categories,
            o_edge=self.o_edge,
            o_node=self.o_node,
        )
        history = self._train(model, numbers, generator, label_weights=weights)
        # Only now, so that a fit that fails leaves the predictor as it was.
        self.model_, self.history_ = model, history
        self._remember(schema)
        self._remember_labels(labels)
        return self

    def impute(self, X: Any) -> Any:
        """Return the completed table that predictions are read from.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit.

        Returns
        -------
        same container as X
            The table with its holes filled, without any knowledge of the labels of its rows. Every
            observed cell is what it was. Columns that had no value at fit stay empty.
        """
        model, table = self._checked(X)
        return table.rebuild(fill_holes(model, table), range(table.n_columns))

    def column_importance(
        self, X: Any, y: Any, *, scoring: str | Callable[..., float] | None = None
    ) -> dict[Any, float]:
        """Return by how much the score drops when a column is hidden, for every column.

        No column is shuffled and nothing is fitted again: a hidden column is a hole in every row,
        which the predictor was made for.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit, better not the same rows.
        y : array or Series
            Their labels, all of them known.
        scoring : str, callable or None
            What to score by, as in scikit-learn; None for the predictor's own `score`.

        Returns
        -------
        dict of column to float
            By the names of the columns, or their positions if there are none.
        """
        _, table = self._checked(X)
        scorer = check_scoring(self, scoring)
        whole = scorer(self, X, y)
        names = range(table.n_columns) if table.names is None else table.names
        hiding, drops = copy.copy(self), {}
        for at, name in enumerate(names):
            hiding._hidden = at
            drops[name] = float(whole - scorer(hiding, X, y))
        return drops

    def refresh(self, X: Any, y: Any = None) -> Self:
        """Recompute the feature states from a table, after `network_` was trained further.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit, as a rule the one at fit.
        y : array or Series or None
            What is known of its labels.

        Returns
        -------
        GrapePredictor
            The predictor itself.
        """
        model, encoded = self._encoded(X)
        require_observed(encoded)
        numbers = model.without_labels(encoded.numbers)
        if y is not None:
            numbers[:, -model.n_labels :] = self.labels_.encode(y, n_rows=numbers.shape[0])
        model.network.eval()
        model.states = model.freeze_states(numbers)
        return self

    def _label_weights(
        self, sample_weight: Any, labels: Labels, known: FloatArray
    ) -> FloatArray | None:
        del labels
        if sample_weight is None:
            return None
        weights: FloatArray = _check_sample_weight(
            sample_weight, known, dtype=np.float64, ensure_non_negative=True
        )
        return weights

    def _checked(self, X: Any) -> tuple[GrapeModel, Table]:
        check_is_fitted(self)
        assert self.model_ is not None
        return self.model_, self._checked_table(X)

    def _predicted(self, X: Any) -> Guess:
        """Return what is predicted for the labels, as columns of their own."""
        model, table = self._checked(X)
        return predict_labels(model, table, hidden=self._hidden)

    def _remember_labels(self, labels: Labels) -> None:
        self.labels_ = labels

    def _extras(self) -> dict[str, Any]:
        return {"labels": self.labels_.to_dict()}

    def _set_extras(self, extras: Mapping[str, Any]) -> None:
        self._remember_labels(Labels.from_dict(extras["labels"]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _weigh(known: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Return the labels that count, and how much, 1 on average; None for all the same."""
    known = np.where(weights[:, None] > 0, known, np.nan)
    if np.isnan(known).all(axis=0).any():
        raise InputError(
            "sample_weight or class_weight is 0 for all labels: there is nothing to learn from. "
            "Give some of them a weight above 0."
        )
    counts = ~np.isnan(known).all(axis=1)
    some = weights[counts]
    if (some == some[0]).all():
        return known, None
    relative = np.maximum(some / some.max(), SMALLEST_WEIGHT)
    weights = np.ones_like(weights)
    weights[counts] = relative / relative.mean()
    return known, weights
