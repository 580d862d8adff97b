"""A read-only check as one would write it with sqlglot: cases on standard input, verdicts and CPU times on output.

Input is a JSON list of actions; output is a JSON list of [read_only, nanoseconds], in the same order.
"""

import json
import logging
import sys
import time

import sqlglot
from sqlglot import exp

ROUNDS = 5
DIALECTS = {"mssql": "tsql", "generic": None}
# More than most people would think of: whatever this version has a node for and is not a plain question.
WRITES = tuple(
    getattr(exp, name)
    for name in (
        "Insert Update Delete Merge Create Drop Alter AlterSession TruncateTable Command Copy LoadData Into Set Use "
        "Transaction Commit Rollback Grant Revoke Kill Pragma Attach Detach Analyze Cache Uncache Refresh Comment "
        "Export Execute ExecuteSql MultitableInserts Block IfBlock WhileBlock Declare Install Put Get"
    ).split()
)


def read_only(query: str, dialect: str | None) -> bool:
    try:
        statements = sqlglot.parse(query, dialect=dialect)
    except Exception:  # beside its own errors, some texts end in a RecursionError
        return False
    if len(statements) != 1 or statements[0] is None:
        return False
    return statements[0].find(*WRITES) is None


def main() -> None:
    logging.disable()  # it warns of every statement it keeps as a bare command
    answers = []
    actions = json.load(sys.stdin)
    for round_number in range(ROUNDS + 1):  # the first round only loads dialects
        for index, action in enumerate(actions):
            dialect = action.get("parameters", {}).get("dialect")
            dialect = DIALECTS.get(dialect, dialect)
            start = time.process_time_ns()
            verdict = read_only(action["query"], dialect)
            spent = time.process_time_ns() - start
            if round_number == 0:
                answers.append([verdict, None])
            elif answers[index][1] is None or spent < answers[index][1]:
                answers[index][1] = spent
    json.dump(answers, sys.stdout)


main()
