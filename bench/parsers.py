"""How much of the text, headings and tables of documents the parsers find, and what a file costs.

`--data FOLDER` holds for every format `FORMAT/sources/*` and the Markdown that they should become in
`FORMAT/groundtruth/**/NAME.md`. The files are read there and copied nowhere. Tokens are words and numbers in lower
case, without addresses, tags and placeholders of images; recall and precision are means over the files. The figures
say how alike two conversions are: no file has one right Markdown.
"""

import argparse
import sys
from pathlib import Path

from measure import Table, arguments
from parts.parsing import PARSERS, Mark, mark, parser, samples, totals


def rate(data: Path) -> dict[str, list[Mark]]:
    """The marks of every file, by format."""
    found: dict[str, list[Mark]] = {}
    for form in PARSERS:
        parse = parser(form)
        if parse is None or not (data / form / "sources").is_dir():
            continue
        files = samples(data, form)
        if files:
            mark(files[0], parse)  # what is imported and compiled once is not the file's cost
            found[form] = [mark(each, parse) for each in files]
    return found


def table(found: dict[str, list[Mark]]) -> Table:
    """A row for each format."""
    cells = [
        ["format", "files", "failed", "recall", "precision", "of all tokens", "headings", "tables", "CPU ms a file"]
    ]
    figures: dict[str, object] = {}
    for form, marks in found.items():
        sums = totals(marks)
        figures[form] = sums
        cells.append(
            [
                form,
                f"{sums['files']}",
                f"{sums['failed']}",
                f"{sums['recall']:.3f}",
                f"{sums['precision']:.3f}",
                f"{sums['recall_of_all']:.3f} / {sums['precision_of_all']:.3f}",
                f"{sums['headings']}/{sums['headings_expected']}",
                f"{sums['tables']}/{sums['tables_expected']}",
                f"{sums['cpu_ms']:.1f}",
            ]
        )
    return Table(
        name="parsers",
        title="How much of the text of documents the parsers find",
        cells=cells,
        figures=figures,
        notes=["Headings and tables: found / expected. A file that cannot be read counts as empty."],
        packages=["holdfast", "lxml", "selectolax", "pypdfium2", "markdown-it-py"],
    )


def main() -> None:
    """Measure, print, keep."""
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--data", type=Path)
    own.add_argument("--files", action="store_true")
    (mine, sys.argv[1:]) = own.parse_known_args()
    options = arguments(f"{__doc__}\n--files prints a line for every file.", seconds=0)
    if mine.data is None:
        print("parsers: skipped; it needs --data FOLDER with documents and their Markdown.")
        return
    found = rate(mine.data)
    if mine.files:
        for marks in found.values():
            for each in marks:
                scores = f"{each.recall:.3f} {each.precision:.3f} {each.headings} {each.tables}"
                print(f"{each.name:50} {scores} {each.error or ''}")
    table(found).publish(options.results)


if __name__ == "__main__":
    main()
