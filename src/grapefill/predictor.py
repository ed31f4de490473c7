"""Predictors: labels from rows with holes, end to end."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from grapefill.errors import ConfigError, InputError
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

# Probabilities below that are not told apart in log-odds.
SMALLEST_CHANCE = 1e-12
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
        random_state: int | np.random.RandomState | None = None,
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


class GrapeRegressor(RegressorMixin, GrapePredictor):
    """Predict numbers from rows with holes, with a graph neural network.

    A table is a graph: its rows and columns are nodes, its observed cells are edges. Labels are
    learned together with what is missing [1]_, and no hole has to be filled beforehand. What is
    predicted is close to the median, since the absolute error is what is minimised; preset
    ``"paper"`` minimises the squared error.

    Parameters
    ----------
    preset : {"default", "fast", "paper"} or Preset, default="default"
        Architecture and training. In ``"default"`` the label is one more column of the table, known
        in some rows: a network fills it, and trees refine what it says where that helps on held-out
        labels; `summary` tells where. ``"fast"`` is the same with a smaller network and fewer
        trees. ``"paper"`` is the configuration of the paper: two layers of 16 units, labels by a
        linear map of the imputed row, 20,000 epochs; used is a running average of the weights.
    settings : dict or None, default=None
        Changes to the preset, by the names of `NetworkConfig`, `TrainingConfig`, `ForestConfig` and
        `FactorConfig`.
    kinds : dict or None, default=None
        Kinds of columns that the dtype does not tell, by column name (or position for arrays):
        ``"continuous"``, ``"ordinal"``, ``"categorical"``, ``"boolean"``, ``"datetime"`` or
        ``"passthrough"``.
    missing_values : int, float, str, np.nan, None or pandas.NA, default=np.nan
        A mark for missing cells of X. NaN, None, NaT, NA and null always count as missing too.
    time_limit : float or None, default=None
        Seconds for fit. Training is planned to end in time, and trees that would take too long
        are left out.
    layout : {"auto", "dense", "edges"}, default="auto"
        How graphs are stored, see `GrapeImputer`.
    o_edge : torch.nn.Module or None, default=None
        Your own module for cells, see `GrapeImputer`. A copy of it is trained.
    o_node : torch.nn.Module or None, default=None
        Your own module for labels, from the imputed row, shape (rows, places), to one number per
        label.
        A copy of it is trained, and no trees are grown.
    device : str, default="auto"
        ``"auto"`` takes cuda, then mps, then cpu.
    callbacks : sequence of callable or None, default=None
        Each is called with a `Progress` after every training step and every forest.
    verbose : bool, default=False
        Whether to show a progress bar.
    checkpoint : str, Path, CheckpointFile or None, default=None
        A file in which the state of training is kept every half minute until fit is complete. A
        fit that was cut off goes on from there, and ends as if nothing had happened, when it is
        called again with the same table, settings and ``random_state``. A
        `grapefill.training.CheckpointFile` says how often.
    random_state : int, RandomState instance or None, default=None
        Pass an int for the same result at every call on the same machine; on a GPU up to
        rounding.

    Attributes
    ----------
    model_ : GrapeModel
        Columns, scaling, network, feature states, factors and trees.
    network_ : GrapeNetwork
        The trained torch module.
    history_ : History
        Losses over the course of training.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of str
        Names of the columns at fit, when they are all strings.

    References
    ----------
    .. [1] You, Ma, Ding, Kochenderfer, Leskovec: Handling Missing Data with Graph Representation
       Learning. NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X @ [1.0, 2.0, -1.0]
    >>> X[::3, 0] = np.nan
    >>> model = GrapeRegressor("fast", random_state=0).fit(X[:150], y[:150])
    >>> bool(model.score(X[150:], y[150:]) > 0.5)
    True
    """

    _task = "regression"

    def predict(self, X: Any) -> FloatArray:
        """Predict the labels of rows.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit.

        Returns
        -------
        ndarray of shape (rows,), or (rows, labels) if ``y`` had columns
            The predicted numbers.
        """
        value = self._predicted(X).value
        return self.labels_.numbers(value)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class GrapeClassifier(ClassifierMixin, GrapePredictor):
    """Predict classes from rows with holes, with a graph neural network.

    A table is a graph: its rows and columns are nodes, its observed cells are edges. Labels are
    learned together with what is missing [1]_, and no hole has to be filled beforehand. A class
    with a single known row is learned as well as that allows.

    Parameters
    ----------
    preset : {"default", "fast", "paper"} or Preset, default="default"
        Architecture and training. In ``"default"`` the label is one more column of the table, known
        in some rows: a network fills it, and trees refine what it says where that helps on held-out
        labels; `summary` tells where. ``"fast"`` is the same with a smaller network and fewer
        trees. ``"paper"`` is the configuration of the paper: two layers of 16 units, labels by a
        linear map of the imputed row, 20,000 epochs; used is a running average of the weights.
    settings : dict or None, default=None
        Changes to the preset, by the names of `NetworkConfig`, `TrainingConfig`, `ForestConfig` and
        `FactorConfig`.
    kinds : dict or None, default=None
        Kinds of columns that the dtype does not tell, by column name (or position for arrays):
        ``"continuous"``, ``"ordinal"``, ``"categorical"``, ``"boolean"``, ``"datetime"`` or
        ``"passthrough"``.
    missing_values : int, float, str, np.nan, None or pandas.NA, default=np.nan
        A mark for missing cells of X. NaN, None, NaT, NA and null always count as missing too.
    time_limit : float or None, default=None
        Seconds for fit. Training is planned to end in time, and trees that would take too long
        are left out.
    layout : {"auto", "dense", "edges"}, default="auto"
        How graphs are stored, see `GrapeImputer`.
    o_edge : torch.nn.Module or None, default=None
        Your own module for cells, see `GrapeImputer`. A copy of it is trained.
    o_node : torch.nn.Module or None, default=None
        Your own module for labels, from the imputed row, shape (rows, places), to one logit per
        class.
        A copy of it is trained, and no trees are grown.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of every class count, by class. ``"balanced"`` lets rare classes count
        for more, so that all classes together count the same.
    device : str, default="auto"
        ``"auto"`` takes cuda, then mps, then cpu.
    callbacks : sequence of callable or None, default=None
        Each is called with a `Progress` after every training step and every forest.
    verbose : bool, default=False
        Whether to show a progress bar.
    checkpoint : str, Path, CheckpointFile or None, default=None
        A file in which the state of training is kept every half minute until fit is complete. A
        fit that was cut off goes on from there, and ends as if nothing had happened, when it is
        called again with the same table, settings and ``random_state``. A
        `grapefill.training.CheckpointFile` says how often.
    random_state : int, RandomState instance or None, default=None
        Pass an int for the same result at every call on the same machine; on a GPU up to
        rounding.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
        The classes, sorted.
    model_ : GrapeModel
        Columns, scaling, network, feature states, factors and trees.
    network_ : GrapeNetwork
        The trained torch module.
    history_ : History
        Losses over the course of training.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of str
        Names of the columns at fit, when they are all strings.

    References
    ----------
    .. [1] You, Ma, Ding, Kochenderfer, Leskovec: Handling Missing Data with Graph Representation
       Learning. NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0, "high", "low")
    >>> X[::3, 1] = np.nan
    >>> model = GrapeClassifier("fast", random_state=0).fit(X[:150], y[:150])
    >>> model.classes_.tolist(), model.predict_proba(X[150:]).shape
    (['high', 'low'], (50, 2))
    """

    _task = "classification"

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
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        device: str = "auto",
        callbacks: Sequence[Callable[[Progress], None]] | None = None,
        verbose: bool = False,
        checkpoint: str | Path | CheckpointFile | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            preset,
            settings=settings,
            kinds=kinds,
            missing_values=missing_values,
            time_limit=time_limit,
            layout=layout,
            o_edge=o_edge,
            o_node=o_node,
            device=device,
            callbacks=callbacks,
            verbose=verbose,
            checkpoint=checkpoint,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def predict(self, X: Any) -> Any:
        """Predict the classes of rows.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit.

        Returns
        -------
        ndarray of shape (rows,)
            The most probable class of every row.
        """
        chances = self.predict_proba(X)
        return self.classes_[chances.argmax(axis=1)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the probabilities of classes.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit.

        Returns
        -------
        ndarray of shape (rows, classes)
            In the order of `classes_`; every row adds up to 1.
        """
        return self._predicted(X).chances[0]

    def decision_function(self, X: Any) -> FloatArray:
        """Return the logarithms of probabilities, or of the odds when there are two classes.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit.

        Returns
        -------
        ndarray of shape (rows,) for two classes, otherwise (rows, classes)
            The higher, the more probable; for two classes that is the second one.
        """
        scores = np.log(np.maximum(self.predict_proba(X), SMALLEST_CHANCE))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _label_weights(
        self, sample_weight: Any, labels: Labels, known: FloatArray
    ) -> FloatArray | None:
        weights = super()._label_weights(sample_weight, labels, known)
        if self.class_weight is None:
            return weights
        has_label = ~np.isnan(known[:, 0])
        classes = labels.classes[known[has_label, 0].astype(np.int64)]
        by_class = np.ones(known.shape[0])
        by_class[has_label] = compute_sample_weight(self.class_weight, classes)
        if not (np.isfinite(by_class) & (by_class >= 0)).all():
            raise ConfigError(
                f"class_weight must give every class a number from 0 on, got {self.class_weight!r}."
            )
        return by_class if weights is None else by_class * weights

    def _remember_labels(self, labels: Labels) -> None:
        super()._remember_labels(labels)
        self.classes_ = labels.classes
