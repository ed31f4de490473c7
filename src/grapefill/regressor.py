"""The regressor: numbers from rows with holes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import RegressorMixin

from grapefill.predictor import GrapePredictor

if TYPE_CHECKING:
    from grapefill.table.arrays import FloatArray


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
    random_state : int, Generator, RandomState or None, default=None
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
