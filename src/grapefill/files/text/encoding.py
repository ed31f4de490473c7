"""Bytes of any encoding to UTF-8 and back, without loss."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from grapefill.errors import InputError

__all__ = ["Encoding", "to_utf8"]

# That of UTF-32 begins with that of UTF-16, so it comes first.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PIECE = 1 << 24


@dataclass(frozen=True)
class Encoding:
    r"""How the characters of a file are written.

    Parameters
    ----------
    name : str
        The codec of Python.
    bom : bytes
        The byte order mark at the start of the file, if there is one.

    Examples
    --------
    >>> Encoding("latin-1").encode("é".encode())
    b'\xe9'
    """

    name: str
    bom: bytes = b""

    def encode(self, content: bytes) -> bytes:
        """Return UTF-8 in this encoding; characters that it lacks are a `UnicodeEncodeError`."""
        return content if self.name == "utf-8" else content.decode().encode(self.name)


def to_utf8(content: bytes, encoding: str | None, name: str) -> tuple[bytes, Encoding]:
    """Return the content as UTF-8 without a byte order mark, and its encoding.

    Parameters
    ----------
    content : bytes
        The file.
    encoding : str or None
        The encoding, as Python calls it. None finds it out: a byte order mark tells, then UTF-16
        or UTF-32 by its zeros, then UTF-8 if all of it is valid, then cp1252 and latin-1.
    name : str
        What to call the file in a message.

    Raises
    ------
    InputError
        If the encoding is unknown, does not fit, or cannot give back the same bytes.
    """
    found = _detect(content, name) if encoding is None else _named(encoding, content)
    body = content[len(found.bom) :]
    if found.name == "utf-8":
        _check_utf8(body, name)
        return body, found
    try:
        text = body.decode(found.name)
        same = text.encode(found.name) == body
    except UnicodeDecodeError as error:
        before = body[: error.start].decode(found.name, errors="replace")
        raise _undecodable(name, found.name, before, error) from error
    except UnicodeEncodeError:
        same = False
    if not same:
        raise InputError(
            f"{name} cannot be written back unchanged in the encoding {found.name}. Convert it to "
            "UTF-8 first."
        )
    return text.encode(), found


def _detect(content: bytes, name: str) -> Encoding:
    for bom, codec in _BOMS:
        if content.startswith(bom):
            return Encoding(codec, bom)
    start = content[:4096]
    if b"\0" in start:
        half = len(start) // 4
        # Two of four bytes are zero in all of UTF-32 but its rarest characters.
        for codec, first in (("utf-32-le", 2), ("utf-32-be", 0)):
            zeros = start[first::4] + start[first + 1 :: 4]
            if zeros.count(0) > half and len(content) % 4 == 0:
                return Encoding(codec)
        for codec, zeros in (("utf-16-le", start[1::2]), ("utf-16-be", start[::2])):
            if zeros.count(0) > half and len(content) % 2 == 0:
                return Encoding(codec)
        raise InputError(
            f"{name} is not text: it has zero bytes. Check its format, or name its encoding."
        )
    if _is_utf8(content):
        return Encoding("utf-8")
    try:
        # The five bytes that cp1252 leaves undefined are control characters in latin-1.
        content.decode("cp1252")
    except UnicodeDecodeError:
        return Encoding("latin-1")
    return Encoding("cp1252")


def _named(encoding: str, content: bytes) -> Encoding:
    try:
        codec = codecs.lookup(encoding).name
        b"".decode(codec)
    except LookupError as error:
        raise InputError(
            f"There is no encoding {encoding!r}. Use for example 'utf-8', 'latin-1', 'cp1252' or "
            "'utf-16'."
        ) from error
    if codec == "utf-8-sig":
        codec = "utf-8"
    for bom, owner in _BOMS:
        if content.startswith(bom) and owner.startswith(codec):
            return Encoding(owner, bom)
    # Python would write a byte order mark in front of every piece of the file.
    return Encoding(f"{codec}-le" if codec in ("utf-16", "utf-32") else codec)


def _is_utf8(content: bytes) -> bool:
    try:
        _decode_all(content)
    except UnicodeDecodeError:
        return False
    return True


def _check_utf8(content: bytes, name: str) -> None:
    try:
        _decode_all(content)
    except UnicodeDecodeError as error:
        before = content[: error.start].decode(errors="replace")
        raise _undecodable(name, "utf-8", before, error) from error


def _decode_all(content: bytes) -> None:
    """Decode piece by piece, so that no second copy of a large file is made."""
    if content.isascii():
        return
    start = 0
    while start < len(content):
        stop = min(start + _PIECE, len(content))
        # A character may not be cut: its later bytes begin with the bits 10.
        while stop < len(content) and content[stop] & 0xC0 == 0x80 and stop > start + 1:
            stop -= 1
        try:
            content[start:stop].decode()
        except UnicodeDecodeError as error:
            at, end = start + error.start, start + error.end
            raise UnicodeDecodeError("utf-8", content, at, end, error.reason) from None
        start = stop


def _undecodable(name: str, codec: str, before: str, error: UnicodeDecodeError) -> InputError:
    line = before.count("\n") + 1
    character = len(before) - (before.rfind("\n") + 1) + 1
    found = error.object[error.start : error.end].hex(" ")
    return InputError(
        f"Line {line} of {name} is not {codec}: the bytes {found} at character {character} are no "
        "text in it. Name the right encoding, for example 'latin-1', or leave it out."
    )
