"""What every test shares: hypothesis profiles."""

import os

from hypothesis import HealthCheck, settings

# Training inside a property is slow and its time says nothing about correctness.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci",
    parent=settings.get_profile("dev"),
    derandomize=True,
    database=None,
    print_blob=True,
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
