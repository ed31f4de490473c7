"""What every grapefill estimator does: check parameters, train, save, load, lend its network."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from grapefill.errors import ConfigError, GrapefillError, InputError, ModelFileError
from grapefill.files.model import read_model, write_model
from grapefill.graph import Cells, choose_layout
from grapefill.settings import check_word, draw_seed
from grapefill.table import Encoded, Schema, Table
from grapefill.table.usable import require_observed
from grapefill.training import History, Preset, ProgressBar, get_preset
from grapefill.training.checkpoint import Checkpoint, CheckpointFile, fingerprint_of
from grapefill.training.device import available_device, resolve_device
from grapefill.training.fit import fit_model
from grapefill.training.parameters import from_plain, plain_settings, to_plain
from grapefill.training.saving import model_description, model_tensors, restore_model
from grapefill.training.summary import summarise
from grapefill.training.team import ALONE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import nn

    from grapefill.files.model import ModelFile
    from grapefill.graph import Layout
    from grapefill.nn import GrapeNetwork
    from grapefill.table import Kind
    from grapefill.table.arrays import FloatArray
    from grapefill.training import Callback
    from grapefill.training.model import GrapeModel
    from grapefill.training.stream import StreamedRows
    from grapefill.training.team import Team


class GrapeEstimator(BaseEstimator):
    """Base of the estimators; the parameters are described where they are used.

    An estimator that learns more than a model overrides `_extras` and `_set_extras`.
    """

    preset: str | Preset
    settings: Mapping[str, Any] | None
    kinds: Mapping[Any, Kind | str] | None
    missing_values: Any
    time_limit: float | None
    layout: Layout
    o_edge: nn.Module | None
    checkpoint: str | Path | CheckpointFile | None
    random_state: int | np.random.Generator | np.random.RandomState | None
    device: str
    callbacks: Sequence[Callback] | None
    verbose: bool
    model_: GrapeModel | None
    history_: History
    schema_: Schema
    notes_: dict[str, Any]
    # Parameters that hold the user's own modules.
    _heads: ClassVar[tuple[str, ...]] = ("o_edge",)
    _predicts_labels: ClassVar[bool] = False

    def save(self, path: str | Path, *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the fitted estimator to one file: safetensors and JSON, never pickle.

        Not stored are `callbacks`, `checkpoint`, a `random_state` that is not an int, and the class
        of your own `o_edge` or `o_node`: its weights are, so give a module built like it to `load`.
        Trees hold values that were observed. The file of a small table also has all its rows, from
        which its intervals are to be calibrated; ask for an interval before you save, and it has
        not.

        Parameters
        ----------
        path : str or Path
            The file; by habit its name ends in ``.grape``.
        notes : dict or None
            Whatever else should be in the file, of plain JSON types; `load` gives it back as the
            attribute ``notes_``. None keeps the notes that the estimator was loaded with.
        """
        check_is_fitted(self)
        left_out = (*self._heads, "callbacks", "checkpoint")
        parameters = self.get_params(deep=False)
        description: dict[str, Any] = {
            "parameters": to_plain({k: v for k, v in parameters.items() if k not in left_out}),
            "schema": self.schema_.to_dict(),
            "extras": self._extras(),
            "history": self.history_.to_dict(),
            "model": None if self.model_ is None else model_description(self.model_),
            "notes": dict(getattr(self, "notes_", {}) if notes is None else notes),
        }
        tensors = {} if self.model_ is None else model_tensors(self.model_)
        tensors |= self._more_tensors()
        write_model(path, estimator=type(self).__name__, tensors=tensors, description=description)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: str | None = None,
        o_edge: nn.Module | None = None,
        o_node: nn.Module | None = None,
    ) -> Self:
        """Read an estimator that `save` wrote; on the same machine its output is bit-equal.

        Parameters
        ----------
        path : str or Path
            The file.
        device : str or None
            Where the network runs from now on, as in the parameter of that name. None keeps the
            device at fit; if this machine does not have it, a warning says so and it is
            ``"auto"``.
        o_edge, o_node : torch.nn.Module or None
            The modules that the estimator was fitted with, if they were your own.

        Returns
        -------
        GrapeEstimator
            The fitted estimator, of the class that `load` is called on.
        """
        file = read_model(path)
        if file.estimator != cls.__name__:
            raise ModelFileError(
                f"{str(path)!r} holds a {file.estimator}, not a {cls.__name__}. "
                f"Load it with {file.estimator}.load."
            )
        try:
            return cls._restore(file, device, {"o_edge": o_edge, "o_node": o_node})
        except GrapefillError:
            raise
        except (RuntimeError, ValueError, LookupError, TypeError, AttributeError) as error:
            # The file is whole, so it was written by a version with other parts.
            raise ModelFileError(
                f"Cannot load {str(path)!r}: grapefill {file.version} wrote it, and this version "
                f"does not understand it ({error!r}). Install that version, or fit again."
            ) from error

    @classmethod
    def _restore(
        cls, file: ModelFile, device: str | None, heads: dict[str, nn.Module | None]
    ) -> Self:
        stored = file.description
        own = {name: heads[name] for name in cls._heads}
        estimator = cls(**from_plain(stored["parameters"]), **own)
        estimator.device = available_device(estimator.device) if device is None else device
        schema = Schema.from_dict(stored["schema"])
        estimator.model_ = None
        if stored["model"] is not None:
            estimator.model_ = restore_model(schema, stored["model"], file.tensors, **heads)
            estimator.model_.to(resolve_device(estimator.device))
        estimator.history_ = History.from_dict(stored["history"])
        estimator._remember(schema)
        estimator._set_extras(stored["extras"])
        estimator._set_more_tensors(file.tensors)
        estimator.notes_ = stored.get("notes", {})
        return estimator

    def _extras(self) -> dict[str, Any]:
        """Return what was learned besides schema, history and model, as plain JSON values."""
        return {}

    def _set_extras(self, extras: Mapping[str, Any]) -> None:
        """Take back what `_extras` gave."""

    def _more_tensors(self) -> dict[str, torch.Tensor]:
        """Return tensors besides those of the model, by name."""
        return {}

    def _set_more_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        """Take back what `_more_tensors` gave, from all tensors of the file."""

    def _remember(self, schema: Schema) -> None:
        """Set the attributes that scikit-learn expects of a fitted estimator."""
        self.schema_ = schema
        self.n_features_in_ = len(schema.columns)
        if schema.named:
            self.feature_names_in_ = np.asarray(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    @property
    def network_(self) -> GrapeNetwork | None:
        """The trained torch module; None when no column could be imputed."""
        check_is_fitted(self)
        return None if self.model_ is None else self.model_.network

    def summary(self) -> str:
        """Return a table of what fills each column, network or trees, and how well that did.

        Returns
        -------
        str
            One line per column. The errors are those on observed cells that were held out.

        Examples
        --------
        >>> from grapefill import GrapeImputer
        >>> table = np.random.default_rng(0).normal(size=(60, 1)) * [1.0, 2.0, 3.0]
        >>> table[::5, 1] = np.nan
        >>> print(GrapeImputer("fast", random_state=0).fit(table).summary())  # doctest: +ELLIPSIS
        column  kind        filled by ...
        """
        check_is_fitted(self)
        if self.model_ is None:
            return "None of the columns seen in fit can be imputed."
        return summarise(self.model_)

    def encode(self, X: Any) -> Cells:
        """Return the cells of a table as tensors, for use with `network_` in torch code.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit.

        Returns
        -------
        Cells
            ``estimator.network_(cells)`` gives the imputed rows as a tensor with gradient. Call
            `refresh` once the network is trained, for `transform` to use what it learned.
        """
        model, encoded = self._encoded(X)
        return model.node_cells(model.without_labels(encoded.numbers))

    def refresh(self, X: Any) -> Self:
        """Recompute the feature states from a table, after `network_` was trained further.

        `fit` does so itself. Needed after training in your own code, since `transform` encodes
        rows against the feature states of the last `fit` or `refresh`. Trees stay as they are.
        Leaves the network in evaluation mode.

        Parameters
        ----------
        X : array, list of lists, pandas DataFrame, polars DataFrame or pyarrow Table
            A table with the columns seen in fit, as a rule the one at fit.

        Returns
        -------
        GrapeEstimator
            The estimator itself.
        """
        model, encoded = self._encoded(X)
        require_observed(encoded)
        model.network.eval()
        model.states = model.freeze_states(model.without_labels(encoded.numbers))
        self._after_refresh()
        return self

    def _after_refresh(self) -> None:
        """Forget what the network said before; nothing, unless an estimator kept any of it."""

    def _checked_preset(self) -> Preset:
        check_word("layout", self.layout, ("auto", "dense", "edges"))
        limit = self.time_limit
        if limit is not None and not (isinstance(limit, Real) and limit > 0):
            raise ConfigError(f"time_limit must be positive seconds or None, got {limit!r}.")
        for name in ("settings", "kinds"):
            if not isinstance(getattr(self, name), Mapping | None):
                raise ConfigError(f"{name} must be a dict or None, got {getattr(self, name)!r}.")
        for name in self._heads:
            module = getattr(self, name)
            if not isinstance(module, torch.nn.Module | None):
                raise ConfigError(f"{name} must be a torch.nn.Module or None, got {module!r}.")
        if callable(self.callbacks):
            raise ConfigError("callbacks must be a sequence. Pass a list: [callback].")
        try:
            preset = get_preset(self.preset, labels=self._predicts_labels)
            return preset.change(**plain_settings(self.settings or {}))
        except ConfigError:
            raise
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise ConfigError(
                f"settings has a value that cannot work: {error}. See NetworkConfig, "
                "TrainingConfig, ForestConfig and FactorConfig for what each setting may be."
            ) from error

    def _checked_table(self, X: Any) -> Table:
        table = Table.wrap(X, missing_values=self.missing_values)
        self.schema_.check(table, estimator=type(self).__name__)
        return table

    def _encoded(self, X: Any) -> tuple[GrapeModel, Encoded]:
        """Return the fitted model and a table as its numbers."""
        check_is_fitted(self)
        table = self._checked_table(X)
        if self.model_ is None:
            raise InputError(
                "None of the columns seen in fit can be imputed, so there is no network. Fit on a "
                "table with a column of numbers, categories, booleans or dates."
            )
        return self.model_, self.schema_.encode(table)

    def _generator(self) -> torch.Generator:
        """Return the source of all randomness of a fit."""
        return torch.Generator().manual_seed(draw_seed(self.random_state))

    def _train(
        self,
        model: GrapeModel,
        numbers: FloatArray,
        generator: torch.Generator,
        *,
        label_weights: FloatArray | None = None,
        stream: StreamedRows | None = None,
        team: Team = ALONE,
        checkpoint: Checkpoint | None = None,
    ) -> History:
        model.to(resolve_device(self.device))
        observed = float((~np.isnan(numbers)).mean()) if stream is None else stream.table.observed
        model.layout = choose_layout(self.layout, observed, purpose="filling")
        if checkpoint is None:
            checkpoint = self._checkpoint(model, numbers, generator, label_weights, stream)
        with ExitStack() as stack:
            callbacks = list(self.callbacks or ())
            if self.verbose:
                callbacks.append(stack.enter_context(ProgressBar()))
            return fit_model(
                model,
                numbers,
                generator=generator,
                layout=self.layout,
                time_limit=self.time_limit,
                callbacks=callbacks,
                label_weights=label_weights,
                checkpoint=checkpoint,
                stream=stream,
                team=team,
            )

    def _checkpoint(
        self,
        model: GrapeModel,
        numbers: FloatArray,
        generator: torch.Generator,
        label_weights: FloatArray | None,
        stream: StreamedRows | None,
    ) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        weights = None if label_weights is None else label_weights.tolist()
        rows = None if stream is None else list(stream.table.rows)
        seed = generator.initial_seed()
        fingerprint = fingerprint_of(numbers, model.preset, seed, weights, rows)
        given = self.checkpoint
        file = given if isinstance(given, CheckpointFile) else CheckpointFile(given)
        return Checkpoint(file, fingerprint)
