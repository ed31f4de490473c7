"""A fit that was cut off goes on from its checkpoint and ends as if nothing had happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from safetensors.numpy import save

from grapefill import GrapeImputer, GrapeRegressor
from grapefill.errors import GrapefillWarning, ModelFileError
from grapefill.training import CheckpointFile
from grapefill.training import checkpoint as checkpoints

if TYPE_CHECKING:
    from pathlib import Path

    from grapefill.training import Progress

SETTINGS = {"max_steps": 30, "batch_rows": 25, "rounds": 1, "trees": 3, "trial_trees": 3}


class Killed(BaseException):
    """What no fit can catch, as if the process had been killed."""


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a checkpoint after every step."""
    monkeypatch.setattr(checkpoints.Checkpoint, "due", True)


def make_table(seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    table = random.normal(size=(70, 1)) + 0.1 * random.normal(size=(70, 4))
    table[random.random(table.shape) < 0.2] = np.nan
    return table


def make(path: Path | None, *, stop_at: int = 0, settings: Any = None) -> GrapeImputer:
    def kill(progress: Progress) -> None:
        if progress.step == stop_at:
            raise Killed

    return GrapeImputer(
        "fast",
        settings=SETTINGS | (settings or {}),
        checkpoint=path,
        callbacks=[kill] if stop_at else None,
        random_state=3,
    )


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("stop_at", [2, 5, 13, 24, 28, 30])
def test_a_fit_goes_on_to_the_same_end(tmp_path: Path, stop_at: int) -> None:
    """Also in the middle of an epoch, and after the held-out cells have joined (step 24)."""
    table, path = make_table(), tmp_path / "state"
    with pytest.raises(Killed):
        make(path, stop_at=stop_at).fit(table)
    assert path.exists()
    resumed = make(path).fit(table)
    undisturbed = make(None).fit(table)
    assert resumed.history_.loss == undisturbed.history_.loss
    assert resumed.history_.validation == undisturbed.history_.validation
    np.testing.assert_array_equal(resumed.transform(table), undisturbed.transform(table))
    assert resumed.model_.trials == undisturbed.model_.trials
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("always")
def test_the_best_weights_are_kept(tmp_path: Path) -> None:
    """Without rejoining, the weights of the lowest held-out error win, wherever they came from."""
    table, path, settings = make_table(), tmp_path / "state", {"rejoin": 1.0, "patience": 25}
    with pytest.raises(Killed):
        make(path, stop_at=20, settings=settings).fit(table)
    resumed = make(path, settings=settings).fit(table)
    undisturbed = make(None, settings=settings).fit(table)
    assert resumed.history_.best_step == undisturbed.history_.best_step
    np.testing.assert_array_equal(resumed.transform(table), undisturbed.transform(table))


@pytest.mark.usefixtures("always")
def test_it_is_cut_off_twice(tmp_path: Path) -> None:
    table, path = make_table(), tmp_path / "state"
    for stop_at in (4, 19):
        with pytest.raises(Killed):
            make(path, stop_at=stop_at).fit(table)
    resumed, undisturbed = make(path).fit(table), make(None).fit(table)
    np.testing.assert_array_equal(resumed.transform(table), undisturbed.transform(table))


@pytest.mark.usefixtures("always")
def test_steps_done_are_not_done_again(tmp_path: Path) -> None:
    table, path, seen = make_table(), tmp_path / "state", []
    with pytest.raises(Killed):
        make(path, stop_at=10).fit(table)
    resumed = make(path).set_params(callbacks=[lambda progress: seen.append(progress.step)])
    resumed.fit(table)
    assert seen[0] == 10


@pytest.mark.usefixtures("always")
def test_predictors_have_checkpoints_too(tmp_path: Path) -> None:
    table, path = make_table(), tmp_path / "state"
    X, y = table[:, :3], np.nan_to_num(table[:, 3])

    def kill(progress: Progress) -> None:
        if progress.step == 12:
            raise Killed

    model = GrapeRegressor("fast", settings=SETTINGS, checkpoint=path, random_state=3)
    with pytest.raises(Killed):
        model.set_params(callbacks=[kill]).fit(X, y)
    resumed = model.set_params(callbacks=None).fit(X, y).predict(X)
    undisturbed = model.set_params(checkpoint=None).fit(X, y).predict(X)
    np.testing.assert_array_equal(resumed, undisturbed)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("other", ["table", "settings", "seed"])
def test_a_checkpoint_of_another_fit_is_not_used(tmp_path: Path, other: str) -> None:
    path = tmp_path / "state"
    with pytest.raises(Killed):
        make(path, stop_at=5).fit(make_table())
    table = make_table(1 if other == "table" else 0)
    settings = {"learning_rate": 0.002} if other == "settings" else None
    imputer = make(path, settings=settings)
    if other == "seed":
        imputer.set_params(random_state=4)
    with pytest.warns(GrapefillWarning, match="another table, other settings or another seed"):
        imputer.fit(table)
    expected = imputer.set_params(checkpoint=None).fit_transform(table)
    np.testing.assert_array_equal(
        make(None, settings=settings)
        .set_params(random_state=imputer.random_state)
        .fit_transform(table),
        expected,
    )


def test_it_can_stay_when_the_fit_is_complete(tmp_path: Path) -> None:
    """Then the next fit goes on where the network was trained, and only grows trees."""
    table, path, seen = make_table(), tmp_path / "state", []
    file = CheckpointFile(path, seconds=1000.0, keep=True)
    first = make(None).set_params(checkpoint=file).fit(table)
    assert path.exists()
    again = make(None).set_params(checkpoint=file, callbacks=[lambda p: seen.append(p.stage)])
    np.testing.assert_array_equal(again.fit_transform(table), first.transform(table))
    assert set(seen) == {"trees"}


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kept", [0.0, 0.02, 0.5])
def test_a_damaged_checkpoint_is_not_used(tmp_path: Path, kept: float) -> None:
    path = tmp_path / "state"
    with pytest.raises(Killed):
        make(path, stop_at=2).fit(make_table())
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.warns(GrapefillWarning, match="cannot be used"), pytest.raises(Killed):
        make(path, stop_at=2).fit(make_table())


@pytest.mark.parametrize("content", [b"mine", b"12345678{no checkpoint}", save({"a": np.ones(3)})])
def test_a_file_that_is_no_checkpoint_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mine"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a checkpoint, and is left as it is"):
        make(path).fit(make_table())
    assert path.read_bytes() == content


def test_a_folder_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="it is a folder"):
        make(tmp_path).fit(make_table())


def test_a_model_is_not_taken_for_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "model.grape"
    make(None).fit(make_table()).save(path)
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match="holds a GrapeImputer, not a checkpoint"):
        make(path).fit(make_table())
    assert path.read_bytes() == before
