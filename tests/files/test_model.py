import io
import json
import math
import pickle
import re
import zipfile

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from grapefill import errors
from grapefill._version import __version__
from grapefill.errors import ModelFileError
from grapefill.files import model as model_module
from grapefill.files.model import FORMAT, read_model, write_model

TENSORS = {
    "weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "steps": torch.tensor(2**62 + 1),
    "seen": torch.tensor([True, False]),
    "empty": torch.empty(0, 4, dtype=torch.float64),
}
DESCRIPTION = {"columns": ["age", "café", "\ud800"], "rate": 0.1, "big": 2**70, "none": None}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.grape"
    write_model(path, estimator="GrapeImputer", tensors=TENSORS, description=DESCRIPTION)
    return path.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A path that hypothesis may write to again and again."""
    return tmp_path_factory.mktemp("scratch") / "model.grape"


def test_round_trip(tmp_path):
    path = tmp_path / "model.grape"
    write_model(str(path), estimator="GrapeImputer", tensors=TENSORS, description=DESCRIPTION)
    model = read_model(str(path))
    assert (model.estimator, model.version) == ("GrapeImputer", __version__)
    assert model.description == DESCRIPTION
    assert model.tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert model.tensors[name].dtype == tensor.dtype
        torch.testing.assert_close(model.tensors[name], tensor, rtol=0, atol=0)
    assert [file.name for file in tmp_path.iterdir()] == ["model.grape"]


def test_same_content_gives_same_bytes(tmp_path, saved):
    write_model(
        tmp_path / "again", estimator="GrapeImputer", tensors=TENSORS, description=DESCRIPTION
    )
    assert (tmp_path / "again").read_bytes() == saved


def test_tensors_may_be_strided_shared_or_learned(tmp_path):
    base = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    tensors = {"base": base, "transposed": base.T, "same": base, "row": base[1]}
    write_model(tmp_path / "m", estimator="E", tensors=tensors, description={})
    loaded = read_model(tmp_path / "m").tensors
    for name, tensor in tensors.items():
        assert torch.equal(loaded[name], tensor)
        assert not loaded[name].requires_grad


def test_loaded_tensors_are_writable(tmp_path):
    write_model(tmp_path / "m", estimator="E", tensors={"a": torch.zeros(2)}, description={})
    assert read_model(tmp_path / "m").tensors["a"].add_(1).tolist() == [1.0, 1.0]


def test_no_tensors_at_all(tmp_path):
    write_model(tmp_path / "m", estimator="E", tensors={}, description={})
    assert read_model(tmp_path / "m").tensors == {}


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(description=st.dictionaries(st.text(), plain))
def test_any_plain_description_round_trips(scratch, description):
    write_model(scratch, estimator="E", tensors={}, description=description)
    # repr tells 1 from True, 0.0 from -0.0, and equals itself for NaN.
    assert repr(read_model(scratch).description) == repr(description)


@given(name=st.text(st.characters(exclude_categories=["Cs"])).filter(lambda s: s != "__metadata__"))
def test_any_tensor_name_round_trips(scratch, name):
    write_model(scratch, estimator="E", tensors={name: torch.ones(1)}, description={})
    assert list(read_model(scratch).tensors) == [name]


def test_names_that_look_like_the_header(tmp_path):
    marker = model_module._before_digest(FORMAT).decode()
    tensors = {marker: torch.ones(1), "grapefill": torch.ones(1)}
    write_model(tmp_path / "m", estimator=marker, tensors=tensors, description={marker: marker})
    model = read_model(tmp_path / "m")
    assert model.description == {marker: marker}
    assert model.tensors.keys() == tensors.keys()


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"a": [0, {"b": np.zeros(2)}]}, r"description\['a'\]\[1\]\['b'\] is of type ndarray"),
        ({"a": np.int64(1)}, "int64"),
        ({"a": {1: 2}}, "keys must be text"),
        ({"a": {1, 2}}, "set"),
    ],
)
def test_description_of_other_types_is_refused(tmp_path, description, message):
    with pytest.raises(TypeError, match=message):
        write_model(tmp_path / "m", estimator="E", tensors={}, description=description)
    assert list(tmp_path.iterdir()) == []


def test_keys_that_look_like_our_mark_for_nan(tmp_path):
    description = {"__float__": math.inf, "a": {"__float__": "nan", "__float___": 1}}
    write_model(tmp_path / "m", estimator="E", tensors={}, description=description)
    assert read_model(tmp_path / "m").description == description


def test_reserved_tensor_name_is_refused(tmp_path):
    with pytest.raises(ValueError, match="__metadata__"):
        write_model(
            tmp_path / "m", estimator="E", tensors={"__metadata__": torch.ones(1)}, description={}
        )


def test_description_types_kept(tmp_path):
    description = {"nan": math.nan, "inf": [-math.inf], "pair": (1, 2), "score": np.float64(0.1)}
    write_model(tmp_path / "m", estimator="E", tensors={}, description=description)
    read = read_model(tmp_path / "m").description
    assert math.isnan(read["nan"])
    assert read["inf"] == [-math.inf]
    assert read["pair"] == [1, 2]
    assert read["score"] == 0.1


@given(data=st.data())
def test_one_flipped_bit_is_noticed(saved, scratch, data):
    position = data.draw(st.integers(0, len(saved) * 8 - 1))
    damaged = bytearray(saved)
    damaged[position // 8] ^= 1 << (position % 8)
    scratch.write_bytes(damaged)
    with pytest.raises(ModelFileError, match=re.escape(str(scratch))):
        read_model(scratch)


def test_every_flipped_bit_of_the_header_is_noticed(saved, scratch):
    header_end = 8 + int.from_bytes(saved[:8], "little")
    for position in range(header_end * 8):
        damaged = bytearray(saved)
        damaged[position // 8] ^= 1 << (position % 8)
        scratch.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            read_model(scratch)


def test_every_truncation_is_noticed(saved, scratch):
    for length in range(len(saved)):
        scratch.write_bytes(saved[:length])
        with pytest.raises(ModelFileError):
            read_model(scratch)


@given(tail=st.binary(min_size=1))
def test_appended_bytes_are_noticed(saved, scratch, tail):
    scratch.write_bytes(saved + tail)
    with pytest.raises(ModelFileError, match="checksum"):
        read_model(scratch)


@given(content=st.binary())
def test_arbitrary_bytes_are_refused(scratch, content):
    scratch.write_bytes(content)
    with pytest.raises(ModelFileError):
        read_model(scratch)


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def torch_file():
    buffer = io.BytesIO()
    torch.save({"a": Bomb()}, buffer)
    return buffer.getvalue()


def zip_file():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", "b")
    return buffer.getvalue()


def with_header(header):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


def with_text(text):
    return with_header({"__metadata__": {"grapefill": text}})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"PK", "cut short"),
        # The length of its header begins like a pickle.
        (b"\x80\x04\0\0\0\0\0\0" + b'{"__metadata__":', "cut short"),
        (pickle.dumps(Bomb()), "pickle"),
        (torch_file(), "torch.save"),
        (zip_file(), "zip"),
        (b"a,b\n1,2\n3,4\n", "not a model file"),
        (safetensors.torch.save({"a": torch.ones(2)}), "another program"),
        (safetensors.torch.save({"a": torch.ones(2)}, {"format": "pt"}), "another program"),
        (with_header([]), "not one of safetensors"),
        (with_header({"__metadata__": {"grapefill": 1}}), "another program"),
        (with_text("[]"), "no format number"),
        (with_text("{"), "description cannot be read"),
        (with_text('{"format": 0}'), "no format number"),
        (with_text('{"format": 1}'), "lacks 'sha256'"),
        (
            with_text(
                json.dumps(
                    {
                        **dict.fromkeys(["sha256", "version", "estimator"], "x"),
                        "format": 1,
                        "description": {},
                    }
                )
            ),
            "checksum is not where it should be",
        ),
        (with_text("[" * 100_000), "description cannot be read"),
        ((100_000).to_bytes(8, "little") + b"[" * 100_000, "header cannot be read"),
    ],
)
def test_foreign_files_are_refused(tmp_path, content, message):
    path = tmp_path / "model.grape"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        read_model(path)


def test_newer_format_asks_for_an_upgrade(tmp_path, monkeypatch):
    monkeypatch.setattr(model_module, "FORMAT", FORMAT + 1)
    write_model(tmp_path / "m", estimator="E", tensors={}, description={})
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=rf"format {FORMAT + 1}.*Upgrade grapefill"):
        read_model(tmp_path / "m")


def test_valid_checksum_around_nonsense_is_still_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(model_module, "_encoded", lambda value, where: value)
    write_model(tmp_path / "m", estimator="E", tensors={}, description={"a": {"__float__": "x"}})
    with pytest.raises(ModelFileError, match="content cannot be read"):
        read_model(tmp_path / "m")


def test_paths_that_are_no_file(tmp_path):
    with pytest.raises(ModelFileError, match="no such file"):
        read_model(tmp_path / "missing.grape")
    with pytest.raises(ModelFileError, match="is a folder"):
        read_model(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ModelFileError, match="Not a directory"):
        read_model(tmp_path / "file" / "model.grape")


def test_save_to_impossible_places(tmp_path):
    with pytest.raises(ModelFileError, match="does not exist"):
        write_model(tmp_path / "no" / "m", estimator="E", tensors={}, description={})
    with pytest.raises(ModelFileError, match="is a folder"):
        write_model(tmp_path, estimator="E", tensors={}, description={})
    assert list(tmp_path.iterdir()) == []


def test_full_disk_keeps_the_old_model(tmp_path, monkeypatch):
    path = tmp_path / "model.grape"
    write_model(path, estimator="E", tensors={}, description={"version": "old"})

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ModelFileError, match="No space left"):
        write_model(path, estimator="E", tensors={}, description={"version": "new"})
    assert read_model(path).description == {"version": "old"}
    assert [file.name for file in tmp_path.iterdir()] == ["model.grape"]


def test_model_file_error_is_one_of_ours():
    assert issubclass(ModelFileError, errors.GrapefillError)
    assert issubclass(ModelFileError, ValueError)
