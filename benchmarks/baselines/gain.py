r"""GAIN (Yoon, Jordon, van der Schaar: Missing data imputation using GANs, ICML 2018).

With m = 1 where x is observed and z noise, a generator fills the table,
:math:`\bar x = G(m x + (1 - m) z, m)`, :math:`\hat x = m x + (1 - m) \bar x`, and a discriminator
tells from :math:`\hat x` and a hint h, which is m with a tenth of it unknown, what was observed:

.. math::

    L_D = -\mathrm{mean}\,[m \log D + (1 - m) \log(1 - D)], \qquad
    L_G = -\mathrm{mean}\,[(1 - m) \log D] + \alpha\, \mathrm{mean}\,[m (x - \bar x)^2] / \bar m

Both have two hidden layers as wide as the table; 10,000 steps on 128 rows, hint rate .9,
:math:`\alpha = 100` as in the authors' code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from torch import nn

from benchmarks.baselines.networks import batches, perceptron, unit_scale

NOISE = 0.01
TINY = 1e-8


@dataclass
class GAIN:
    """Filling by a generator that was trained against a discriminator.

    Parameters
    ----------
    seed : int
        Source of all randomness.
    steps, batch, alpha, hint, rate
        Steps, rows per step, weight of the reconstruction, hint rate and learning rate.
    """

    seed: int = 0
    steps: int = 10_000
    batch: int = 128
    alpha: float = 100.0
    hint: float = 0.9
    rate: float = 0.001
    generator: nn.Module | None = field(default=None, repr=False)

    def fit(self, X: np.ndarray) -> Self:
        """Train on a table with holes."""
        random = torch.Generator().manual_seed(self.seed)
        self.low, self.range = unit_scale(X)
        x, m = self._tensors(X)
        columns = X.shape[1]
        sizes = (2 * columns, columns, columns, columns)
        self.generator = nn.Sequential(perceptron(sizes, nn.ReLU, random), nn.Sigmoid())
        discriminator = nn.Sequential(perceptron(sizes, nn.ReLU, random), nn.Sigmoid())
        generating = torch.optim.Adam(self.generator.parameters(), lr=self.rate, fused=True)
        discriminating = torch.optim.Adam(discriminator.parameters(), lr=self.rate, fused=True)
        for rows in batches(len(x), self.batch, self.steps, random):
            xb, mb = x[rows], m[rows]
            noisy = mb * xb + (1 - mb) * NOISE * torch.rand(xb.shape, generator=random)
            hints = mb * (torch.rand(mb.shape, generator=random) < self.hint)
            guess, filled = self._filled(noisy, xb, mb)
            real = discriminator(torch.cat([filled.detach(), hints], 1))
            loss = -(mb * (real + TINY).log() + (1 - mb) * (1 - real + TINY).log()).mean()
            discriminating.zero_grad()
            loss.backward()
            discriminating.step()
            real = discriminator(torch.cat([filled, hints], 1))
            fooling = -((1 - mb) * (real + TINY).log()).mean()
            loss = fooling + self.alpha * (mb * (xb - guess)).square().mean() / mb.mean()
            generating.zero_grad()
            loss.backward()
            generating.step()
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the filled table."""
        x, m = self._tensors(X)
        random = torch.Generator().manual_seed(self.seed + 1)
        noisy = m * x + (1 - m) * NOISE * torch.rand(x.shape, generator=random)
        with torch.no_grad():
            guess = self._filled(noisy, x, m)[0].double().numpy()
        return np.where(np.isnan(X), guess * self.range + self.low, X)

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        """Return the filled table."""
        return self.fit(X).transform(X)

    def _filled(
        self, noisy: torch.Tensor, x: torch.Tensor, m: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.generator is not None
        guess = self.generator(torch.cat([noisy, m], 1))
        return guess, m * x + (1 - m) * guess

    def _tensors(self, X: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        observed = ~np.isnan(X)
        scaled = np.where(observed, (X - self.low) / self.range, 0.0)
        return torch.tensor(scaled).float(), torch.tensor(observed).float()
