"""Tables of the READMEs from the records behind them: `python -m scrimp.benchmarks.tables` writes them anew.

A table stands between `<!-- table KIND RECORD ... -->` and `<!-- end -->`. Of its options, rows=a;b keeps rows by their cells,
any of which may match, and columns=a;b keeps columns by their headings, or renames them with old>new.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import ablation, compare, defences, hard_label, thesis, victims
from .compare import MEASURED
from .peers import report

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "README.md", ROOT / "benchmarks" / "README.md"
BLOCK = re.compile(r"<!-- table (\S+) (\S+?)( [^\n]*?)? -->\n.*?<!-- end -->\n", re.S)


def lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))


def throughput(record: dict[str, Any]) -> str:
    """What spaces, encoders and hashing do in a second."""
    rows = [(f"space `{name}`", f"{rate:.1f}") for name, rate in record["grids_per_second"].items()]
    rows += [
        (f"encoder `{name}`, short / long", " / ".join(f"{rate:.1f}" for rate in rates.values()))
        for name, rates in record["texts_per_second"].items()
    ]
    rows += [(f"`{name}`", f"{rate:,.0f}") for name, rate in record["candidates_per_second"].items()]
    return lines(("part", "per second"), rows)


def speeds(record: dict[str, Any]) -> str:
    """Texts per second of victims, by the kind of text and the size of a call."""
    rows, sizes = [], dict[str, None]()
    for victim, found in record["texts_per_second"].items():
        kinds = {kind: ways for kind, ways in found.items() if isinstance(ways, dict)}  # beside the load of the machine
        for way in dict.fromkeys(way for ways in kinds.values() for way in ways):
            rates = {f"{kind}: {n}": rate for kind, ways in kinds.items() for n, rate in ways.get(way, {}).items()}
            sizes |= dict.fromkeys(rates)
            rows.append((victim, way, rates))
    made = [
        [victim, way, *(f"{rates[size]:.0f}" if size in rates else "-" for size in sizes)] for victim, way, rates in rows
    ]
    return lines(["victim", "how", *sizes], made)


def hard_labels(record: list[dict[str, Any]]) -> str:
    """One table a victim."""
    return "\n\n".join(hard_label.table(entry) for entry in record)


KINDS: dict[str, Callable[[Any], str]] = {
    "compare": compare.markdown,
    "thesis": thesis.markdown,
    "ablation": ablation.markdown,
    "hard-label": hard_labels,
    "victims": victims.table,
    "speeds": speeds,
    "defences": defences.markdown,
    "throughput": throughput,
    "peers": report.markdown,
}


def pick(table: str, rows: Sequence[str], columns: Sequence[str]) -> str:
    """The rows and columns asked for, in the table's own order of rows and the given order of columns."""
    head, _, *body = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines() if "|" in line)
    renamed = {column.split(">")[0]: column.split(">")[-1] for column in columns or head}
    if unknown := [column for column in renamed if column not in head]:
        raise ValueError(f"no column {', '.join(unknown)}; there are {', '.join(head)}")
    kept = [cells for cells in body if not rows or any(cell.strip("`") in rows or cell in rows for cell in cells)]
    places = [head.index(column) for column in renamed]
    return lines(list(renamed.values()), [[cells[place] for place in places] for cells in kept])


def fill(page: str, measured: Path = MEASURED) -> str:
    """The page with every table made from its record."""

    def made(found: re.Match[str]) -> str:
        kind, name, options = found[1], found[2], found[3] or ""
        if kind not in KINDS:
            raise ValueError(f"no kind of table {kind!r}; there are {', '.join(KINDS)}")
        table = KINDS[kind](json.loads((measured / name).read_text()))
        chosen = {key: value.split(";") for key, value in re.findall(r"(rows|columns)=(.+?)(?= rows=| columns=|$)", options)}
        if chosen:
            table = pick(table, chosen.get("rows", []), chosen.get("columns", []))
        return f"<!-- table {kind} {name}{options} -->\n{table.strip()}\n<!-- end -->\n"

    return BLOCK.sub(made, page)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; end with 1 if a table is not its record's")
    args = parser.parse_args(arguments)
    stale = False
    for path in PAGES:
        old = path.read_text()
        new = fill(old)
        stale = stale or new != old
        if new != old and not args.check:
            path.write_text(new)
        if new != old:
            print(f"{path.name}: {'differs from its records' if args.check else 'written anew'}", file=sys.stderr)
    sys.exit(int(args.check and stale))


if __name__ == "__main__":
    main()
