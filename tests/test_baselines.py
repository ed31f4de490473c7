"""The paper's other methods beat a constant, and do what their equations say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from scipy.special import digamma
from sklearn.impute import KNNImputer

from benchmarks.baselines import decision_tree
from benchmarks.baselines.decision_tree import SurrogateTree, rpart_version
from benchmarks.baselines.gain import GAIN
from benchmarks.baselines.iterative_svd import IterativeSVD
from benchmarks.baselines.knn import KNN, LEAST
from benchmarks.baselines.miss_mda import MissMDA
from benchmarks.baselines.miwae import MIWAE
from benchmarks.baselines.soft_impute import SoftImpute, Spectral
from benchmarks.labels import METHODS as LABEL_METHODS
from benchmarks.ratings.biases import Biases, FittedBiases
from benchmarks.ratings.data import Ratings, load_ratings, made_up, root_mean_square
from benchmarks.ratings.factors import GraphFactors, Side, sample_normal
from benchmarks.ratings.gc_mc import GCMC, Network
from benchmarks.ratings.grape import GrapeRatings, RatingGraph
from benchmarks.ratings.igmc import IGMC
from benchmarks.ratings.places import find_places
from grapefill.evaluate import draw_mask


def correlated(rows=300):
    """Return a table of two hidden factors in [0, 1], and the same with holes."""
    random = np.random.default_rng(0)
    table = random.normal(size=(rows, 2)) @ random.normal(size=(2, 8))
    table += 0.1 * random.normal(size=table.shape)
    table = (table - table.min(axis=0)) / np.ptp(table, axis=0)
    return table, np.where(draw_mask(table, 0.3, seed=3), np.nan, table)


def error(filled, truth, holes):
    return np.abs(filled - truth)[np.isnan(holes)].mean()


@pytest.mark.parametrize(
    ("imputer", "share"),
    [
        (KNN(), 0.6),
        (IterativeSVD(rank=3), 0.8),
        (Spectral(), 0.9),
        (SoftImpute(), 0.5),
        (MissMDA(), 0.4),
        (MissMDA(components=2), 0.4),
        (GAIN(seed=0, steps=600), 0.95),
        (MIWAE(seed=0, steps=150, filling_samples=50), 0.8),
    ],
    ids=lambda value: type(value).__name__,
)
def test_beats_the_mean_and_keeps_what_is_observed(imputer, share):
    truth, holes = correlated()
    filled = imputer.fit_transform(holes)
    observed = ~np.isnan(holes)
    np.testing.assert_array_equal(filled[observed], holes[observed])
    by_mean = np.broadcast_to(np.nanmean(holes, axis=0), truth.shape)
    assert error(filled, truth, holes) < share * error(by_mean, truth, holes)


def test_neighbours_count_by_the_square_of_their_distance():
    table = np.array([[0.0, 0.0], [0.0, 1.0], [0.3, 0.9], [0.1, np.nan]])
    # Distances to the last row: .1, .1 and .2.
    weights = np.array([1 / 0.01, 1 / 0.01, 1 / 0.04])
    filled = KNN(3).fit_transform(table)[3, 1]
    assert filled == pytest.approx(weights @ [0, 1, 0.9] / weights.sum())
    # A row like it decides nearly alone.
    table[2, 0] = 0.1
    weights[2] = 1 / LEAST
    filled = KNN(3).fit_transform(table)[3, 1]
    assert filled == pytest.approx(weights @ [0, 1, 0.9] / weights.sum(), rel=1e-9)


def test_neighbours_are_those_of_scikit_learn():
    truth, holes = correlated()
    # There a distance is the root of the mean, times all eight columns.
    peer = KNNImputer(n_neighbors=7, weights=lambda far: 1 / np.maximum(far**2 / 8, LEAST))
    np.testing.assert_allclose(KNN(7).fit_transform(holes), peer.fit_transform(holes))
    new = np.where(draw_mask(truth, 0.4, seed=4), np.nan, truth)[:90]
    new[0, :] = np.nan
    filled = KNN(7).fit(holes[100:]).transform(new)
    np.testing.assert_allclose(filled, peer.fit(holes[100:]).transform(new))


def test_iterative_svd_keeps_one_singular_vector_less():
    _, holes = correlated()
    filled = IterativeSVD().fit_transform(holes)
    # As far as it has converged, the holes are what the other seven vectors say.
    vectors = np.linalg.svd(filled, full_matrices=False)[2][:-1]
    change = (filled - filled @ vectors.T @ vectors)[np.isnan(holes)]
    assert np.square(change).sum() < 1e-3 * np.square(filled[np.isnan(holes)]).sum()


class TestMissMDA:
    def test_finds_the_number_of_components_of_a_table_without_noise(self):
        random = np.random.default_rng(1)
        truth = random.normal(size=(200, 2)) @ random.normal(size=(2, 7))
        holes = np.where(draw_mask(truth, 0.2, seed=1), np.nan, truth)
        filled = MissMDA().fit_transform(holes)
        assert error(filled, truth, holes) < 0.01

    def test_columns_that_have_nothing_in_common_get_their_means(self):
        truth = np.random.default_rng(2).random((500, 6))
        holes = np.where(draw_mask(truth, 0.3, seed=1), np.nan, truth)
        mean = np.broadcast_to(np.nanmean(holes, axis=0), truth.shape)
        np.testing.assert_allclose(
            MissMDA().fit_transform(holes), np.where(np.isnan(holes), mean, holes)
        )

    def test_a_draw_is_further_off_than_the_fit(self):
        truth, holes = correlated()
        fit = error(MissMDA(components=2).fit_transform(holes), truth, holes)
        draw = error(MissMDA(components=2, draws=1).fit_transform(holes), truth, holes)
        assert draw > 1.2 * fit


class TestDecisionTree:
    @pytest.fixture(params=["rpart", "scikit-learn"])
    def implementation(self, request, monkeypatch):
        if request.param == "scikit-learn":
            monkeypatch.setattr(decision_tree, "rpart_version", lambda: None)
        elif rpart_version() is None:
            pytest.skip("R with rpart is not installed")
        return request.param

    def test_predicts_numbers_from_rows_with_holes(self, implementation):
        truth, holes = correlated()
        y = truth[:, 0] + truth[:, 1]
        tree = SurrogateTree(classes=False, seed=0).fit(holes[:200], y[:200])
        assert tree.implementation.startswith(implementation)
        off = np.abs(tree.predict(holes[200:]) - y[200:]).mean()
        assert off < 0.7 * np.abs(y[:200].mean() - y[200:]).mean()

    def test_predicts_classes(self, implementation):
        truth, holes = correlated()
        y = (truth[:, 0] > 0.5).astype(int)
        tree = SurrogateTree(classes=True, seed=0).fit(holes[:200], y[:200])
        chances = tree.predict_proba(holes[200:])
        np.testing.assert_allclose(chances.sum(axis=1), 1)
        assert (tree.classes_[chances.argmax(axis=1)] == y[200:]).mean() > 0.7


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_imputers_predict_labels_through_a_linear_map():
    truth, holes = correlated()
    y = truth @ np.arange(8.0)
    known = y.copy()
    known[200:] = np.nan
    model = LABEL_METHODS["mice, then linear"].regressor(0).fit(holes, known)
    predicted = model.predict_fitted_rows()[200:]
    assert np.abs(predicted - y[200:]).mean() < 0.4 * np.abs(y[:200].mean() - y[200:]).mean()


class TestRatings:
    @pytest.mark.parametrize(
        ("method", "share"),
        [
            (Biases(), 0.9),
            (GrapeRatings(steps=40, members=1), 0.9),
            (GrapeRatings(steps=40, members=1, discrete=False), 0.9),
            (GrapeRatings(steps=20, members=1, discrete=False, on_biases=True), 0.9),
            (GrapeRatings(steps=20, members=1, discrete=False, on_biases=True, places=4), 0.9),
            (
                GrapeRatings(steps=20, members=1, discrete=False, on_biases=True, factor_rounds=40),
                0.9,
            ),
            (GraphFactors(rounds=40, places=4), 0.9),
            (GCMC(steps=30), 0.9),
            (IGMC(steps=60, batch=10, most_nodes=8, rate=0.01), 0.9),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_beats_the_mean(self, method, share):
        train, test = made_up()
        predicted = method.fit_predict(train, test)
        by_mean = root_mean_square(train.rating.mean().expand(len(test)), test)
        assert root_mean_square(predicted, test) < share * by_mean

    def test_biases_are_shrunk_means(self):
        ratings = Ratings(
            torch.tensor([0, 0, 1]),
            torch.tensor([0, 1, 0]),
            torch.tensor([4, 4, 0]),
            torch.arange(1.0, 6.0),
            3,
            2,
        )
        free = FittedBiases(ratings, 1e-6, 1e6)
        # Items say nothing then: a user's bias is the mean of the user's ratings, less that of all.
        torch.testing.assert_close(
            free.of_user[:2] + free.mean, torch.tensor([5.0, 1.0]), atol=1e-3, rtol=0
        )
        assert free.of_user[2] == 0

    def test_a_hidden_rating_is_not_in_its_surroundings(self):
        train, _ = made_up(users=20, items=10)
        model = IGMC()
        model._random = np.random.default_rng(0)
        matrix = np.zeros((20, 10), dtype=np.int16)
        matrix[train.user, train.item] = train.level + 1
        graph = model._surround(matrix, train.take(torch.arange(4)), 0.0)
        for user, item in zip(graph.user, graph.item, strict=True):
            assert not ((graph.source == user) & (graph.target == item)).any()
        assert len(graph.source) % 2 == 0

    def test_places_tell_communities_apart(self):
        random = np.random.default_rng(0)
        camp = np.arange(40) % 2
        edges = random.random((40, 40)) < np.where(camp[:, None] == camp, 0.5, 0.05)
        user, item = (torch.from_numpy(at) for at in np.nonzero(edges))
        ratings = Ratings(user, item, torch.zeros_like(user), torch.ones(1), 40, 40)
        for side in find_places(ratings, 2):
            apart = side[camp == 1].mean(axis=0) - side[camp == 0].mean(axis=0)
            assert np.abs(apart[:2]).max() > 1.5

    def test_factors_know_that_what_is_rated_tells_how(self):
        random = np.random.default_rng(0)
        taste, genre = random.normal(size=(80, 1)), random.normal(size=(60, 1))
        edges = random.random((80, 60)) < 1 / (1 + np.exp(2.5 - 3 * taste * genre.T))
        level = np.clip(np.rint(2 + 1.5 * taste + 0.5 * random.normal(size=(80, 60))), 0, 4)
        user, item = np.nonzero(edges)
        whole = Ratings(
            *(torch.from_numpy(each) for each in (user, item, level[edges].astype(int))),
            torch.arange(5.0),
            80,
            60,
        )
        train, test = whole.split(0.7, torch.Generator().manual_seed(0))
        error = root_mean_square(GraphFactors(rounds=100, places=2).fit_predict(train, test), test)
        assert error < 0.97 * root_mean_square(Biases().fit_predict(train, test), test)

    def test_factors_are_sampled_from_their_posterior(self):
        random = np.random.default_rng(0)
        inner = np.array([[2.0, 0.5], [0.5, 1.0]])
        right = np.array([1.0, -1.0])
        many = sample_normal(np.tile(inner, (20_000, 1, 1)), np.tile(right, (20_000, 1)), random)
        assert many.mean(axis=0) == pytest.approx(np.linalg.solve(inner, right), abs=0.05)
        assert np.cov(many.T) == pytest.approx(np.linalg.inv(inner), abs=0.05)

    def test_without_ratings_factors_follow_their_prior(self):
        random = np.random.default_rng(0)
        side, other = (Side(random.normal(size=(3, 2)), 1, random) for _ in range(2))
        nothing = csr_matrix((3, 3))
        found = []
        for _ in range(3000):
            side.sample(other, nothing, nothing)
            found.append(np.linalg.slogdet(side.sample_prior()[1])[1])
        # The expectation of the log-determinant of a Wishart matrix of 2 degrees in 2 dimensions.
        expected = digamma(1.0) + digamma(0.5) + 2 * np.log(2)
        assert np.mean(found) == pytest.approx(expected, abs=0.5)

    def test_a_graph_of_ratings_averages_messages(self):
        train, _ = made_up(users=20, items=10)
        graph = RatingGraph(train, discrete=True)
        messages = torch.rand(len(train), 3)
        received = graph.to_features(messages, "mean")
        expected = messages[train.item == 4].mean(0)
        torch.testing.assert_close(received[4], expected)

    def test_files_are_read_with_users_and_items_numbered_anew(self, tmp_path):
        np.savez(
            tmp_path / "some.npz",
            train_user=[5, 9],
            train_item=[2, 2],
            train_rating=[1.0, 3.0],
            test_user=[5],
            test_item=[7],
            test_rating=[2.0],
            W_users_row=[5, 5, 9, 0],
            W_users_col=[0, 9, 5, 5],
            W_users_val=[1.0, 3.0, 2.0, 1.0],
        )
        train, test = load_ratings(tmp_path / "some.npz")
        assert (train.n_users, train.n_items) == (2, 2)
        assert train.rating.tolist() == [1.0, 3.0]
        assert (test.user.tolist(), test.item.tolist(), test.rating.tolist()) == ([0], [1], [2.0])
        assert train.like_items is None
        shares = train.like_users.to_dense()
        assert shares[0].nonzero().ravel().tolist() == [0, 9]
        assert (shares[0, 9], shares[1, 5]) == (0.75, 1.0)

    def test_side_information_is_added_to_states(self):
        train, test = made_up(users=20, items=10)
        shares = torch.rand(20, 7)
        friends = replace(train, like_users=shares.to_sparse())
        network = Network(friends, hidden=10, width=4, bases=2).eval()
        side = network.like_users
        expected = (shares @ side.first.weight.T + side.first.bias).relu() @ side.second.weight.T
        torch.testing.assert_close(side(0.5), expected)
        everybody = network.like_items
        torch.testing.assert_close(everybody.graph.to_dense(), torch.eye(10))
        assert Network(train, hidden=10, width=4, bases=2).like_items(0.5) == 0
        said = network(friends, test, 0.5)
        torch.nn.init.zeros_(side.second.weight)
        assert not torch.equal(network(friends, test, 0.5), said)
