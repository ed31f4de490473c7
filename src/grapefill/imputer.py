"""The imputer: a table with holes in, the same table filled out."""

from __future__ import annotations

import time
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from grapefill.errors import ConfigError, GrapefillWarning, InputError, ModelFileError
from grapefill.files.model import read_model, write_model
from grapefill.graph import Cells, choose_layout
from grapefill.nn.config import check_word
from grapefill.table import Encoded, Kind, Schema, Table
from grapefill.table.append import append_columns
from grapefill.training import History, Preset, Progress, ProgressBar, Trainer, get_preset
from grapefill.training.model import GrapeModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from torch import nn

    from grapefill.graph import Layout
    from grapefill.nn import GrapeNetwork

SLICE_ROWS = 65_536


class GrapeImputer(TransformerMixin, BaseEstimator):
    """Fill the holes of a table with a graph neural network.

    A table is a graph: its rows and columns are nodes, its observed cells are edges. The network
    learns to predict edges and so fills the cells that are missing [1]_. Numbers, integers,
    categories, booleans and dates are filled in one go; observed cells come back as they were.

    Parameters
    ----------
    preset : {"default", "fast", "paper"} or Preset, default="default"
        Architecture and training. ``"paper"`` is the configuration of the paper: accurate but
        slow, 20,000 epochs.
    settings : dict or None, default=None
        Changes to the preset, by the names of `NetworkConfig` and `TrainingConfig`, for example
        ``{"max_steps": 500, "width": 32}``.
    kinds : dict or None, default=None
        Kinds of columns that the dtype does not tell, by column name (or position for arrays):
        ``"continuous"``, ``"ordinal"``, ``"categorical"``, ``"boolean"``, ``"datetime"`` or
        ``"passthrough"``.
    missing_values : int, float, str, np.nan, None or pandas.NA, default=np.nan
        A mark for missing cells. NaN, None, NaT, NA and null always count as missing too.
    add_indicator : bool, default=False
        Whether to append a column ``missingindicator_<name>`` for every column that had missing
        cells at fit.
    keep_empty_features : bool, default=False
        Whether to keep columns that have no observed value at fit. Kept columns are filled with 0
        where they hold numbers, and stay missing otherwise.
    graph_from : {"fit", "transform"}, default="fit"
        Which rows make the graph that a new row is encoded in. ``"fit"``: those seen in fit, so
        that the result for a row does not depend on the rows that come with it.
        ``"transform"``: the rows given to transform, as in the paper.
    time_limit : float or None, default=None
        Seconds after which training stops.
    layout : {"auto", "dense", "edges"}, default="auto"
        How graphs are stored. ``"auto"``: as a dense block when at least half of the cells are
        edges, as a list of edges otherwise.
    o_edge : torch.nn.Module or None, default=None
        Your own module for the last step, from the states of a row and a column to a cell.
    warm_start : bool, default=False
        Whether fit goes on training the network of the previous fit, on the same table or on
        another one with the same columns. Kinds, categories and scaling stay as they were.
    device : str, default="auto"
        ``"auto"`` takes cuda, then mps, then cpu.
    callbacks : sequence of callable or None, default=None
        Each is called with a `Progress` after every training step.
    verbose : bool, default=False
        Whether to show a progress bar.
    random_state : int, RandomState instance or None, default=None
        Pass an int for the same result at every call.

    Attributes
    ----------
    model_ : GrapeModel
        Columns, scaling, network and feature states.
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
    >>> X = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, np.nan], [4.0, 8.0]])
    >>> filled = GrapeImputer("fast", random_state=0).fit_transform(X)
    >>> bool(np.isnan(filled).any()), filled[0].tolist()
    (False, [1.0, 2.0])
    """

    def __init__(
        self,
        preset: str | Preset = "default",
        *,
        settings: Mapping[str, Any] | None = None,
        kinds: Mapping[Any, Kind | str] | None = None,
        missing_values: Any = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        graph_from: Literal["fit", "transform"] = "fit",
        time_limit: float | None = None,
        layout: Layout = "auto",
        o_edge: nn.Module | None = None,
        warm_start: bool = False,
        device: str = "auto",
        callbacks: Sequence[Callable[[Progress], None]] | None = None,
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.preset = preset
        self.settings = settings
        self.kinds = kinds
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.graph_from = graph_from
        self.time_limit = time_limit
        self.layout = layout
        self.o_edge = o_edge
        self.warm_start = warm_start
        self.device = device
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn to fill the holes of a table.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            The table.
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        GrapeImputer
            The fitted imputer.
        """
        del y
        preset = self._checked_preset()
        table = Table.wrap(X, missing_values=self.missing_values)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        generator = torch.Generator().manual_seed(seed)
        schema = self._learn_schema(table)
        encoded = schema.encode(table)
        _require_values(schema, warn=not self.keep_empty_features)
        model = None
        if schema.features:
            model = self._start_model(schema, encoded, preset, generator)
            self._train(model, encoded, generator)
        else:
            self.history_ = History()
        self.model_ = model
        self._remember_columns(table, schema)
        return self

    def transform(self, X: Any) -> Any:
        """Fill the holes of a table.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit.

        Returns
        -------
        same container as X
            The table with its holes filled. Every observed cell is what it was; dtypes, index,
            order and names are kept.
        """
        check_is_fitted(self)
        table = Table.wrap(X, missing_values=self.missing_values)
        self.schema_.check(table, estimator=type(self).__name__)
        filled = table.rebuild(self._fills(table), self._kept_columns())
        if not self.add_indicator:
            return filled
        names, masks = self._indicators(table)
        return append_columns(filled, names, masks)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Any:
        """Return the names of the columns that transform gives.

        Parameters
        ----------
        input_features : sequence of str or None
            Names of the columns at fit, if it was an array; otherwise they must match.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self, "n_features_in_")
        from sklearn.utils.validation import _check_feature_names_in

        names = _check_feature_names_in(self, input_features)
        kept = [names[j] for j in self._kept_columns()]
        if self.add_indicator:
            kept += [f"missingindicator_{names[j]}" for j in self.indicator_columns_]
        return np.asarray(kept, dtype=object)

    def save(self, path: str | Path) -> None:
        """Write the fitted imputer to one file: safetensors and JSON, never pickle.

        Parameters
        ----------
        path : str or Path
            The file; by habit its name ends in ``.grape``.
        """
        check_is_fitted(self)
        description: dict[str, Any] = {
            "parameters": self._plain_parameters(),
            "schema": self.schema_.to_dict(),
            "indicator_columns": list(self.indicator_columns_),
            "history": self.history_.to_dict(),
            "model": None if self.model_ is None else self.model_.description(),
        }
        tensors = {} if self.model_ is None else self.model_.tensors()
        write_model(path, estimator=type(self).__name__, tensors=tensors, description=description)

    @classmethod
    def load(cls, path: str | Path, *, o_edge: nn.Module | None = None) -> Self:
        """Read an imputer that `save` wrote; its output is bit-equal.

        Parameters
        ----------
        path : str or Path
            The file.
        o_edge : torch.nn.Module or None
            The module that the imputer was fitted with, if it was your own.

        Returns
        -------
        GrapeImputer
            The fitted imputer.
        """
        file = read_model(path)
        if file.estimator != cls.__name__:
            raise ModelFileError(
                f"{str(path)!r} holds a {file.estimator}, not a {cls.__name__}. "
                f"Load it with {file.estimator}.load."
            )
        stored = file.description
        parameters = dict(stored["parameters"])
        if isinstance(parameters["preset"], dict):
            parameters["preset"] = Preset.from_dict(parameters["preset"])
        imputer = cls(**parameters, o_edge=o_edge)
        imputer.schema_ = Schema.from_dict(stored["schema"])
        imputer.indicator_columns_ = tuple(stored["indicator_columns"])
        imputer.history_ = History.from_dict(stored["history"])
        imputer._remember_names(imputer.schema_)
        imputer.model_ = None
        if stored["model"] is not None:
            imputer.model_ = GrapeModel.restore(stored["model"], file.tensors, o_edge=o_edge)
            imputer.model_.to(imputer._resolved_device())
        return imputer

    @property
    def network_(self) -> GrapeNetwork | None:
        """The trained torch module; None when no column could be imputed."""
        check_is_fitted(self)
        return None if self.model_ is None else self.model_.network

    def encode(self, X: Any) -> Cells:
        """Return the cells of a table as tensors, for use with `network_` in torch code.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit.

        Returns
        -------
        Cells
            ``imputer.network_(cells)`` gives the imputed rows as a tensor with gradient.
        """
        check_is_fitted(self)
        table = Table.wrap(X, missing_values=self.missing_values)
        self.schema_.check(table, estimator=type(self).__name__)
        if self.model_ is None:
            raise InputError("None of the columns seen in fit can be imputed.")
        return self.model_.cells(self.schema_.encode(table).numbers)

    def _checked_preset(self) -> Preset:
        check_word("graph_from", self.graph_from, ("fit", "transform"))
        check_word("layout", self.layout, ("auto", "dense", "edges"))
        if self.time_limit is not None and not self.time_limit > 0:
            raise ConfigError(f"time_limit must be positive or None, got {self.time_limit!r}.")
        return get_preset(self.preset).change(**(self.settings or {}))

    def _resolved_device(self) -> torch.device:
        if self.device != "auto":
            try:
                return torch.device(self.device)
            except RuntimeError as error:
                raise ConfigError(f"device={self.device!r} is not a torch device.") from error
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")

    def _remember_columns(self, table: Table, schema: Schema) -> None:
        self.schema_ = schema
        self._remember_names(schema)
        self.indicator_columns_ = tuple(j for j in self._kept_columns() if table.missing(j).any())

    def _remember_names(self, schema: Schema) -> None:
        self.n_features_in_ = len(schema.columns)
        if schema.named:
            self.feature_names_in_ = np.asarray(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _learn_schema(self, table: Table) -> Schema:
        previous: GrapeModel | None = getattr(self, "model_", None) if self.warm_start else None
        if previous is None:
            return Schema.infer(table, kinds=self.kinds)
        previous.schema.check(table, estimator=type(self).__name__)
        return previous.schema

    def _start_model(
        self, schema: Schema, encoded: Encoded, preset: Preset, generator: torch.Generator
    ) -> GrapeModel:
        """Return the network of the previous fit with ``warm_start``, or a new one."""
        previous: GrapeModel | None = getattr(self, "model_", None) if self.warm_start else None
        if previous is None:
            return GrapeModel.create(
                schema, encoded, preset, generator=generator, o_edge=self.o_edge
            )
        if previous.preset.network != preset.network:
            raise ConfigError(
                "warm_start goes on training the network of the previous fit, but the settings "
                "now ask for another architecture. Set warm_start=False to start afresh."
            )
        previous.preset = preset
        return previous

    def _train(self, model: GrapeModel, encoded: Encoded, generator: torch.Generator) -> None:
        start = time.perf_counter()
        model.to(self._resolved_device())
        model.layout = choose_layout(self.layout, float(encoded.observed.mean()))
        with ExitStack() as stack:
            callbacks = list(self.callbacks or ())
            if self.verbose:
                callbacks.append(stack.enter_context(ProgressBar()))
            trainer = Trainer(
                model.network,
                model.cells(encoded.numbers),
                model.preset.training,
                generator=generator,
                layout=self.layout,
                time_limit=self.time_limit,
                callbacks=callbacks,
                started=start,
            )
            self.history_ = trainer.run()
        model.states = model.freeze_states(encoded.numbers)

    def _kept_columns(self) -> list[int]:
        columns = self.schema_.columns
        return [j for j, c in enumerate(columns) if self.keep_empty_features or not c.empty]

    def _fills(self, table: Table) -> dict[int, tuple[Any, Any]]:
        """Return what to write into which rows of which columns."""
        fills = self._empty_fills(table)
        model = self.model_
        if model is None or not table.n_rows:
            return fills
        states = None
        if self.graph_from == "transform":
            states = model.freeze_states(self.schema_.encode(table).numbers)
        positions: dict[int, list[Any]] = {j: [] for j in self.schema_.features}
        numbers: dict[int, list[Any]] = {j: [] for j in self.schema_.features}
        for start in range(0, table.n_rows, SLICE_ROWS):
            part = table.slice(start, min(start + SLICE_ROWS, table.n_rows))
            encoded = self.schema_.encode(part)
            holes = encoded.fillable
            # Rows without holes need no prediction.
            rows = np.flatnonzero(holes.any(axis=1))
            predicted = model.predict(encoded.numbers[rows], states=states)
            for at, j in enumerate(self.schema_.features):
                use = holes[rows, at]
                positions[j].append(rows[use] + start)
                numbers[j].append(predicted[use, at])
        for j in self.schema_.features:
            where = np.concatenate(positions[j])
            if where.size:
                values = self.schema_.columns[j].decode(np.concatenate(numbers[j]))
                fills[j] = (where, values)
        return fills

    def _empty_fills(self, table: Table) -> dict[int, tuple[Any, Any]]:
        """Return the zeros for number columns that had no value at fit."""
        fills = {}
        for j in self._kept_columns():
            column = self.schema_.columns[j]
            if column.empty and column.family == "number":
                where = np.flatnonzero(table.missing(j))
                fills[j] = (where, np.zeros(where.size))
        return fills

    def _indicators(self, table: Table) -> tuple[list[str], list[Any]]:
        names = [f"missingindicator_{table.labels[j]}" for j in self.indicator_columns_]
        return names, [table.missing(j) for j in self.indicator_columns_]

    def _plain_parameters(self) -> dict[str, Any]:
        """Return the parameters that make sense in a file, as plain JSON values."""
        left_out = ("o_edge", "callbacks", "random_state")
        parameters = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in left_out
        }
        if isinstance(parameters["preset"], Preset):
            parameters["preset"] = parameters["preset"].to_dict()
        if self.kinds is not None:
            parameters["kinds"] = {str(k): str(Kind(v)) for k, v in self.kinds.items()}
        missing = self.missing_values
        if missing is not None and not isinstance(missing, str | int | float):
            # pandas.NA and numpy scalars; NA counts as missing whatever the mark is.
            parameters["missing_values"] = missing.item() if hasattr(missing, "item") else np.nan
        if isinstance(self.random_state, int):
            parameters["random_state"] = self.random_state
        return parameters

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _require_values(schema: Schema, *, warn: bool) -> None:
    """Refuse a table without a single value, and name the columns that have none."""
    empty = [column.name for column in schema.columns if column.empty]
    if len(empty) == len(schema.columns):
        raise InputError(
            "Every cell is missing: there is nothing to learn from. Check missing_values and "
            "whether the right columns were read."
        )
    if empty and warn:
        warnings.warn(
            "These columns have no observed value and are not used: "
            + ", ".join(map(repr, empty))
            + ". They are left out of the result unless keep_empty_features=True.",
            GrapefillWarning,
            stacklevel=3,
        )
