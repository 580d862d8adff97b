"""The lines: those of the conformance files, those made from harmless parts, and damaged ones that are never run."""

import glob
import json
import os
import random
import re
import shlex

# Lines with these are never run: they wait, speak with others, or write where no copy protects.
NOT_RUN = re.compile(
    r'\b(sleep|watch|yes|curl|wget|ssh|scp|nc|ping|dig|host|nslookup|telnet|ftp|kill|journalctl|systemctl|top)\b'
    r'|\btail\b[^|;]*(\s-[A-Za-z0-9]*[fF]|--follow|--retry)|>\s*/proc|/dev/(tcp|udp|urandom|random|zero)')

# %s is a whole command, %q the same as one quoted word.
AROUND = [
    '%s', '%s', '%s', '( %s )', '{ %s; }', '! %s', '%s || true', '%s && echo ok', '%s; echo $?', '%s 2>/dev/null',
    '%s >/dev/null', '%s &>/dev/null', '%s 2>&1', 'true && %s', 'false || %s', 'cd src; %s', '(cd docs && %s)',
    '%s & wait', 'if %s; then echo yes; else echo no; fi', 'if true; then\n  %s\nfi', 'while %s; do break; done',
    'until %s; do break; done', 'for i in 1 2; do %s; done', 'for x in a b\ndo\n%s\ndone',
    'for ((i=0; i<2; i++)); do %s; done', 'case x in x) %s ;; esac', 'case x in\n  y) : ;;\n  *) %s ;;\nesac',
    'f() { %s; }; f', 'function g { %s; }\ng', 'echo "$(%s)"', 'echo $(%s)', 'x=$(%s); echo "$x"',
    'x="$(%s)"\n[ -n "$x" ] && echo "${#x}"', 'cat <(%s)', 'diff <(%s) a', 'cat <<E\n$(%s)\nE', 'cat <<< "$(%s)"',
    'echo "${nosuch:-$(%s)}"', '[[ -n $(%s) ]] && echo some', 'bash -c %q', 'sh -c %q', 'eval %q',
    'timeout 3 bash -c %q', 'bash <<< %q', "bash <<'EOF'\n%s\nEOF", 'trap %q EXIT', 'set -e; %s',
    'set -o pipefail; %s', '%s # comment', '# comment\n%s', 'time %s', 'echo a; %s; echo b', '\n\n%s\n',
    '{\n%s\n} | cat', '%s |& cat', 'exec 2>&1; %s', 'LC_ALL=C; %s', 'local_name=1; %s',
    'mapfile -t m < <(%s); echo "${#m[@]}"', 'read -r v < <(%s); echo "${v:0:3}"',
    'find . -maxdepth 0 -exec bash -c %q \\;', 'env LC_ALL=C bash -c %q', 'command eval %q', 'coproc { %s; }; wait',
]
# Wrappers for a simple command only: they take words, not shell syntax.
BEFORE_WORDS = [
    'timeout 3', 'timeout -k 1 3', 'nice', 'nice -n 5', 'command', 'env', 'env LC_ALL=C', 'LC_ALL=C', 'TZ=UTC',
    'stdbuf -oL', 'exec', 'ionice -c3', 'command -p', 'env -u NOSUCH', 'nice timeout 3', 'time', 'time -p', '\\',
    'LANG=C LC_ALL=C', 'env -i', 'setsid -w',
]
# Tools whose every short option is tried, with a word that an option might take for a file to write.
OPTION_TOOLS = """
sort uniq cut head wc nl tac rev paste join comm column fold fmt expand pr od xxd hexdump base64 sha256sum md5sum
cksum strings file stat du df ls grep diff cmp jq tree date seq shuf numfmt realpath readlink basename dirname find
tr zcat unzip gzip zipinfo tsort factor id uname env printenv nproc ps iconv look ptx csplit split sum b2sum xz
bzip2 zstd dd tee nm size objdump readelf getconf locale lscpu lsblk findmnt who hostname tput ul colrm hd unexpand
sdiff diff3 git
""".split()
GIT_COMMANDS = """
log diff show status branch tag ls-files ls-tree blame grep reflog rev-parse rev-list cat-file describe remote
config shortlog for-each-ref show-ref diff-tree diff-index diff-files archive format-patch name-rev cherry bundle
fast-export merge-tree merge-base merge-file notes stash apply check-ignore check-attr count-objects fsck hash-
object show-branch var whatchanged range-diff worktree submodule symbolic-ref unpack-file stripspace interpret-
trailers mailinfo verify-pack column patch-id
""".split()


