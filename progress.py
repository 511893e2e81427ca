"""What a person sees: a live bar, coloured word diffs and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text as Styled

from .attacks.record import Record


class Bar:
    """A live bar with the success rate and the mean queries so far."""

    def __init__(self, console: Console, total: int) -> None:
        self._attacked = self._fooled = self._charged = self._errors = 0
        self._progress = Progress(
            TextColumn("attacking"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[so_far]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._progress.add_task("", total=total, so_far="")

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None) -> None:
        self._progress.stop()

    def __call__(self, record: Record) -> None:
        if record.status in ("fooled", "held"):
            self._attacked += 1
            self._charged += record.charged
            self._fooled += record.status == "fooled"
        self._errors += record.status == "error"
        so_far = "..."
        if self._attacked:
            so_far = f"{100 * self._fooled / self._attacked:.0f} % fooled, {self._charged / self._attacked:.1f} queries"
        if self._errors:
            so_far += f", {self._errors} errors"
        self._progress.update(self._task, advance=1, so_far=so_far)


def printable(text: str) -> str:
    """Control characters made visible, so that a text cannot steer the terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def diff(record: Record, labels: Sequence[str] = ()) -> Styled:
    """The original with each changed word struck out in red and its substitute in green."""

    def name(label: int | float | None) -> str:
        if isinstance(label, int) and 0 <= label < len(labels):
            return labels[label]
        return str(label)

    shown = Styled()
    shown.append(printable(f"{record.id}  {name(record.label_before)} -> {name(record.label_after)}"), "bold")
    shown.append(f"  {record.charged} queries, {len(record.changes)} of {record.n_words} words\n", "dim")
    for number, text in enumerate(record.text):
        at = 0
        for change in record.changes:
            if change.field == number:
                shown.append(printable(text[at : change.start]))
                shown.append(printable(change.before), "red strike")
                shown.append(" ")
                shown.append(printable(change.after), "bold green")
                at = change.start + len(change.before)
        shown.append(printable(text[at:]) + "\n")
    return shown


def show_summary(console: Console, summary: dict[str, Any], title: str) -> None:
    """The summary as a table of a few readable lines."""
    table = Table(title=Styled(printable(title)), show_header=False, title_justify="left", title_style="bold")
    table.add_column(style="dim")
    table.add_column(justify="right")

    def percent(name: str) -> str:
        return "-" if summary[name] is None else f"{summary[name]:.1f} %"

    def number(name: str, digits: int) -> str:
        return "-" if summary[name] is None else f"{summary[name]:.{digits}f}"

    table.add_row("texts", f"{summary['n']} ({summary['skipped']} wrong already, {summary['errors']} errors)")
    table.add_row("fooled", f"{summary['fooled']} of {summary['attacked']} attacked = {percent('success_rate')}")
    table.add_row("accuracy", f"{percent('original_accuracy')} -> {percent('after_attack_accuracy')}")
    middle, tail = number("charged_median", 0), number("charged_p95", 0)
    table.add_row("queries charged", f"mean {number('charged_mean', 1)}, median {middle}, 95 % {tail}")
    table.add_row("queries asked", f"mean {number('asked_mean', 1)} (as the peers count)")
    table.add_row("words changed", percent("perturbed_pct"))
    table.add_row("similarity", f"guide {number('similarity_mean', 3)}, judge {number('judged_mean', 3)}")
    calls = f"{summary['victim_calls']} calls, mean batch {number('mean_batch', 1)}, {summary['cached_total']} from cache"
    table.add_row("victim", calls)
    table.add_row("time", f"{summary['wall_s']:.1f} s, victim {summary['victim_s']:.1f} s; {summary['peak_rss_mb']:.0f} MB")
    console.print(table)


def show_parts(console: Console, title: str, rows: Iterable[tuple[str, ...]]) -> None:
    """A titled table without a frame."""
    table = Table(title=title, show_header=False, box=None, title_justify="left", title_style="bold", pad_edge=False)
    for row in rows:
        if not table.columns:
            for place in range(len(row)):
                table.add_column(style="cyan" if not place else None, no_wrap=not place, overflow="fold")
        table.add_row(*(Styled(cell) for cell in row))
    console.print(table)
    console.print()
