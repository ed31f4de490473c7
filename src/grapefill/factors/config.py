"""How many hidden factors are looked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from grapefill.errors import ConfigError
from grapefill.settings import check_fields

FEWEST_FACTORS = 4


@dataclass(frozen=True)
class FactorConfig:
    """The linear part beside the network. The default is none, as in the paper.

    Parameters
    ----------
    most_factors : int
        The most factors that are tried; how many are used is decided on held-out cells. 0 for no
        linear part.
    fewest_columns : int
        Tables with fewer columns of numbers than that get no linear part.
    factor_rows : int
        Rows that factors are fitted to, drawn by chance from a longer table.
    """

    most_factors: int = 0
    fewest_columns: int = 24
    factor_rows: int = 5_000

    def __post_init__(self) -> None:
        check_fields(self)
        if self.most_factors < 0:
            raise ConfigError("FactorConfig.most_factors must not be negative.")
        if self.fewest_columns < 2 or self.factor_rows < 2:
            raise ConfigError("FactorConfig.fewest_columns and factor_rows must be at least 2.")

    @property
    def ranks(self) -> tuple[int, ...]:
        """The numbers of factors to try, from few to many.

        Examples
        --------
        >>> FactorConfig(most_factors=32).ranks
        (4, 6, 8, 12, 16, 24, 32)
        """
        ranks, half = [], FEWEST_FACTORS
        while half <= self.most_factors:
            ranks += [half, half + half // 2]
            half *= 2
        return tuple(rank for rank in ranks if rank <= self.most_factors)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)
