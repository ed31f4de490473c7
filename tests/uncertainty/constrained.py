"""Imputers with constraints that were fitted without, and all that they fill in."""

from grapefill import GrapeImputer


def with_parameters(imputer, **parameters):
    """Return the fitted imputer with other parameters; what it learned does not depend on them."""
    changed = GrapeImputer(**(imputer.get_params() | parameters))
    changed.__dict__.update(
        {k: v for k, v in imputer.__dict__.items() if k.endswith("_") or k.startswith("_")}
    )
    return changed


def all_tables(imputer, holed):
    yield imputer.transform(holed)
    yield from imputer.sample(holed, 2, random_state=0)
    yield from imputer.interval(holed, 0.9)
