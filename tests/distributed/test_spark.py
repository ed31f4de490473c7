"""Filling the partitions of a Spark DataFrame; run by ``make test-spark``."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from grapefill import GrapeImputer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]
pandas = pytest.importorskip("pandas")
sql = pytest.importorskip("pyspark.sql", reason="needs pyspark: make test-spark")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    if shutil.which("java") is None:
        pytest.skip("needs Java 17")
    # Its workers take the first Python on the path otherwise.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield session
    session.stop()


def make_table(rows: int = 500) -> Any:
    random = np.random.default_rng(0)
    x = random.normal(size=rows)
    table = pandas.DataFrame({"row": np.arange(rows), "a": x, "b": 3 * x + 1})
    table["c"] = np.where(x > 0, "up", "down")
    for name in ("a", "b", "c"):
        table[name] = table[name].astype(object).where(random.random(rows) > 0.2, None)
    return table.astype({"a": float, "b": float})


def test_partitions_are_filled_as_in_one_process(spark: Any, tmp_path: Path) -> None:
    import pyarrow as pa

    from grapefill.distributed import spark_filler

    table = make_table()
    rows = [
        tuple(None if pandas.isna(value) else value for value in row)
        for row in table.itertuples(index=False)
    ]
    rows = [(int(row[0]), *row[1:]) for row in rows]
    frame = spark.createDataFrame(rows, "row long, a double, b double, c string").repartition(3)
    arrow = pa.table({name: [row[k] for row in rows] for k, name in enumerate(table.columns)})
    imputer = GrapeImputer(
        "fast",
        settings={"max_steps": 12, "rounds": 1, "trees": 4, "trial_trees": 4},
        kinds={"row": "passthrough"},
        random_state=0,
    ).fit(arrow)
    imputer.save(tmp_path / "m.grape")
    expected = imputer.transform(arrow).to_pydict()
    for model in (imputer, str(tmp_path / "m.grape")):
        filled = frame.mapInArrow(spark_filler(model), frame.schema).collect()
        found = sorted(tuple(row) for row in filled)
        assert found == sorted(zip(*expected.values(), strict=True))
