#!/usr/bin/env python3
"""Holds a figure to its limit in benches/limits.toml.

    benches/limits.py ID FIGURE    says whether it is kept; ends with 1 if not
    benches/limits.py               the table of docs/benchmarks.md

Benchmarks in Python import it (`load`, `judge`), those in Rust read the file themselves.
"""
import pathlib
import sys
import tomllib

FILE = pathlib.Path(__file__).resolve().with_name("limits.toml")


def load():
    return tomllib.loads(FILE.read_text())


def keeps(limit, figure):
    return figure <= limit["at_most"] if "at_most" in limit else figure >= limit["at_least"]


def shown(number):
    return f"{number:,.3f}".rstrip("0").rstrip(".") if number < 1000 else f"{number:,.0f}"


def bound(limit):
    word = "at most" if "at_most" in limit else "at least"
    return f"{word} {shown(limit.get('at_most', limit.get('at_least')))}{limit['unit']}"


def judge(name, figure):
    """Whether a figure is within its limit; one that is not is told on standard error."""
    limit = load()[name]
    if keeps(limit, figure):
        return True
    print(f"missed: {limit['what']}: {shown(figure)}{limit['unit']}, {bound(limit)}", file=sys.stderr)
    return False


def table():
    print("| limit | measured by | at | last figure |\n|---|---|---|---|")
    for limit in load().values():
        figure = "not measured yet"
        if "figure" in limit:
            figure = f"{shown(limit['figure'])}{limit['unit']}"
            figure += "" if keeps(limit, limit["figure"]) else ", **missed**"
        print(f"| {limit['what']} | `{limit['by']}` | {bound(limit)} | {figure} |")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(0 if judge(sys.argv[1], float(sys.argv[2])) else 1)
    table()
