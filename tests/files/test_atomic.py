import os
import stat
import sys

import pytest

from grapefill.files import atomic
from grapefill.files.atomic import write_whole


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_file_appears_only_when_complete(tmp_path):
    path = tmp_path / "out.bin"
    with write_whole(path) as file:
        file.write(b"\x00\xff")
        assert not path.exists()
    assert path.read_bytes() == b"\x00\xff"
    assert names(tmp_path) == ["out.bin"]


def test_no_other_name_while_it_is_written(tmp_path):
    if not hasattr(os, "O_TMPFILE"):
        pytest.skip("files without a name are a thing of Linux")
    with write_whole(tmp_path / "out.bin") as file:
        file.write(b"1")
        file.flush()
        assert names(tmp_path) == []


@pytest.mark.parametrize("lacking", ["nameless", "links"])
def test_systems_that_can_do_less(tmp_path, monkeypatch, lacking):
    if lacking == "nameless":
        monkeypatch.setattr(atomic, "OPEN_FILES", tmp_path / "nowhere")
    else:

        def refuse(*_, **__):
            raise OSError

        monkeypatch.setattr(os, "link", refuse)
    for content in (b"old", b"new"):
        with write_whole(tmp_path / "out.bin") as file:
            file.write(content)
            assert [name for name in names(tmp_path) if not name.startswith(".")] == (
                ["out.bin"] if content == b"new" else []
            )
        assert (tmp_path / "out.bin").read_bytes() == content
    with pytest.raises(ValueError, match="no"), write_whole(tmp_path / "out.bin") as file:
        raise ValueError("no")
    assert names(tmp_path) == ["out.bin"]


def test_text_is_utf8_with_line_ends_as_given(tmp_path):
    with write_whole(tmp_path / "out.txt", text=True) as file:
        file.write("é\n\r\n")
    assert (tmp_path / "out.txt").read_bytes() == b"\xc3\xa9\n\r\n"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    with pytest.raises(error), write_whole(path) as file:
        file.write(b"new")
        raise error
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["out.bin"]


def test_failed_replace_leaves_nothing(tmp_path):
    path = tmp_path / "out.bin"
    with pytest.raises(OSError, match="directory"), write_whole(path) as file:
        file.write(b"new")
        path.mkdir()
    assert names(tmp_path) == ["out.bin"]


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("missing/out.bin", FileNotFoundError, "does not exist"),
        ("file/out.bin", NotADirectoryError, "not a folder"),
        ("folder", IsADirectoryError, "Add a file name"),
    ],
)
def test_impossible_places(tmp_path, where, error, message):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(error, match=message), write_whole(tmp_path / where):
        pass
    assert names(tmp_path) == ["file", "folder"]


def test_longest_possible_name(tmp_path):
    path = tmp_path / ("x" * 255)
    with write_whole(path) as file:
        file.write(b"1")
    assert path.read_bytes() == b"1"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions, links and pipes")
class TestPosix:
    def test_new_file_has_the_permissions_of_any_new_file(self, tmp_path):
        (tmp_path / "plain").touch()
        with write_whole(tmp_path / "out"):
            pass
        assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_replaced_file_keeps_its_permissions(self, tmp_path):
        path = tmp_path / "out"
        path.touch()
        path.chmod(0o640)
        with write_whole(path):
            pass
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_link_stays_a_link(self, tmp_path):
        (tmp_path / "link").symlink_to("target")
        with write_whole(tmp_path / "link") as file:
            file.write(b"1")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "target").read_bytes() == b"1"

    def test_pipe_is_refused(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="device or a pipe"), write_whole(tmp_path / "pipe"):
            pass
        assert (tmp_path / "pipe").is_fifo()
