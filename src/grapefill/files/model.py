"""The model file: tensors and a description in one safetensors file, never pickle.

Layout::

    8 bytes            length of the header, little endian
    header             JSON: {"__metadata__": {"grapefill": TEXT}, tensor name: {...}, ...}
    the rest           the bytes of the tensors

TEXT is JSON again: ``{"format": 1, "sha256": ..., "version": ..., "estimator": ...,
"description": {...}}``. The digest is that of the whole file with the digest's own 64
characters replaced by zeros, so a change of any bit, in the header too, is noticed. It guards
against damage, not against forgery: nothing secret goes into it.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
import safetensors.torch
import torch

from grapefill._version import __version__
from grapefill.errors import ModelFileError
from grapefill.files.atomic import write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

FORMAT = 1
"""Number of the layout written here; files with a higher one are refused."""

_DIGEST_LENGTH = 64
_NO_DIGEST = "0" * _DIGEST_LENGTH
# JSON has no NaN or infinity; an object with this key stands for one. A user's own key that
# begins like it gets one more underscore.
_FLOAT_KEY = "__float__"
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_FOREIGN_STARTS = (
    (b"PK\x03\x04", "a zip archive, as torch.save writes"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x80", "a pickle"),
)


@dataclass(frozen=True)
class ModelFile:
    """What a model file holds.

    Attributes
    ----------
    estimator : str
        Name of the class that wrote the file.
    tensors : dict of str to torch.Tensor
        The tensors by name, on the CPU.
    description : dict
        Everything else, of plain Python types.
    version : str
        Version of grapefill that wrote the file.
    """

    estimator: str
    tensors: dict[str, torch.Tensor]
    description: dict[str, Any]
    version: str


def write_model(
    path: str | os.PathLike[str],
    *,
    estimator: str,
    tensors: Mapping[str, torch.Tensor],
    description: Mapping[str, Any],
) -> None:
    """Write a model file, whole or not at all.

    The same content gives the same bytes.

    Parameters
    ----------
    path : str or path-like
        Where to write; an existing file is replaced once the new one is complete.
    estimator : str
        Name of the class that writes.
    tensors : mapping of str to torch.Tensor
        Tensors by name, of any device and memory layout.
    description : mapping
        Dictionaries with text keys, lists, text, booleans, whole numbers, floats and None,
        nested at will. Every value is read back exactly, NaN and infinity included; a tuple
        is read back as a list.

    Raises
    ------
    ModelFileError
        If the file cannot be written.
    TypeError
        If the description holds something of another type.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import torch
    >>> from grapefill.files.model import read_model, write_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.grape"
    ...     write_model(
    ...         path,
    ...         estimator="GrapeImputer",
    ...         tensors={"weight": torch.ones(2)},
    ...         description={"columns": ["age", "city"]},
    ...     )
    ...     model = read_model(path)
    >>> model.estimator, model.description, model.tensors["weight"]
    ('GrapeImputer', {'columns': ['age', 'city']}, tensor([1., 1.]))
    """
    content = _encode(estimator, tensors, description)
    try:
        with write_whole(path) as file:
            file.write(content)
    except OSError as error:
        # Our own messages have no error number and are complete; the system's are terse.
        reason = str(error) if error.errno is None else f"Cannot write {str(path)!r}: {error}."
        raise ModelFileError(f"The model was not saved. {reason}") from error


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Read a model file and check that it is whole and unchanged.

    Parameters
    ----------
    path : str or path-like
        A file written by `write_model`.

    Returns
    -------
    ModelFile
        Its content.

    Raises
    ------
    ModelFileError
        If the file is missing, unreadable, damaged, of another kind, or written in a newer
        format than this version knows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from grapefill.errors import ModelFileError
    >>> from grapefill.files.model import read_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.grape"
    ...     _ = path.write_bytes(b"")
    ...     try:
    ...         read_model(path)
    ...     except ModelFileError as error:
    ...         print("is empty" in str(error))
    True
    """
    data = _read_bytes(path)
    header, header_end = _read_header(path, data)
    text = _read_text(path, header)
    _check_digest(path, data, header_end, text["sha256"])
    try:
        tensors = safetensors.torch.load(data)
        description = _decoded(text["description"])
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        # Only a file made by another program gets past the checksum and fails here.
        raise _damaged(path, f"its content cannot be read ({error})") from error
    return ModelFile(
        estimator=text["estimator"],
        tensors=tensors,
        description=description,
        version=text["version"],
    )


