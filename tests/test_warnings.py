"""A warning names the line of the caller, whatever stands between it and us."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

from grapefill import GrapeImputer
from grapefill.errors import GrapefillWarning, warn
from grapefill.table import Schema, Table

QUICK = {"max_steps": 2, "batch_rows": None, "width": 4, "edge_width": 4, "head_width": 4}


def quick(**parameters):
    return GrapeImputer(settings=QUICK, random_state=0, **parameters)


def table():
    return pd.DataFrame({"x": [1.0, None, 3.0, 4.0], "color": ["red", "blue", "red", None]})


def useless():
    return table().assign(nothing=np.nan)


def passing():
    return table().assign(tags=[[1], [2], [3], [4]])


def strange():
    return table().assign(color=["red", "green", "blue", None])


def caught_at(call):
    """Return the one warning of a call, and the line that made it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    (warning,) = caught
    assert warning.filename == __file__
    assert warning.lineno == call.__code__.co_firstlineno
    return warning


@pytest.mark.parametrize(("X", "words"), [(useless(), "no observed"), (passing(), "pass through")])
class TestFit:
    def test_fit(self, X, words):
        warning = caught_at(lambda: quick().fit(X))
        assert warning.category is GrapefillWarning
        assert words in str(warning.message)

    def test_fit_transform(self, X, words):
        assert words in str(caught_at(lambda: quick().fit_transform(X)).message)

    def test_pipeline(self, X, words):
        pipeline = make_pipeline(quick(), "passthrough")
        assert words in str(caught_at(lambda: pipeline.fit_transform(X)).message)

    def test_output_of_another_kind(self, X, words):
        imputer = quick().set_output(transform="pandas")
        assert words in str(caught_at(lambda: imputer.fit_transform(X)).message)


def test_interrupted_training():
    def interrupt(progress):
        if progress.step == 2:
            raise KeyboardInterrupt

    imputer = quick(callbacks=[interrupt])
    assert "interrupted" in str(caught_at(lambda: imputer.fit_transform(table())).message)


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(table())


class TestTransform:
    @pytest.mark.parametrize("graph_from", ["fit", "transform"])
    def test_unseen_categories(self, fitted, graph_from):
        fitted.set_params(graph_from=graph_from)
        warning = caught_at(lambda: fitted.transform(strange()))
        assert warning.category is GrapefillWarning
        assert "'green'" in str(warning.message)

    def test_unseen_categories_elsewhere(self, fitted):
        pipeline = make_pipeline(fitted, "passthrough")
        for call in (fitted.encode, fitted.refresh, pipeline.transform):
            warning = caught_at(lambda call=call: call(strange()))
            assert "'green'" in str(warning.message)

    def test_unseen_categories_in_a_warm_start(self):
        imputer = quick(warm_start=True).fit(table())
        warning = caught_at(lambda: imputer.fit(strange()))
        assert "'green'" in str(warning.message)

    def test_names_at_transform_only(self):
        X = table()[["x"]]
        imputer = quick().fit(X.to_numpy())
        warning = caught_at(lambda: imputer.transform(X))
        # scikit-learn's own class, which its checks look for.
        assert warning.category is UserWarning
        assert "X has feature names" in str(warning.message)

    def test_names_at_fit_only(self):
        X = table()[["x"]]
        imputer = quick().fit(X)
        warning = caught_at(lambda: imputer.transform(X.to_numpy()))
        assert warning.category is UserWarning
        assert "X does not have valid feature names" in str(warning.message)


def test_the_table_room_by_itself():
    strange_table = Table.wrap(pl.DataFrame({"tags": [[1], [2]]}))
    warning = caught_at(lambda: Schema.infer(strange_table))
    assert "'tags'" in str(warning.message)


def test_the_innermost_line_outside_is_named():
    """Frames of scikit-learn are passed over, whatever their file."""
    source = compile("warn('hello')", "<wrapper>", "exec")
    with pytest.warns(GrapefillWarning, match="hello") as caught:
        exec(source, {"warn": warn, "__name__": "sklearn.made_up"})
    assert caught[0].filename == __file__
    with pytest.warns(GrapefillWarning, match="hello") as caught:
        exec(source, {"warn": warn, "__name__": "sklearnish"})
    assert caught[0].filename == "<wrapper>"
