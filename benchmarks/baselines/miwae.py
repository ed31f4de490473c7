r"""MIWAE (Mattei, Frellsen: Deep generative modelling of incomplete data, ICML 2019).

A deep latent variable model :math:`p(z) p_\theta(x | z)`, Student's t for every column, with an
encoder :math:`q_\gamma(z | x_{obs})` that reads the row with 0 in its holes, trained on a bound
that looks at observed cells alone:

.. math::

    E_{z_1 \dots z_K \sim q}\; \log \frac1K \sum_k w_k, \qquad
    w_k = \frac{p_\theta(x_{obs} | z_k)\, p(z_k)}{q_\gamma(z_k | x_{obs})}

A hole is filled with :math:`\sum_l w_l\, E[x | z_l] / \sum_l w_l`, self-normalised importance
sampling. Encoder and decoder have two hidden layers of 128 units, z has 10 dimensions, K = 20, 64
rows a step, Adam at .001, columns standardised, as in the paper; steps as stated with the results.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.baselines.networks import batches, perceptron

BLOCK = 200_000


@dataclass
class MIWAE:
    """Filling by a deep latent variable model.

    Parameters
    ----------
    seed : int
        Source of all randomness.
    steps, batch, rate
        Steps, rows per step and learning rate.
    latent, hidden : int
        Dimensions of z, and units of the hidden layers.
    samples, filling_samples : int
        K in training, and the number of samples that fill a hole.
    """

    seed: int = 0
    steps: int = 5_000
    batch: int = 64
    rate: float = 0.001
    latent: int = 10
    hidden: int = 128
    samples: int = 20
    filling_samples: int = 500

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        """Return the filled table."""
        random = torch.Generator().manual_seed(self.seed)
        mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        observed = ~np.isnan(X)
        x = torch.tensor(np.where(observed, (X - mean) / spread, 0.0)).float()
        m = torch.tensor(observed).float()
        columns, hidden = X.shape[1], (self.hidden, self.hidden)
        self.encoder = perceptron((columns, *hidden, 2 * self.latent), nn.ReLU, random)
        self.decoder = perceptron((self.latent, *hidden, 3 * columns), nn.ReLU, random)
        parameters = [*self.encoder.parameters(), *self.decoder.parameters()]
        optimizer = torch.optim.Adam(parameters, lr=self.rate, fused=True)
        for rows in batches(len(x), self.batch, self.steps, random):
            log_weights, _ = self._weigh(x[rows], m[rows], self.samples, random)
            loss = -log_weights.logsumexp(0).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        filled = []
        with torch.no_grad():
            for some in x.split(max(1, BLOCK // self.filling_samples)):
                rows = slice(sum(map(len, filled)), sum(map(len, filled)) + len(some))
                log_weights, means = self._weigh(some, m[rows], self.filling_samples, random)
                filled.append((log_weights.softmax(0)[..., None] * means).sum(0))
        guess = torch.cat(filled).double().numpy()
        return np.where(observed, X, guess * spread + mean)

    def _weigh(
        self, x: Tensor, m: Tensor, samples: int, random: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return the logarithms of the weights, (samples, rows), and means of x given z."""
        centre, raw = self.encoder(x).chunk(2, dim=-1)
        width = F.softplus(raw) + 1e-4
        noise = torch.randn(samples, *centre.shape, generator=random)
        z = centre + width * noise
        location, raw_scale, raw_freedom = self.decoder(z).chunk(3, dim=-1)
        scale, freedom = F.softplus(raw_scale) + 1e-3, F.softplus(raw_freedom) + 3
        likelihood = (m * _student(x, location, scale, freedom)).sum(-1)
        prior = -0.5 * z.square().sum(-1)
        proposal = (-0.5 * noise.square() - width.log()).sum(-1)
        return likelihood + prior - proposal, location


def _student(x: Tensor, location: Tensor, scale: Tensor, freedom: Tensor) -> Tensor:
    """Return the log density of Student's t, without its constant."""
    return (
        torch.lgamma((freedom + 1) / 2)
        - torch.lgamma(freedom / 2)
        - 0.5 * freedom.log()
        - scale.log()
        - (freedom + 1) / 2 * torch.log1p(((x - location) / scale).square() / freedom)
    )
