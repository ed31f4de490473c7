"""``python -m grapefill``."""

from grapefill.cli.main import run

if __name__ == "__main__":
    run()
