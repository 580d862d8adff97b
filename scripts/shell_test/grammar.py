"""What bash itself says about a line, without running it: whether it parses, and how bash prints what it understood."""

import concurrent.futures
import os
import re
import shutil
import subprocess

PER_PROCESS = 100
# Neither commands nor start files can be found: bash only reads here.
NOTHING = {'PATH': '/nonexistent', 'LC_ALL': 'C.UTF-8'}
BASH = shutil.which('bash') or '/bin/bash'
CHECKER = """while IFS= read -r -d '' line; do
  "$BASH" -n -c "$line" </dev/null >/dev/null 2>&1
  printf '%d\\n' "$?"
done"""
PRINTER = """n=0; while ((n < $1)); do declare -f "line$n"; printf '\\0'; ((n += 1)); done"""


def accepted(lines):
    """For each line: does `bash -n` accept it?"""
    def some(part):
        done = subprocess.run([BASH, '-c', CHECKER], input=b''.join(line.encode() + b'\0' for line in part),
                              capture_output=True, env=NOTHING, timeout=900, check=True)
        return [code == b'0' for code in done.stdout.split()]
    return in_parts(lines, some)


def reprinted(lines):
    """For each line: the same line as bash prints it; None where it does not parse as
    the body of a function.

    The line reaches bash as an exported function in the environment. Bash takes nothing but one whole function from
    there: a line that would close the function early is refused and not run.
    """
    def some(part):
        functions = {f'BASH_FUNC_line{n}%%': f'() {{\n{line}\n}}' for n, line in enumerate(part)}
        done = subprocess.run([BASH, '-c', PRINTER, 'printer', str(len(part))], env={**NOTHING, **functions},
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=900)
        texts = done.stdout.decode(errors='replace').split('\0')[:-1]
        if len(texts) == len(part):
            return [body(text) for text in texts]
        # One of them ended the shell that was reading it. Half by half the others are still heard.
        half = len(part) // 2
        return some(part[:half]) + some(part[half:]) if half else [None]
    return in_parts(lines, some)


def body(text):
    match = re.fullmatch(r'line\d+ \(\) *\n\{ *\n(.*)\n\} *\n?', text, re.DOTALL)
    # Bash prints the name it gave to a coprocess, though before a simple command it reads none there.
    return match and match.group(1).replace('coproc COPROC ', 'coproc ')


def in_parts(lines, work):
    parts = [lines[start:start + PER_PROCESS] for start in range(0, len(lines), PER_PROCESS)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        answers = [answer for part in pool.map(work, parts) for answer in part]
    assert len(answers) == len(lines)
    return answers
