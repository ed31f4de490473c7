"""How a network is trained, and the presets that join an architecture with a training recipe."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from math import cos, pi
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from grapefill.errors import ConfigError
from grapefill.factors.config import FactorConfig
from grapefill.nn.config import NetworkConfig
from grapefill.settings import check_fields, check_word, closest_word
from grapefill.trees.config import ForestConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

# From so many rows on, a table counts as large.
LARGE_ROWS = 15_000
WARM_UP = 0.05


@dataclass(frozen=True)
class TrainingConfig:
    """A training recipe. The defaults are the paper's.

    Parameters
    ----------
    epochs : int
        Passes over the table. With ``batch_rows`` an epoch has several steps.
    batch_rows : int or None
        Rows per step; None takes all of them, as the paper does.
    step_cells : int or None
        Observed cells that a step looks at, about; None for all in the batch. Where a batch has
        more, it gets fewer rows, down to 256, and then only some of the columns, drawn by chance,
        and the labels.
    max_steps : int or None
        Upper limit of steps, whatever the number of epochs.
    large_factor : float
        By how much that limit is raised for large tables, which have more to teach: in proportion
        to the rows beyond 15,000, up to this factor.
    learning_rate : float
        Peak learning rate of Adam.
    weight_decay : float
        Decoupled weight decay (AdamW).
    schedule : {"constant", "cosine"}
        Learning rate over time; ``"cosine"`` warms up during the first twentieth of the steps.
    clip : float
        Largest norm of the gradient; 0 for no limit.
    dropout : tuple of two floats
        Edge dropout rate, drawn for every row between these two.
    label_dropout : float
        How often a known label is hidden, where labels are features.
    loss_on : {"observed", "dropped"}
        Whether the loss is taken on all observed edges or on those that dropout removed. Where
        O_node predicts labels, the loss is taken on these alone.
    loss : {"squared", "absolute"}
        Loss of continuous cells. Discrete cells have cross-entropy.
    average : float
        Decay of the running average of the weights that is used in the end; 0 uses the last.
    scaling : {"minmax", "standard"}
        How continuous columns are scaled, by their observed cells.
    validation : float
        Share of the observed cells held out, though never more than 200 of a column; 0 for none.
        On them depends when training stops, and how the network is blended with trees.
    rejoin : float
        When so much of the training is done, the held-out cells join the others; 1 for never. They
        join earlier when the error on them stops falling, and what is left of the training gets
        shorter in proportion.
    patience : int
        Validations without improvement before training stops, or the held-out cells join.
    """

    epochs: int = 20_000
    batch_rows: int | None = None
    step_cells: int | None = None
    max_steps: int | None = None
    large_factor: float = 1.0
    learning_rate: float = 0.001
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine"] = "constant"
    clip: float = 0.0
    dropout: tuple[float, float] = (0.3, 0.3)
    label_dropout: float = 0.5
    loss_on: Literal["observed", "dropped"] = "observed"
    loss: Literal["squared", "absolute"] = "squared"
    average: float = 0.0
    scaling: Literal["minmax", "standard"] = "minmax"
    validation: float = 0.0
    rejoin: float = 1.0
    patience: int = 10

    def __post_init__(self) -> None:
        check_fields(self)
        if self.epochs < 1 or (self.max_steps is not None and self.max_steps < 1):
            raise ConfigError("TrainingConfig.epochs and max_steps must be at least 1.")
        if self.batch_rows is not None and self.batch_rows < 1:
            raise ConfigError("TrainingConfig.batch_rows must be at least 1, or None for all rows.")
        if self.step_cells is not None and self.step_cells < 1:
            raise ConfigError("TrainingConfig.step_cells must be at least 1, or None for all.")
        low, high = self.dropout
        if not 0 <= low <= high < 1:
            raise ConfigError("TrainingConfig.dropout must be (low, high), 0 <= low <= high < 1.")
        if self.loss_on == "dropped" and high == 0:
            raise ConfigError('loss_on="dropped" needs a dropout rate above 0.')
        if not 0 < self.label_dropout <= 1:
            raise ConfigError("TrainingConfig.label_dropout must be above 0 and at most 1.")
        if not 0 <= self.validation < 1 or not 0 <= self.average < 1:
            raise ConfigError("TrainingConfig.validation and average must be in [0, 1).")
        if self.large_factor < 1:
            raise ConfigError("TrainingConfig.large_factor must be at least 1.")
        if not 0 < self.rejoin <= 1:
            raise ConfigError("TrainingConfig.rejoin must be above 0 and at most 1.")
        if self.learning_rate <= 0 or self.patience < 1:
            raise ConfigError("TrainingConfig.learning_rate and patience must be positive.")
        if self.weight_decay < 0 or self.clip < 0:
            raise ConfigError("TrainingConfig.weight_decay and clip must not be negative.")

    def steps(self, n_rows: int) -> int:
        """Return the number of steps for a table of ``n_rows`` rows.

        Examples
        --------
        >>> TrainingConfig(epochs=10, batch_rows=100).steps(250)
        30
        >>> recipe = TrainingConfig(batch_rows=100, max_steps=1000, large_factor=3.0)
        >>> recipe.steps(10_000), recipe.steps(30_000), recipe.steps(1_000_000)
        (1000, 2000, 3000)
        """
        per_epoch = 1 if self.batch_rows is None else -(-n_rows // self.batch_rows)
        steps = self.epochs * per_epoch
        if self.max_steps is None:
            return steps
        factor = min(max(1.0, n_rows / LARGE_ROWS), self.large_factor)
        return min(steps, round(self.max_steps * factor))

    def rate_after(self, done: float) -> float:
        """Return the learning rate when a share of the training is done.

        Examples
        --------
        >>> recipe = TrainingConfig(learning_rate=0.01, schedule="cosine")
        >>> [round(recipe.rate_after(done), 4) for done in (0.01, 0.05, 0.5, 1.0)]
        [0.002, 0.01, 0.0054, 0.0]
        """
        if self.schedule == "constant":
            return self.learning_rate
        if done <= WARM_UP:
            return self.learning_rate * done / WARM_UP
        return self.learning_rate * 0.5 * (1 + cos(pi * (done - WARM_UP) / (1 - WARM_UP)))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self) | {"dropout": list(self.dropout)}


@dataclass(frozen=True)
class Preset:
    """An architecture, a training recipe, trees on top, and a linear part beside.

    Examples
    --------
    >>> get_preset("paper").training.epochs
    20000
    >>> get_preset("paper").change(epochs=100, width=16).network.width
    16
    """

    network: NetworkConfig
    training: TrainingConfig
    forest: ForestConfig = field(default_factory=ForestConfig)
    factors: FactorConfig = field(default_factory=FactorConfig)

    def change(self, **settings: Any) -> Preset:
        """Return the preset with some settings changed, by the names of the config classes."""
        parts: list[Any] = [self.network, self.training, self.forest, self.factors]
        known = [{f.name for f in fields(part)} for part in parts]
        names: set[str] = set().union(*known)
        unknown = sorted(set(settings) - names)
        if unknown:
            close = closest_word(unknown[0], sorted(names))
            listed = f"The settings are: {', '.join(sorted(names))}."
            advice = f"Did you mean {close!r}?" if close else listed
            raise ConfigError(f"Unknown setting {unknown[0]!r}. {advice}")
        return Preset(
            *(
                replace(part, **{name: settings[name] for name in mine & settings.keys()})
                for part, mine in zip(parts, known, strict=True)
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all settings as plain JSON values."""
        return {
            "network": self.network.to_dict(),
            "training": self.training.to_dict(),
            "forest": self.forest.to_dict(),
            "factors": self.factors.to_dict(),
        }

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Preset:
        """Rebuild a preset from `to_dict`."""
        training = dict(settings["training"])
        training["dropout"] = tuple(training["dropout"])
        return cls(
            NetworkConfig(**settings["network"]),
            TrainingConfig(**training),
            ForestConfig(**settings["forest"]),
            FactorConfig(**settings["factors"]),
        )


