"""The classifier: classes from rows with holes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight

from grapefill.errors import ConfigError
from grapefill.predictor import GrapePredictor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from torch import nn

    from grapefill.graph import Layout
    from grapefill.table import Kind
    from grapefill.table.arrays import FloatArray
    from grapefill.table.labels import Labels
    from grapefill.training import CheckpointFile, Preset, Progress

# Probabilities below that are not told apart in log-odds.
SMALLEST_CHANCE = 1e-12


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
    random_state : int, Generator, RandomState or None, default=None
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
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
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
