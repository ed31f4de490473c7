"""Floats to decimals of a fixed scale, for the containers that have such a column."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grapefill.table.arrays import Array

__all__ = ["to_decimals"]


def to_decimals(values: Array, precision: int, scale: int) -> list[decimal.Decimal]:
    """Round numbers to a decimal's scale, held within what its precision can write.

    Examples
    --------
    >>> import numpy as np
    >>> to_decimals(np.array([1.256, 5000.0]), precision=4, scale=2)
    [Decimal('1.26'), Decimal('99.99')]
    """
    step = decimal.Decimal(1).scaleb(-scale)
    context = decimal.Context(prec=max(precision, 20) + 320)
    largest = (decimal.Decimal(10) ** precision - 1).scaleb(-scale, context)
    result = []
    for value in values.tolist():
        exact = decimal.Decimal(repr(value)) if isinstance(value, float) else decimal.Decimal(value)
        result.append(max(-largest, min(largest, exact.quantize(step, context=context))))
    return result