_DEFAULT = Preset(
    NetworkConfig(
        width=64,
        edge_width=32,
        activation="gelu",
        normalization="layer",
        residual=True,
        directed_edges=False,
        shared_directions=False,
        value_embedding=True,
        feature_init="embedding",
        post_layers=False,
        own_outputs=True,
        labels="feature",
    ),
    TrainingConfig(
        epochs=4_000,
        batch_rows=1_024,
        step_cells=32_768,
        max_steps=1_000,
        large_factor=3.0,
        learning_rate=0.006,
        weight_decay=0.01,
        clip=1.0,
        schedule="cosine",
        dropout=(0.1, 0.6),
        label_dropout=0.8,
        loss_on="dropped",
        loss="absolute",
        average=0.99,
        scaling="standard",
        validation=0.1,
        rejoin=0.8,
        patience=25,
    ),
    ForestConfig(rounds=5),
    FactorConfig(most_factors=48),
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "paper": Preset(NetworkConfig(), TrainingConfig()),
        "default": _DEFAULT,
        "fast": _DEFAULT.change(
            width=32,
            edge_width=16,
            max_steps=300,
            large_factor=1.0,
            rounds=3,
            trees=12,
            early_trees=3,
            trial_trees=8,
            label_trees=32,
            most_nodes=2_000_000,
        ),
    }
)


# The paper has a smaller network for labels. Its steps are as long in the end as at first, so the
# last weights are as good as chance has it: a running average is used.
LABEL_PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        **PRESETS,
        "paper": PRESETS["paper"].change(
            layers=2, width=16, edge_width=16, head_width=0, average=0.999
        ),
    }
)


def get_preset(preset: str | Preset, *, labels: bool = False) -> Preset:
    """Return a preset by its name, for tables or for labels; a `Preset` is returned as it is."""
    if isinstance(preset, Preset):
        return preset
    check_word("preset", preset, tuple(PRESETS))
    return LABEL_PRESETS[preset] if labels else PRESETS[preset]
