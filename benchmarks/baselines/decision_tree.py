r"""Decision tree that knows missing values (Breiman et al.: CART, 1984).

A node is split where the squares fall most, :math:`\max_{j, t} SS - SS_{x_j \le t} - SS_{x_j > t}`,
over rows that have column j. A row that lacks it goes where a *surrogate* split sends it: the split
of another column that agrees with the first one most often. R's rpart does that, with its
defaults, when R and rpart are installed (Debian: r-base-core, r-cran-rpart). Otherwise it is
scikit-learn's tree of like size, which sends rows with a hole to the side that fits better;
`implementation` says which it was.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

SCRIPT = """
folder <- commandArgs(trailingOnly = TRUE)[1]
read <- function(name) read.csv(file.path(folder, name), na.strings = "nan")
train <- read("train.csv")
classes <- commandArgs(trailingOnly = TRUE)[2] == "classes"
if (classes) train$y <- factor(train$y)
library(rpart)
tree <- rpart(y ~ ., data = train, method = if (classes) "class" else "anova")
said <- predict(tree, read("test.csv"), type = if (classes) "prob" else "vector")
write.table(said, file.path(folder, "said.csv"), sep = ",", row.names = FALSE, col.names = FALSE)
"""


def rpart_version() -> str | None:
    """Return the version of rpart, or None if it is not installed."""
    if shutil.which("Rscript") is None:
        return None
    words = 'cat(as.character(packageVersion("rpart")))'
    asked = subprocess.run(
        ["Rscript", "-e", words], capture_output=True, text=True, check=False, timeout=60
    )
    return asked.stdout if asked.returncode == 0 else None


class SurrogateTree:
    """A tree with surrogate splits, or scikit-learn's.

    Parameters
    ----------
    classes : bool
        Whether labels are classes.
    seed : int
        For scikit-learn's tree; rpart draws only for its own cross-validation.
    """

    def __init__(self, *, classes: bool, seed: int) -> None:
        self.classes = classes
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Remember the rows for rpart, or grow scikit-learn's tree."""
        version = rpart_version()
        self.implementation = f"rpart {version}" if version else "scikit-learn's tree"
        self.classes_ = np.unique(y)
        self.table = np.column_stack([X, y])
        if version is None:
            kind: Any = DecisionTreeClassifier if self.classes else DecisionTreeRegressor
            # rpart's limits, its cost of complexity being relative to that of the root.
            cost = 0.01 * (1 - self._shares().max() if self.classes else np.var(y))
            self.tree = kind(
                min_samples_split=20, min_samples_leaf=7, ccp_alpha=cost, random_state=self.seed
            ).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return labels that are numbers."""
        return self._ask_rpart(X)[:, 0] if not hasattr(self, "tree") else self.tree.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the chances of the classes."""
        return self._ask_rpart(X) if not hasattr(self, "tree") else self.tree.predict_proba(X)

    def _shares(self) -> np.ndarray:
        return np.unique(self.table[:, -1], return_counts=True)[1] / len(self.table)

    def _ask_rpart(self, X: np.ndarray) -> np.ndarray:
        names = [f"x{j}" for j in range(X.shape[1])]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for file, table, header in (
                ("train.csv", self.table, [*names, "y"]),
                ("test.csv", X, names),
            ):
                np.savetxt(
                    folder / file, table, delimiter=",", header=",".join(header), comments=""
                )
            (folder / "tree.R").write_text(SCRIPT)
            kind = "classes" if self.classes else "numbers"
            subprocess.run(
                ["Rscript", str(folder / "tree.R"), str(folder), kind],
                check=True,
                capture_output=True,
            )
            return np.loadtxt(folder / "said.csv", delimiter=",", ndmin=2)
