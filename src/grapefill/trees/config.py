"""How many trees are grown on top of the network."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from grapefill.errors import ConfigError
from grapefill.settings import check_fields


@dataclass(frozen=True)
class ForestConfig:
    """The trees that refine what the network fills in. The default is none, as in the paper.

    Parameters
    ----------
    rounds : int
        How often every column is predicted again from all others; 0 for no trees.
    trees : int
        Trees per column in the last round.
    early_trees : int
        Trees per column in the rounds before, whose result only serves the next round; half as many
        where there are labels to predict.
    trial_trees : int
        Trees per column in the last round of the trial on held-out cells, which decides how network
        and trees are blended in every column.
    label_trees : int
        Trees of a label in the last round, if that is more.
    line_trees : int
        Trees per column of numbers in every round where linear maps in the leaves did clearly
        better on held-out cells; 0 for never.
    input_share : float
        Share of the columns that a split chooses from.
    most_nodes : int
        Nodes of all trees together, about; with more rows, leaves get larger. A node takes 72 bytes
        of memory and 12 in a model file.
    most_columns : int
        Tables with more columns than that get no trees.
    """

    rounds: int = 0
    trees: int = 32
    early_trees: int = 8
    trial_trees: int = 16
    label_trees: int = 64
    line_trees: int = 8
    input_share: float = 0.5
    most_nodes: int = 12_000_000
    most_columns: int = 256

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rounds < 0 or min(self.trees, self.early_trees, self.trial_trees) < 1:
            raise ConfigError(
                "ForestConfig.rounds must not be negative; trees, early_trees and trial_trees must "
                "be at least 1."
            )
        if min(self.line_trees, self.label_trees) < 0:
            raise ConfigError("ForestConfig.line_trees and label_trees must not be negative.")
        if self.most_nodes < 1:
            raise ConfigError("ForestConfig.most_nodes must be at least 1.")
        if not 0 < self.input_share <= 1:
            raise ConfigError("ForestConfig.input_share must be above 0 and at most 1.")

    @property
    def plan(self) -> tuple[int, ...]:
        """Trees per column in every round.

        Examples
        --------
        >>> ForestConfig(rounds=3, trees=24, early_trees=8).plan
        (8, 8, 24)
        """
        return (self.early_trees,) * (self.rounds - 1) + (self.trees,) * bool(self.rounds)

    @property
    def trial_plan(self) -> tuple[int, ...]:
        """Trees per column in every round of the trial, which has at most two."""
        return (self.early_trees,) * (self.rounds > 1) + (self.trial_trees,)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)