def _encode(
    estimator: str, tensors: Mapping[str, torch.Tensor], description: Mapping[str, Any]
) -> bytes:
    """Return the bytes of the model file."""
    if "__metadata__" in tensors:
        raise ValueError("A tensor cannot be named '__metadata__': safetensors reserves the name.")
    text = json.dumps(
        {
            "format": FORMAT,
            "sha256": _NO_DIGEST,
            "version": __version__,
            "estimator": estimator,
            "description": _encoded(dict(description), "description"),
        },
        allow_nan=False,
        separators=(",", ":"),
    )
    # safetensors takes neither strided tensors nor two names for one memory: copies are neither.
    copies = {
        name: tensor.detach().to("cpu").clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    content = safetensors.torch.save(copies, metadata={"grapefill": text})
    digest = hashlib.sha256(content).hexdigest()
    place = content.index(_before_digest(FORMAT)) + len(_before_digest(FORMAT))
    return content[:place] + digest.encode() + content[place + _DIGEST_LENGTH :]


def _before_digest(format_number: int) -> bytes:
    r"""Return what stands before the digest in the header, and nowhere else.

    Only a key of the header has quotes without a backslash, so no name or text of the user can
    look the same.
    """
    return rf'"grapefill":"{{\"format\":{format_number},\"sha256\":\"'.encode()


def _read_bytes(path: str | os.PathLike[str]) -> bytes:
    file = Path(path)
    if file.is_dir():
        raise ModelFileError(
            f"Cannot load {str(path)!r}: it is a folder. Give the path of a file made by `save`."
        )
    try:
        data = file.read_bytes()
    except FileNotFoundError as error:
        raise ModelFileError(
            f"Cannot load {str(path)!r}: there is no such file. Check the path; relative paths "
            f"start at {str(Path.cwd())!r}."
        ) from error
    except OSError as error:
        raise ModelFileError(f"Cannot load {str(path)!r}: {error}.") from error
    if not data:
        raise _damaged(path, "it is empty")
    return data


def _read_header(path: str | os.PathLike[str], data: bytes) -> tuple[dict[str, Any], int]:
    """Return the header and where it ends."""
    header_end = 8 + int.from_bytes(data[:8], "little")
    if len(data) < 8 or header_end > len(data):
        for start, kind in _FOREIGN_STARTS:
            # A model file may begin with any byte (it is a length), but then a brace follows.
            if data.startswith(start) and data[8:9] != b"{":
                raise _foreign(path, f"it looks like {kind}")
        raise _damaged(path, "it is cut short, or not a model file at all")
    try:
        header = json.loads(data[8:header_end])
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "its header cannot be read, or it is not a model file") from error
    if not isinstance(header, dict):
        raise _foreign(path, "its header is not one of safetensors")
    return header, header_end


def _read_text(path: str | os.PathLike[str], header: dict[str, Any]) -> dict[str, Any]:
    """Return our own part of the header, its types checked."""
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("grapefill"), str):
        raise _foreign(path, "it is a safetensors file of another program, or a damaged one")
    try:
        text = json.loads(metadata["grapefill"])
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "its description cannot be read") from error
    number = text.get("format") if isinstance(text, dict) else None
    if not isinstance(number, int) or number < 1:
        raise _damaged(path, "it has no format number")
    if number > FORMAT:
        raise ModelFileError(
            f"Cannot load {str(path)!r}: it has format {number}, and grapefill {__version__} "
            f"reads formats up to {FORMAT}. Upgrade grapefill"
            f" (the file was written by version {text.get('version', 'unknown')})."
        )
    expected = {"sha256": str, "version": str, "estimator": str, "description": dict}
    for key, kind in expected.items():
        if not isinstance(text.get(key), kind):
            raise _damaged(path, f"its description lacks {key!r}")
    return {key: text[key] for key in expected}


def _check_digest(path: str | os.PathLike[str], data: bytes, header_end: int, digest: str) -> None:
    before = _before_digest(FORMAT)
    place = data.find(before, 8, header_end) + len(before)
    after = place + _DIGEST_LENGTH
    if place < len(before) or data[place:after] != digest.encode():
        raise _damaged(path, "its checksum is not where it should be")
    computed = hashlib.sha256(data[:place])
    computed.update(_NO_DIGEST.encode())
    computed.update(memoryview(data)[after:])
    if computed.hexdigest() != digest:
        raise _damaged(path, "its content does not match its checksum")


def _encoded(value: Any, where: str) -> Any:
    """Return `value` in types that JSON gives back exactly."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_FLOAT_KEY: str(float(value))}
    if isinstance(value, list | tuple):
        return [_encoded(item, f"{where}[{number}]") for number, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            # JSON would turn the key 1 into "1" without a word.
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}; keys must be text.")
        return {
            f"{key}_" if key.startswith(_FLOAT_KEY) else key: _encoded(item, f"{where}[{key!r}]")
            for key, item in value.items()
        }
    raise TypeError(
        f"{where} is of type {type(value).__name__}, which a model file cannot hold; convert it "
        "to text, a number, a list or a dictionary."
    )


def _decoded(value: Any) -> Any:
    """Undo `_encoded`."""
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if isinstance(value, dict):
        if _FLOAT_KEY in value:
            return _NOT_FINITE[value[_FLOAT_KEY]]
        return {
            key[:-1] if key.startswith(_FLOAT_KEY) else key: _decoded(item)
            for key, item in value.items()
        }
    return value


def _damaged(path: str | os.PathLike[str], reason: str) -> ModelFileError:
    return ModelFileError(
        f"Cannot load {str(path)!r}: {reason}. Copy the file again from where it was saved, or "
        "fit and save the model again."
    )


def _foreign(path: str | os.PathLike[str], reason: str) -> ModelFileError:
    return ModelFileError(
        f"Cannot load {str(path)!r}: {reason}. Give a file made by `save` of a grapefill estimator."
    )
