import datetime

import pyarrow as pa
import pytest

from grapefill.files.cells.dates import guess_layouts, read_dates, usual_offset, write_dates
from grapefill.files.cells.formats import ColumnFormat

MOMENT = datetime.datetime(2024, 2, 29, 13, 5, 9)


def chunked(texts):
    return pa.chunked_array([pa.array(texts, pa.string())])


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-29",
        "2024/02/29",
        "2024.2.9",
        "29.02.2024",
        "9.2.2024",
        "29.02.24",
        "29-02-2024",
        "29 Feb 2024",
        "9-Feb-24",
        "29-FEB-2024",
        "29 February 2024",
        "Feb 29, 2024",
        "February 9 2024",
        "20240229",
        "2024-02",
        "2024-02-29 13:05",
        "2024-02-29T13:05:09",
        "2024-02-29T13:05:09.5",
        "2024-02-29 13:05:09,250",
        "2024-02-29T13:05:09.123456Z",
        "2024-02-29T13:05:09.123456789",
        "2024-02-29T13:05:09+02:00",
        "2024-02-29T13:05:09-0530",
        "29.02.2024 13:05",
        "29.02.2024, 3:05",
        "29.02.2024 1:05 PM",
        "29.02.2024 12:05am",
    ],
)
def test_every_layout_comes_back(text):
    layouts = guess_layouts([text])
    dates = read_dates(chunked([text, None]), layouts[0])
    assert dates.bad is None
    offset = usual_offset([text]) if "%z" in layouts[0] else ""
    shape = ColumnFormat("datetime", layout=layouts[0], offset=offset)
    assert write_dates(dates.values.chunk(0).drop_null(), shape) == [text]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-02-29 13:05:09", MOMENT),
        ("29.02.2024 01:05:09 PM", MOMENT),
        ("29.02.24 1:05:09 pm", MOMENT),
        ("29 feb 2024 13:05:09", MOMENT),
        ("2024-02-29T15:05:09+02:00", MOMENT.replace(tzinfo=datetime.UTC)),
        ("2024-02-29T07:35:09-05:30", MOMENT.replace(tzinfo=datetime.UTC)),
        ("29.02.2024 12:05:09 AM", MOMENT.replace(hour=0)),
        ("1.1.70 00:00:00", datetime.datetime(1970, 1, 1)),
    ],
)
def test_values(text, moment):
    dates = read_dates(chunked([text]), guess_layouts([text])[0])
    assert dates.values[0].as_py() == moment


@pytest.mark.parametrize(
    "text",
    ["2024-02-30", "2023-02-29", "2024-13-01", "2024-00-01", "2024-01-00", "2024-1-1x", "x", ""],
)
def test_there_is_no_such_day(text):
    dates = read_dates(chunked(["2024-02-29", text, None]), "%Y-%m-%d")
    assert dates.bad.tolist() == [False, True, False]
    assert dates.values[1].as_py() is None


@pytest.mark.parametrize("text", ["24:00", "12:60", "13:05 PM", "0:05 AM"])
def test_there_is_no_such_time(text):
    layout = "%Y-%m-%d %-I:%M %p" if "M" in text else "%Y-%m-%d %H:%M"
    assert read_dates(chunked([f"2024-02-29 {text}"]), layout).bad.tolist() == [True]


@pytest.mark.parametrize("text", ["12", "1.5", "12:30", "99990101", "2024.02", "yes", "1-2", ""])
def test_no_date(text):
    assert guess_layouts([text]) == []


def test_day_or_month_first():
    assert guess_layouts(["01/02/2024"]) == ["%m/%d/%Y", "%d/%m/%Y"]
    assert guess_layouts(["01.02.2024"]) == ["%d.%m.%Y", "%m.%d.%Y"]
    assert guess_layouts([]) == []


def test_mixed_offsets_are_the_same_clock():
    texts = ["2024-02-29T13:05:00+02:00", "2024-02-29T11:05:00Z"]
    dates = read_dates(chunked(texts), "%Y-%m-%dT%H:%M:%S%z")
    assert dates.values[0] == dates.values[1]


def test_far_away_days():
    dates = read_dates(chunked(["0001-01-01", "9999-12-31"]), "%Y-%m-%d")
    shape = ColumnFormat("date", layout="%Y-%m-%d")
    assert write_dates(dates.values.chunk(0), shape) == ["0001-01-01", "9999-12-31"]