def listed(name):
    """The commands of a file of this folder, one in each row.

    `readers`: whole harmless commands over the project of place.py. `filters`: harmless at the end of a pipe.
    `of_data`: they read what nobody has seen and may take it for code; the most that code does is to make a file.
    `tricky`: they look like readers and change the project; they run only if the tool is fooled.
    """
    with open(os.path.join(os.path.dirname(__file__), f'{name}.txt'), encoding='utf-8') as file:
        return file.read().splitlines()


def conformance(folder):
    """Every line of the conformance files, and those of them that may be run if the tool agrees."""
    lines, may_run = [], []
    for path in sorted(glob.glob(os.path.join(folder, '*.jsonl'))):
        name = os.path.basename(path)
        with open(path, encoding='utf-8') as file:
            for row in map(json.loads, file):
                lines += [row[key] for key in ('cmd', 'base', 'wrapped') if key in row]
                harmless = name in ('harmless.jsonl', 'harmless2.jsonl', 'given.jsonl')
                if harmless and row.get('expect') == 'read_only':
                    may_run.append(row['cmd'])
    return lines, may_run


def generated(seed, count):
    """At least `count` different lines, all of harmless parts."""
    chance = random.Random(seed)
    readers, filters = listed('readers'), listed('filters')
    found = dict.fromkeys(readers + listed('of_data') + listed('tricky') + options(chance))
    target = len(found) + count
    while len(found) < target:
        line = command(chance, readers, filters)
        for _ in range(chance.choice((0, 1, 1, 1, 2))):
            # The end of a here-document stands alone on its line: nothing of the frame may follow there.
            document = '<<' in line and '\n' in line
            fit = [frame for frame in AROUND if not document or '%s\n' in frame or '%q' in frame]
            line = put_into(chance.choice(fit), line)
        found[line] = None
    return list(found)


def command(chance, readers, filters):
    """A command, perhaps behind a wrapper or with odd quotes, perhaps with filters behind it."""
    first = chance.choice(readers)
    if chance.random() < 0.25 and re.match(r'[a-z]', first):
        first = f'{chance.choice(BEFORE_WORDS)} {first}'.replace('\\ ', '\\')
    elif chance.random() < 0.15:
        word, _, rest = first.partition(' ')
        if word.isalpha() and len(word) > 1:
            odd = (f"'{word}'", f'"{word}"', f"$'{word}'", f"{word[0]}''{word[1:]}", f'{word[0]}\\\n{word[1:]}')
            first = f'{chance.choice(odd)} {rest}'.strip()
    return ' | '.join([first, *chance.choices(filters, k=chance.choice((0, 0, 1, 1, 2)))])


def meets_names(line):
    """Whether names of the folder can become words of the line, or its input."""
    return re.search(r'[*?]|xargs|\bls\b|find|ls-files|read', line) is not None


def put_into(frame, line):
    return frame.replace('%q', shlex.quote(line)) if '%q' in frame else frame.replace('%s', line)


def options(chance):
    """Every tool with every short option and a few shapes of what follows."""
    letters = 'abcdeghijklmnopqrstuvwxyzABCDEGHIJKLMNOPQRSTUVWXYZ0'
    shapes = ('%s -%s made f', '%s -%s f made', '%s -%smade f')
    tools = [tool for tool in OPTION_TOOLS if tool != 'git'] + [f'git {name}' for name in GIT_COMMANDS]
    every = [shape % (tool, letter) for tool in tools for letter in letters for shape in shapes]
    return chance.sample(every, 900)


def damaged(seed, lines, count):
    """Lines with a character or a word lost, doubled, swapped or put in; for the grammar alone, never run."""
    chance = random.Random(seed)
    marks = list(';&|<>(){}$`"\'\\#\n!*?[]~= ')
    marks += ['&&', '||', '<<', '>>', '$(', '((', '))', ';;', '<(', '${', "$'", ' do ', ' fi ', '<<E\n']
    found = {}
    while len(found) < count:
        line = chance.choice(lines)
        for _ in range(chance.choice((1, 1, 2, 3))):
            at = chance.randrange(len(line) + 1)
            kind = chance.randrange(4)
            if kind == 0:
                line = line[:at] + line[at + 1:]
            elif kind == 1:
                line = line[:at] + line[at:at + 1] * 2 + line[at + 1:]
            elif kind == 2:
                line = line[:at] + line[at + 1:at + 2] + line[at:at + 1] + line[at + 2:]
            else:
                line = line[:at] + chance.choice(marks) + line[at:]
        found[line] = None
    return list(found)
