"""Fill the holes in a real table and show it before and after.

The table is the Palmer penguins: 344 birds measured in Antarctica, some of them incompletely.
Run it with ``make demo``.
"""

import time
from pathlib import Path

import pandas as pd
from palmerpenguins import load_penguins
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from grapefill import GrapeImputer
from grapefill.files.atomic import write_whole

OUTPUT = Path(__file__).parent.parent / "demo-output" / "penguins-filled.csv"
SHORT_NAMES = {
    "bill_length_mm": "bill length",
    "bill_depth_mm": "bill depth",
    "flipper_length_mm": "flipper",
    "body_mass_g": "mass",
}


def main() -> None:
    # The two tables side by side need room; a pipe or a log has no width of its own.
    console = Console(width=None if Console().is_terminal else 110, highlight=False)
    penguins = load_penguins()
    show_holes(console, penguins)

    console.print("\nFilling them ...")
    start = time.perf_counter()
    imputer = GrapeImputer(preset="fast", random_state=0, verbose=True)
    filled = imputer.fit_transform(penguins)
    seconds = time.perf_counter() - start

    show_before_and_after(console, penguins, filled)
    save(filled)
    holes = penguins.isna()
    console.print(f"\nFilled [bold]{holes.sum().sum()}[/] cells in [bold]{seconds:.1f}[/] seconds.")
    unchanged = penguins.equals(filled.mask(holes))
    console.print(
        "Checked: every cell that had a value is as it was."
        if unchanged
        else "[bold red]A cell that had a value was changed; please report this as a bug.[/]"
    )
    console.print(f"The filled table: [bold]{shown(OUTPUT)}[/]", soft_wrap=True)


def show_holes(console: Console, table: pd.DataFrame) -> None:
    rows, columns = table.shape
    holes = table.isna().sum()
    console.print("[bold]Palmer penguins[/]")
    console.print(
        f"{rows} rows, {columns} columns, {holes.sum()} empty cells "
        f"in {table.isna().any(axis=1).sum()} rows\n"
    )
    counts = Table("column", "kind", Column("empty cells", justify="right"), box=None)
    for name in table.columns:
        kind = "numbers" if pd.api.types.is_numeric_dtype(table[name]) else "categories"
        count = str(holes[name]) if holes[name] else "[dim]-[/]"
        counts.add_row(name, kind, count)
    console.print(counts)


def show_before_and_after(console: Console, before: pd.DataFrame, after: pd.DataFrame) -> None:
    """Print the rows that had holes, first as they were, then filled."""
    holes = before.isna()
    incomplete = holes.any(axis=1)
    touched = list(before.columns[holes.any()])

    table = Table(
        title="\nRows with holes, before → after", title_justify="left", title_style="bold"
    )
    table.add_column("row", justify="right", style="dim")
    table.add_column("species")
    for name in touched:
        table.add_column(SHORT_NAMES.get(name, name), justify="right")
    for row in before.index[incomplete]:
        cells = [
            filled_cell(after.at[row, name])
            if holes.at[row, name]
            else Text(as_text(before.at[row, name]), style="dim")
            for name in touched
        ]
        table.add_row(str(row), before.at[row, "species"], *cells)
    console.print(table)
    console.print("[dim]Lengths in millimetres, mass in grams.[/]")


def filled_cell(value: object) -> Text:
    # The arrow says "filled" where there is no colour.
    return Text.assemble(("? → ", "dim"), (as_text(value), "bold green"))


def as_text(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def save(table: pd.DataFrame) -> None:
    OUTPUT.parent.mkdir(exist_ok=True)
    with write_whole(OUTPUT, text=True) as file:
        table.to_csv(file, index=False)


def shown(path: Path) -> str:
    """Return the path as short as it can be from here."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


if __name__ == "__main__":
    main()
