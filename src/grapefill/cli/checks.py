"""Options that are held against a table before anything is learned from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grapefill.cli.values import read_settings

if TYPE_CHECKING:
    from grapefill.cli.arguments import Training
    from grapefill.cli.columns import Plan

__all__ = ["check_constraints", "check_settings", "warn_of_broken_rules"]


def check_settings(training: Training) -> None:
    """Refuse settings and devices as training would, where there is nothing to train for."""
    if training.change:
        from grapefill.training.config import get_preset

        get_preset(training.preset).change(**read_settings(training.change))
    if training.device != "auto":
        from grapefill.training.device import resolve_device

        resolve_device(training.device)


def check_constraints(plan: Plan, table: Any) -> None:
    """Refuse what filled cells cannot obey."""
    if plan.bounds or plan.rules or plan.delta:
        _constraints(plan, table)


def warn_of_broken_rules(plan: Plan, table: Any) -> None:
    """Warn of rows that break a rule, of a table in which nothing is missing."""
    if not plan.rules:
        return
    from grapefill.table import Table

    constraints, wrapped = _constraints(plan, table), Table.wrap(table)
    constraints.finish(wrapped, constraints.schema.encode(wrapped, warn=False), {})


def _constraints(plan: Plan, table: Any) -> Any:
    from grapefill.table import Schema, Table
    from grapefill.uncertainty.constraints import Constraints

    schema = Schema.infer(Table.wrap(table), kinds=plan.kinds, warn=False)
    return Constraints(schema, plan.constraints(schema), plan.rules, plan.delta, None)
