"""Figures of the paper (You et al., NeurIPS 2020), to be shown beside ours."""

from __future__ import annotations

from benchmarks.data import UCI


def _row(*figures: float) -> dict[str, float]:
    return dict(zip(UCI, figures, strict=True))


# MAE of feature imputation at 30% missing (figure 2 above, and the appendix).
IMPUTATION = {
    "mean": _row(0.179, 0.310, 0.185, 0.250, 0.231, 0.168, 0.091, 0.098, 0.209),
    "knn": _row(0.116, 0.181, 0.095, 0.277, 0.010, 0.138, 0.058, 0.072, 0.167),
    "mice, 3 rounds": _row(0.134, 0.153, 0.116, 0.250, 0.020, 0.116, 0.033, 0.077, 0.168),
    "missmda": _row(0.190, 0.225, 0.142, 0.285, 0.038, 0.215, 0.068, 0.090, 0.226),
    "miwae": _row(0.156, 0.153, 0.098, 0.262, 0.020, 0.117, 0.042, 0.087, 0.224),
    "grapefill paper": _row(0.090, 0.136, 0.075, 0.249, 0.008, 0.102, 0.027, 0.063, 0.151),
}
# MAE of labels at 30% missing, from the ablation.
LABELS = {
    "grapefill paper": _row(7.88, 1.65, 3.39, 0.163, 0.007, 4.61, 4.23, 0.535, 4.72),
    "grapefill paper, batches, then linear": _row(
        9.36, 2.59, 3.80, 0.181, 0.004, 4.80, 4.48, 0.524, 9.02
    ),
}
ABLATION = {
    "grapefill paper, batches": IMPUTATION["grapefill paper"],
    "grapefill paper, batches, no edge dropout": _row(
        0.171, 0.148, 0.104, 0.262, 0.021, 0.192, 0.047, 0.094, 0.204
    ),
    "grapefill paper, batches, sum": _row(
        0.094, 0.143, 0.078, 0.277, 0.024, 0.134, 0.040, 0.069, 0.154
    ),
    "grapefill paper, batches, max": _row(
        0.088, 0.142, 0.074, 0.252, 0.006, 0.102, 0.024, 0.063, 0.153
    ),
}
LABEL_ABLATION = {
    "grapefill paper, batches": LABELS["grapefill paper"],
    "grapefill paper, batches, then linear": LABELS["grapefill paper, batches, then linear"],
}
# Seconds at test time, on the authors' machine.
TIME = {
    "mean": _row(0.000806, 0.000922, 0.000942, 0.00242, 0.00596, 0.00147, 0.0127, 0.00121, 0.00064),
    "knn": _row(0.225, 0.134, 0.0913, 9.95, 30.1, 11.4, 656, 0.504, 0.0268),
    "mice, 3 rounds": _row(0.0294, 0.0311, 0.0499, 0.0749, 0.256, 0.0249, 0.271, 0.0531, 0.027),
    "svd": _row(0.0659, 0.0192, 0.0359, 0.162, 0.0612, 0.142, 0.593, 0.0564, 0.0412),
    "spectral": _row(0.0718, 0.0565, 0.0541, 0.268, 0.405, 0.199, 1.63, 0.0978, 0.0311),
    "gain": _row(0.0119, 0.0125, 0.0131, 0.017, 0.0298, 0.0146, 0.0457, 0.0131, 0.0116),
    "grapefill paper": _row(0.0263, 0.011, 0.0115, 0.0874, 0.259, 0.0488, 0.568, 0.0199, 0.00438),
}
# RMSE; "best" is the lowest that was published without side information.
RATINGS = {
    "grape, discrete": {"flixster": 0.899, "douban": 0.733, "yahoo_music": 19.4},
    "gc-mc": {"flixster": 0.917, "douban": 0.734, "yahoo_music": 20.5},
    "igmc": {"flixster": 0.872, "douban": 0.721, "yahoo_music": 19.1},
}
