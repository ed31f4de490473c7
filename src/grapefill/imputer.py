"""The imputer: a table with holes in, the same table filled out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

# Private, yet the only way to learn what both `set_output` and `set_config` ask for.
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from grapefill.errors import ConfigError
from grapefill.estimator import GrapeEstimator
from grapefill.files.batches import as_source
from grapefill.settings import check_word
from grapefill.table import Kind, Schema, Table
from grapefill.table.encode import join_strangers, warn_strangers
from grapefill.table.output import append_columns, as_pandas, as_polars
from grapefill.table.usable import (
    indicator_name,
    report_useless,
    require_free_names,
    require_observed,
)
from grapefill.training import History, Preset, Progress
from grapefill.training.arriving import SeenRows
from grapefill.training.device import resolve_device
from grapefill.training.fill import fill_holes
from grapefill.training.learn import Scanner, learn_table, read_small
from grapefill.training.model import GrapeModel
from grapefill.training.stream import StreamedRows
from grapefill.training.team import ALONE
from grapefill.uncertainty.fitted import Uncertainty, Unlearned
from grapefill.uncertainty.mixin import UncertaintyMixin
from grapefill.uncertainty.tables import other_fills, point_fills

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from torch import nn

    from grapefill.files.batches import BatchSource
    from grapefill.graph import Layout
    from grapefill.table.arrays import FloatArray
    from grapefill.table.cells import Fill
    from grapefill.table.encode import Strangers
    from grapefill.training import CheckpointFile
    from grapefill.training.checkpoint import Checkpoint
    from grapefill.training.stream import StreamedTable
    from grapefill.training.team import Team


LEFT_OUT = "They are left out of the result unless keep_empty_features=True."


class GrapeImputer(UncertaintyMixin, TransformerMixin, GrapeEstimator):
    """Fill the holes of a table with a graph neural network.

    A table is a graph: its rows and columns are nodes, its observed cells are edges. The network
    learns to predict edges and so fills the cells that are missing [1]_. Numbers, integers,
    categories, booleans and dates are filled in one go; observed cells come back as they were.
    What is filled in stays within the range, or among the categories, that was observed in the
    column at fit; draws may go beyond the range, see `sample`.

    Parameters
    ----------
    preset : {"default", "fast", "paper"} or Preset, default="default"
        Architecture and training. ``"default"`` is the most accurate: a network whose guesses are
        refined by trees, column by column, where that helps on held-out cells; `summary` tells
        where. ``"fast"`` is the same with a smaller network and fewer trees. ``"paper"`` is the
        configuration of the paper, a network alone and 20,000 epochs.
    settings : dict or None, default=None
        Changes to the preset, by the names of `NetworkConfig`, `TrainingConfig` and
        `ForestConfig`, for example ``{"max_steps": 500, "rounds": 0}`` for a short training and no
        trees.
    kinds : dict or None, default=None
        Kinds of columns that the dtype does not tell, by column name (or position for arrays):
        ``"continuous"``, ``"ordinal"``, ``"categorical"``, ``"boolean"``, ``"datetime"`` or
        ``"passthrough"``.
    missing_values : int, float, str, np.nan, None or pandas.NA, default=np.nan
        A mark for missing cells. NaN, None, NaT, NA and null always count as missing too.
    add_indicator : bool, default=False
        Whether to append a column ``missingindicator_<name>`` for every column that had missing
        cells at fit, also for one that is left out. Labels of pandas that are not all text become
        text then.
    keep_empty_features : bool, default=False
        Whether to keep columns that have no observed value at fit. Kept columns are filled with 0
        where they hold numbers, and stay missing otherwise. A column of the kind
        ``"passthrough"`` is kept as it is in any case.
    graph_from : {"fit", "transform"}, default="fit"
        Which rows make the graph that a new row is encoded in. ``"fit"``: those seen in fit, so
        that the result for a row does not depend on the rows that come with it.
        ``"transform"``: the rows given to transform, as in the paper.
    time_limit : float or None, default=None
        Seconds for fit. Training is planned to end in time, and trees that would take too long
        are left out. Draws are learned after that, in a second or so, from at most 2,000 rows.
    layout : {"auto", "dense", "edges"}, default="auto"
        How graphs are stored: as a dense block of all cells or as a list of edges. ``"auto"``
        takes the block when at least 80% of the cells are edges in training, counted after edge
        dropout, or 40% when filling, and the list otherwise.
    o_edge : torch.nn.Module or None, default=None
        Your own module for the last step, from the states of a row and a column to a cell. It
        takes the concatenated states, shape (..., 2 * width), and returns shape (..., 1 + total
        number of categories of discrete columns), the leading 1 only if there is a continuous
        column. A copy of it is trained, and no trees are grown.
    warm_start : bool, default=False
        Whether fit goes on training the network of the previous fit, on the same table or on
        another one with the same columns. Kinds, categories and scaling stay as they were.
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
    fill : {"best", "median", "mean", "mode"}, default="best"
        What `transform` fills numbers with: the guess of the smallest expected error, or the
        median, the mean or the mode of the cell's distribution, see `predict_distribution`. For
        the latter three, `fit` of a small table trains three more models, as intervals do.
    constraints : dict or None, default=None
        What filled numbers may be, by column name (or position for arrays): ``"non-negative"``,
        ``"integer"``, ``"rounded"`` (to as many digits as the observed values have, or to tens,
        hundreds, ... if these are),
        ``"observed"`` (only values that were observed, the nearest one), or a dict with some of
        ``min``, ``max``, ``integer``, ``allowed`` (a list), ``decimals`` (-2 for hundreds) and
        ``observed``. They hold in `transform`, `sample` and `interval`.
    rules : sequence of str or None, default=None
        What the cells of a row obey, such as ``"end >= start"`` or ``"`part a` + b <= 100"``.
        Filled cells that break a rule are changed as little as that takes; a warning tells of rows
        where observed cells break it. Columns of arrays are called x0, x1 and so on.
    delta : dict or None, default=None
        What is added to filled numbers, by column, to see how results change if missing values are
        larger or smaller than observed ones (not missing at random). Where a column holds whole
        numbers and the delta is none, some draws move further than others, and on average by the
        delta; what `transform` fills in moves by the rounded delta, and a warning says so.

    Attributes
    ----------
    model_ : GrapeModel
        Columns, scaling, network and feature states.
    network_ : GrapeNetwork
        The trained torch module.
    history_ : History
        Losses over the course of training.
    uncertainty_ : Uncertainty or None
        How missing cells are drawn; None without a column to fill. It is learned when it is first
        needed, from rows of the table that are kept until then, or when the imputer is saved.
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

    # A sample of the rows that `partial_fit` has seen.
    _seen: SeenRows | None = None

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
        checkpoint: str | Path | CheckpointFile | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        fill: Literal["best", "median", "mean", "mode"] = "best",
        constraints: Mapping[Any, Any] | None = None,
        rules: Sequence[str] | None = None,
        delta: Mapping[Any, float] | None = None,
    ) -> None:
        self.fill = fill
        self.constraints = constraints
        self.rules = rules
        self.delta = delta
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
        self.checkpoint = checkpoint
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn to fill the holes of a table.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            The table. Also what is too large for memory: the path of a Parquet file or of a folder
            of them, a pyarrow Dataset, or a function that returns an iterator of record batches
            anew at every call. It is read a few times, some rows at a time; a small one is read
            as a whole, and gives what a pyarrow Table of its rows gives.
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        GrapeImputer
            The fitted imputer.
        """
        del y
        self._check_words()
        preset = self._checked_preset()
        if self.fill != "best" and not preset.training.validation:
            raise ConfigError(
                f"fill={self.fill!r} needs held-out cells, and this preset holds out none. Add "
                'settings={"validation": 0.1, "rejoin": 0.8}, or choose fill="best".'
            )
        resolve_device(self.device)
        source = as_source(X)
        if source is not None:
            small = read_small(source)
            if small is None:
                return self._fit_source(source, preset)
            X = small
        table = Table.wrap(X, missing_values=self.missing_values)
        generator = self._generator()
        model: GrapeModel | None = getattr(self, "model_", None) if self.warm_start else None
        schema = self._learn_schema(table, model)
        self._constraints(schema, None)
        encoded = schema.encode(table)
        history = History()
        draws: Uncertainty | Unlearned | None = None
        if schema.features:
            require_observed(encoded)
            if model is None:
                model = GrapeModel.create(
                    schema, encoded.numbers, preset, generator=generator, o_edge=self.o_edge
                )
            else:
                model = model.continued(preset)
            history = self._train(model, encoded.numbers, generator)
            whole = not self.warm_start
            draws = self._put_aside(model, encoded.numbers, history, generator, whole=whole)
        # Only now, so that a fit that fails leaves the imputer as it was.
        self.model_, self.history_, self._draws = model, history, draws
        self._remember(schema)
        self.indicator_columns_ = tuple(j for j in range(table.n_columns) if table.missing(j).any())
        self._seen = None
        if self.fill != "best" and self.model_ is not None and self.uncertainty_ is not None:
            # What is filled in depends on these cells, and `transform` should not have to train.
            self.uncertainty_.held_out(self.model_)
        return self

    def _check_words(self) -> None:
        check_word("graph_from", self.graph_from, ("fit", "transform"))
        check_word("fill", self.fill, ("best", "median", "mean", "mode"))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on learning, from rows that have arrived since.

        The first call is a `fit`. Every further one trains the network on the new rows and on a
        sample of up to 50,000 rows seen before, so that what they taught is not forgotten. Kinds,
        categories and scaling stay those of the first call; a category that was not there then is
        left as it is, with a warning. Ranges of numbers and dates are widened to those of the new
        rows, and floats that were all whole numbers so far may be others from then on. Trees and
        their weights are made anew. The sample is kept in memory and in a pickle, not in a model
        file: after `load`, learning goes on from new rows alone.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            New rows, with the columns of the first call.
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        GrapeImputer
            The fitted imputer.

        Examples
        --------
        >>> X = np.column_stack([np.arange(40.0), np.arange(40.0) * 2])
        >>> imputer = GrapeImputer("fast", settings={"max_steps": 5}, random_state=0)
        >>> for start in (0, 20):
        ...     imputer = imputer.partial_fit(X[start : start + 20])
        >>> imputer.schema_.columns[1].upper
        78.0
        """
        del y
        if getattr(self, "model_", None) is None:
            self.fit(X)
            if self.model_ is not None:
                table = Table.wrap(X, missing_values=self.missing_values)
                numbers = self.schema_.encode(table, warn=False).numbers
                self._seen = SeenRows.none(numbers.shape[1]).joined(numbers, seed=0)
            return self
        preset = self._checked_preset()
        table = self._checked_table(X)
        encoded = self.schema_.encode(table)
        require_observed(encoded)
        assert self.model_ is not None
        schema = self.schema_.widened(table, kinds=self.kinds)
        model = replace(self.model_.continued(preset), schema=schema)
        seen = self._seen or SeenRows.none(encoded.numbers.shape[1])
        numbers = np.concatenate([seen.numbers, encoded.numbers])
        generator = self._generator()
        history = self._train(model, numbers, generator)
        draws = self._put_aside(model, numbers, history, generator)
        self.model_, self.history_, self._draws = model, history, draws
        self._remember(schema)
        self.indicator_columns_ = tuple(
            j
            for j in range(table.n_columns)
            if j in self.indicator_columns_ or table.missing(j).any()
        )
        self._seen = seen.joined(encoded.numbers, seed=generator.initial_seed())
        return self

    def _fit_source(self, source: BatchSource, preset: Preset) -> Self:
        """Learn from a table that is read some rows at a time."""
        generator = self._generator()
        model: GrapeModel | None = getattr(self, "model_", None) if self.warm_start else None
        scanner = Scanner(self.kinds, self.missing_values, generator.initial_seed())
        learned = scanner.join(scanner.look(source.stream()))
        previous = None if model is None else model.schema
        table = learn_table(source, learned, preset, scanner=scanner, schema=previous)
        holes = learned.scan.with_holes()
        return self._fit_table(table, holes, preset, generator=generator, previous=model)

    def _fit_table(
        self,
        table: StreamedTable,
        holes: tuple[int, ...],
        preset: Preset,
        *,
        generator: torch.Generator,
        previous: GrapeModel | None = None,
        team: Team = ALONE,
        shards: Sequence[int] | None = None,
        n_shards: int = 1,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Learn from the rows of a source, perhaps in a team where each has some shards of them."""
        if previous is None and not self.keep_empty_features:
            report_useless(table.schema, consequence=LEFT_OUT)
        self._constraints(table.schema, None)
        model, history, draws = previous, History(), None
        if table.schema.features:
            if previous is None:
                model = GrapeModel.create(
                    table.schema,
                    table.sample,
                    preset,
                    generator=generator,
                    o_edge=self.o_edge,
                    scaling=table.scaling,
                )
            else:
                model = previous.continued(preset)
            stream = StreamedRows(table, model.cells, shards=shards, n_shards=n_shards)
            history = self._train(
                model, table.sample, generator, stream=stream, team=team, checkpoint=checkpoint
            )
            draws = self._put_aside(model, table.sample, history, generator)
        self.model_, self.history_, self._draws = model, history, draws
        self._remember(table.schema)
        self.indicator_columns_ = holes
        self._seen = None
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
        return self._as_wanted(self._fill(X))

    def _output(self, table: Table, fills: dict[int, Fill]) -> Any:
        """Return the caller's table with cells filled, as the parameters ask for."""
        return self._as_wanted(self._rebuilt(table, fills))

    def _as_wanted(self, filled: Any) -> Any:
        wanted = _get_output_config("transform", self)["dense"]
        # scikit-learn would read polars as an array of objects, and pyarrow not at all.
        if wanted not in ("pandas", "polars"):
            return filled
        convert = as_pandas if wanted == "pandas" else as_polars
        return convert(filled, self.get_feature_names_out())

    def transform_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Fill the holes of a table that comes in batches, one after the other.

        Memory does not grow with the number of batches, and every row is filled exactly as
        `transform` would fill it. Batches of thousands of rows are faster than small ones.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch or pyarrow.Table
            Rows of a table with the columns seen in fit.

        Returns
        -------
        iterator of pyarrow.RecordBatch
            One for each given, in the same order, with the same rows. Of categories that were not
            there at fit it warns once, in the end.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, None, 6.0, 8.0]})
        >>> imputer = GrapeImputer("fast", random_state=0).fit(table)
        >>> filled = imputer.transform_batches(table.to_batches(max_chunksize=3))
        >>> [batch.num_rows for batch in filled]
        [3, 1]
        """
        check_is_fitted(self)
        if self.graph_from == "transform":
            raise ConfigError(
                'graph_from="transform" needs all rows at once, which batches are not. Use '
                'graph_from="fit", or transform.'
            )
        return self._fill_batches(batches)

    def _fill_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        from grapefill.table.arrow_frame import as_batch, as_table

        strangers: list[Strangers] = []
        for batch in batches:
            yield as_batch(self._fill(as_table(batch), strangers))
        warn_strangers(join_strangers(strangers))

    def _fill(self, X: Any, strangers: list[Strangers] | None = None) -> Any:
        """Return a table filled, in the container it came in."""
        self._check_words()
        table = self._checked_table(X)
        return self._rebuilt(table, self._fills(table, strangers))

    def _fills(self, table: Table, strangers: list[Strangers] | None = None) -> dict[int, Fill]:
        """Return what the holes of a checked table are filled with."""
        if self.model_ is None:
            return {}
        if self.fill == "best" and not self._constrained:
            return fill_holes(self.model_, table, graph_from=self.graph_from, strangers=strangers)
        parts = self._parts(table, strangers)
        if self.fill == "best":
            numbers = point_fills(self.schema_, parts)
        else:
            numbers = other_fills(self._beliefs(), parts, self.fill)
        return self._finished(table, numbers)

    def _rebuilt(self, table: Table, fills: dict[int, Fill]) -> Any:
        """Return a table with cells filled, and indicators if they are asked for."""
        filled = table.rebuild(self._zeros(table) | fills, self._kept_columns(self.schema_))
        if not self.add_indicator:
            return filled
        names = [indicator_name(table.labels[j]) for j in self.indicator_columns_]
        return append_columns(filled, names, [table.missing(j) for j in self.indicator_columns_])

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
        names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        kept = [names[j] for j in self._kept_columns(self.schema_)]
        if self.add_indicator:
            kept += [indicator_name(names[j]) for j in self.indicator_columns_]
        return np.asarray(kept, dtype=object)

    def _put_aside(
        self,
        model: GrapeModel,
        numbers: FloatArray,
        history: History,
        generator: torch.Generator,
        *,
        whole: bool = False,
    ) -> Uncertainty | Unlearned:
        """Return what it takes to draw cells; little time is spent after an interruption."""
        seed = int(torch.randint(2**31, (), generator=generator))
        interrupted = history.stopped == "interrupted"
        quick = interrupted or self.time_limit is not None
        aside = Unlearned.put_aside(numbers, seed=seed, quick=quick, whole=whole)
        try:
            return aside if interrupted else aside.ready(model)
        except (KeyboardInterrupt, MemoryError):
            # All is trained, and this can be done later.
            return aside

    def _after_refresh(self) -> None:
        if isinstance(self._draws, Unlearned):
            self._draws = self._draws.forget_fills()

    def _learn_schema(self, table: Table, previous: GrapeModel | None) -> Schema:
        if previous is None:
            schema = Schema.infer(table, kinds=self.kinds)
            if not self.keep_empty_features:
                report_useless(schema, consequence=LEFT_OUT)
            schema = schema.with_ends(table)
        else:
            schema = previous.schema
            schema.check(table, estimator=type(self).__name__)
        if self.add_indicator:
            require_free_names(table, self._kept_columns(schema))
        return schema

    def _extras(self) -> dict[str, Any]:
        return {"indicator_columns": list(self.indicator_columns_)}

    def _set_extras(self, extras: Mapping[str, Any]) -> None:
        columns = tuple(extras["indicator_columns"])
        if not set(columns) <= set(range(self.n_features_in_)):
            raise ValueError(f"indicator_columns is {columns}")
        self.indicator_columns_ = columns

    def _more_tensors(self) -> dict[str, torch.Tensor]:
        learned = self.uncertainty_
        return {} if learned is None else learned.tensors()

    def _set_more_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        self._draws = None
        if self.model_ is not None:
            self._draws = Uncertainty.from_tensors(tensors, self.model_)

    def _kept_columns(self, schema: Schema) -> list[int]:
        kept = enumerate(schema.columns)
        return [j for j, column in kept if self.keep_empty_features or not column.useless]

    def _zeros(self, table: Table) -> dict[int, Fill]:
        """Return what fills number columns that had no value at fit: 0 unless that is forbidden."""
        fills: dict[int, Fill] = {}
        # What was observed elsewhere does not matter to a column without a value.
        constraints = self._constraints(self.schema_, None)
        for j, column in enumerate(self.schema_.columns):
            if column.useless and column.family == "number":
                where = np.flatnonzero(table.missing(j))
                fills[j] = (where, np.full(where.size, constraints.empty_value(j)))
        return fills

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
