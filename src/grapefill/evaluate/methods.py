"""Methods of imputation, behind one interface: a task in, its numbers filled out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from grapefill.errors import ConfigError

if TYPE_CHECKING:
    from grapefill.evaluate.task import Coding, Task
    from grapefill.table.arrays import FloatArray

__all__ = ["PEERS", "Method", "OnTable", "read_methods"]


class Method(Protocol):
    """Something that fills the holes of a task."""

    def fill(self, task: Task, seed: int) -> FloatArray:
        """Return the table of a task as numbers and codes, with the hidden cells filled."""
        ...


class Constant:
    """The mean of numbers, the most frequent of categories."""

    def fill(self, task: Task, seed: int) -> FloatArray:
        """Return the filled numbers."""
        del seed
        numbers = task.numbers
        columns = []
        for j, column in enumerate(numbers.T):
            known = column[~np.isnan(column)]
            codes, counts = np.unique(known, return_counts=True)
            fill = codes[counts.argmax()] if task.discrete[j] else known.mean()
            columns.append(np.where(np.isnan(column), fill, column))
        return np.column_stack(columns)


@dataclass(frozen=True)
class OnNumbers:
    """An imputer that takes numbers.

    Parameters
    ----------
    make : callable
        From a seed to an object with ``fit_transform``.
    coding, scaled
        How the table is written, see `Task.as_numbers`.
    """

    make: Callable[[int], Any]
    coding: Coding = "indicators"
    scaled: bool = True

    def fill(self, task: Task, seed: int) -> FloatArray:
        """Return the filled numbers."""
        numbers, decoder = task.as_numbers(self.coding, scaled=self.scaled)
        return decoder.decode(self.make(seed).fit_transform(numbers), task.hidden)


@dataclass(frozen=True)
class OnTable:
    """An imputer that takes the table as it is.

    Parameters
    ----------
    make : callable
        From a seed and the kinds of the columns to an object with ``fit_transform``.
    """

    make: Callable[[int, Mapping[Any, Any]], Any]

    def fill(self, task: Task, seed: int) -> FloatArray:
        """Return the filled numbers."""
        imputer = self.make(seed, task.kinds)
        filled = imputer.fit_transform(task.native)
        history = getattr(imputer, "history_", None)
        if getattr(history, "stopped", None) == "interrupted":
            # The imputer caught Ctrl-C to keep what it has; here it would be judged by that.
            raise KeyboardInterrupt
        return task.read(filled)


@dataclass(frozen=True)
class OnFunction:
    """A function of the caller, from a table with holes to a filled one."""

    function: Callable[[Any], Any]

    def fill(self, task: Task, seed: int) -> FloatArray:
        """Return the filled numbers."""
        del seed
        return task.read(self.function(task.native))


def _knn(seed: int) -> Any:
    from sklearn.impute import KNNImputer

    del seed
    return KNNImputer()


def _chained(seed: int, **options: Any) -> Any:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return IterativeImputer(random_state=seed, **options)


def _chained_trees(seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    trees = ExtraTreesRegressor(50, min_samples_leaf=2, n_jobs=-1, random_state=seed)
    return _chained(seed, estimator=trees, max_iter=5)


PEERS: dict[str, Method] = {
    "mean": Constant(),
    "KNN": OnNumbers(_knn),
    "MICE": OnNumbers(_chained),
    # Trees can split codes wherever they like, and regress better on one column than on many.
    "chained trees": OnNumbers(_chained_trees, coding="codes"),
}
"""What people use instead of grapefill."""


def read_methods(
    methods: Mapping[str, Any] | Iterable[Any] | None, known: Mapping[str, Method]
) -> dict[str, Method]:
    """Return named methods from what the caller gave: names, imputers, functions, or None for all.

    Examples
    --------
    >>> from sklearn.impute import SimpleImputer
    >>> list(read_methods(["mean", SimpleImputer(), SimpleImputer(strategy="median")], PEERS))
    ['mean', 'SimpleImputer', 'SimpleImputer 2']
    """
    if methods is None:
        return dict(known)
    if isinstance(methods, str) or not isinstance(methods, Iterable):
        raise ConfigError(
            f"methods must be a list or a dict of imputers, got {methods!r}. Pass [{methods!r}]."
        )
    if isinstance(methods, Mapping):
        found = {str(name): _read_method(given, known) for name, given in methods.items()}
    else:
        found = {}
        for given in methods:
            name = given if isinstance(given, str) else _name_of(given)
            same = [other for other in found if other == name or other.startswith(f"{name} ")]
            unique = f"{name} {len(same) + 1}" if name in found else name
            found[unique] = _read_method(given, known)
    if not found:
        raise ConfigError("methods is empty. Name at least one, or pass None for the usual ones.")
    return found


def _name_of(method: Any) -> str:
    return str(getattr(method, "__name__", type(method).__name__))


def _read_method(given: Any, known: Mapping[str, Method]) -> Method:
    if isinstance(given, str):
        if given not in known:
            raise ConfigError(
                f"There is no method {given!r}. Choose from {', '.join(map(repr, known))}, or pass "
                "an imputer."
            )
        return known[given]
    if isinstance(given, type):
        raise ConfigError(f"{given.__name__} is a class. Pass an instance: {given.__name__}().")
    if hasattr(given, "fit_transform"):
        if _reads_tables(given):
            return OnTable(lambda seed, _: _fresh(given, seed))
        # In their own units: what the caller set in an imputer may count on them.
        return OnNumbers(lambda seed: _fresh(given, seed), scaled=False)
    if callable(given):
        return OnFunction(given)
    raise ConfigError(
        f"{given!r} is not a method. Pass an imputer with fit_transform, or a function that takes "
        "a table with holes and returns it filled."
    )


def _reads_tables(imputer: Any) -> bool:
    """Whether scikit-learn's tags say that the imputer takes categories or texts."""
    from sklearn.utils import get_tags

    if not hasattr(imputer, "__sklearn_tags__"):
        return False
    tags = get_tags(imputer).input_tags
    return bool(tags.string or tags.categorical)


def _fresh(imputer: Any, seed: int) -> Any:
    """Return an unfitted copy; randomness that the caller left open comes from the seed."""
    from sklearn.base import clone

    if not hasattr(imputer, "get_params"):
        return copy.deepcopy(imputer)
    fresh = clone(imputer)
    parameters = fresh.get_params(deep=True)
    is_open = [
        name
        for name, value in parameters.items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    return fresh.set_params(**dict.fromkeys(is_open, seed))
