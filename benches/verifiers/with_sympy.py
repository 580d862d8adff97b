"""A check of claims as one would write it with SymPy: a JSON action a line in, [confirmed, nanoseconds] a line out.

SymPy evaluates the text it parses, as Python. So this runs as a child with limits, whoever started it ends it when it
takes too long, and texts that reach for Python itself are not handed to it (see `compare`).
"""

import json
import re
import resource
import sys
import time
from fractions import Fraction

from sympy import Rational, simplify
from sympy.parsing.sympy_parser import (
    convert_xor,
    implicit_multiplication,
    parse_expr,
    rationalize,
    standard_transformations,
)

# Decimals become fractions: without that, 0.1 + 0.2 is not 0.3.
HOW = (*standard_transformations, convert_xor, implicit_multiplication, rationalize)
RELATION = re.compile(r"<=|>=|!=|≤|≥|≠|=|<|>")
HOLDS = {
    "=": lambda a, b: simplify(a - b) == 0,
    "!=": lambda a, b: simplify(a - b).is_nonzero is True,
    "<": lambda a, b: bool(simplify(a < b)),
    ">": lambda a, b: bool(simplify(a > b)),
    "<=": lambda a, b: bool(simplify(a <= b)),
    ">=": lambda a, b: bool(simplify(a >= b)),
}
SIGNS = {"≤": "<=", "≥": ">=", "≠": "!="}


def confirms(action: dict) -> bool:
    text = action["query"]
    claimed = action.get("parameters", {}).get("expected")
    if claimed is not None:
        text = f"{text} = {claimed}"
    sides = [parse_expr(side, transformations=HOW) for side in RELATION.split(text)]
    relations = [SIGNS.get(sign, sign) for sign in RELATION.findall(text)]
    if not relations:  # a bare expression: that it has a value
        value = simplify(sides[0])
        value_wanted = action.get("value")
        if value_wanted is not None:
            wanted = Fraction(value_wanted)
            return value == Rational(wanted.numerator, wanted.denominator)
        return bool(value.is_number and value.is_finite)
    return all(HOLDS[sign](*pair) for sign, pair in zip(relations, zip(sides, sides[1:])))


def main() -> None:
    for expression in ("3*x + 1 = x + 2*x + 1", "sqrt(7) < 3", "12/5 = 2.4", "(u + 1)^2 = u^2 + 2*u + 1"):
        confirms({"query": expression})  # what is imported on first use is not charged to a case
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("ready", flush=True)
    for line in sys.stdin:
        action = json.loads(line)
        start = time.process_time_ns()
        try:
            confirmed = confirms(action)
        except Exception:  # whatever text it cannot read ends in an exception of some kind
            confirmed = None
        print(json.dumps([confirmed, time.process_time_ns() - start]), flush=True)


main()
