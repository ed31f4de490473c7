"""Notes of the caller's own travel in the model file."""

import numpy as np

from grapefill import GrapeImputer


def test_notes_come_back_and_stay(tmp_path):
    table = np.random.default_rng(0).normal(size=(30, 3))
    table[::4, 1] = np.nan
    imputer = GrapeImputer("fast", settings={"max_steps": 3, "rounds": 0}, random_state=0)
    imputer.fit(table)
    imputer.save(tmp_path / "a.grape")
    assert GrapeImputer.load(tmp_path / "a.grape").notes_ == {}
    imputer.save(tmp_path / "b.grape", notes={"source": "table.csv", "marks": ["-9"]})
    loaded = GrapeImputer.load(tmp_path / "b.grape")
    assert loaded.notes_ == {"source": "table.csv", "marks": ["-9"]}
    loaded.save(tmp_path / "c.grape")
    assert GrapeImputer.load(tmp_path / "c.grape").notes_ == loaded.notes_
