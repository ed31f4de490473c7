"""One self-contained HTML page: what was filled, with what, and how far to trust it."""

from grapefill.report.page import make_report, write_report

__all__ = ["make_report", "write_report"]
