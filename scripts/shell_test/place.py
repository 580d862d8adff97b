"""The place where lines are run: a small project to look at, its throw-away copies, and what may not change in them.

The place is hostile on purpose. Some files hold text that runs a command if it is ever evaluated, and a second
kind of copy also has names that look like options. Whatever those do, they can only leave a file in the copy.
"""

import functools
import gzip
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tarfile
import zipfile

# A user of our own: services run as the usual nobody, and what they leave behind is not ours to explain.
NOBODY = 64123
SECONDS_PER_LINE = 5
DRIVER = f"""ulimit -c 0 -f 4096; ulimit -u 2000; cd "$1" || exit
while IFS= read -r -d '' line; do
  timeout -k 1 {SECONDS_PER_LINE} bash -c "$line" </dev/null 2>&1
  printf '\\ncode %d\\n' "$?" >&2
done"""
# Evaluated as arithmetic or as the name of an array's element, this makes a file. Printed, it is only text.
EVALUATED = 'x[$(touch evaluated)]'

FILES = {
    'README.md': '# Title\n\nSome text, see https://example.com.\n\n## Usage\n\nTODO: write > this\n',
    'LICENSE': 'Do as you like.\n',
    'VERSION': '1.0\n',
    'Cargo.toml': '[package]\nname = "demo"\nversion = "1.2.3"\n\n[dependencies]\nserde = "1"\n',
    'package.json': '{"name": "demo", "version": "1.2.3", "scripts": {"test": "true"}, "dependencies": {}}\n',
    '.env.example': '# comment\nKEY=value\nOTHER=a=b\n',
    '.gitignore': 'target\n*.o\n',
    'f': f'foo bar 3\nalpha beta 12\n{EVALUATED}\nalpha beta 12\nERROR x 7\n',
    'g': 'one 1\ntwo 2\nthree 3\n',
    'a': 'alpha\nbeta\n',
    'b': 'beta\ngamma\n',
    'a.txt': 'b 2\na 1\nc 3\n',
    'b.txt': 'b 5\na 4\n',
    'nums': '1\n2\n3\n',
    'nums.txt': '10\n20\n30\n',
    'names': 'README.md\na.txt\nsrc\n',
    'evil': f'{EVALUATED}\n',
    'evil.csv': f'{EVALUATED},{EVALUATED}\n',
    'data.csv': 'name,size,kind\na,10,x\nb,20,y\n',
    'table.tsv': 'a\t1\tx\nb\t2\ty\n',
    'items.json': '[{"type": "a", "n": 1, "count": 9}, {"type": "b", "n": 2, "count": 3}]\n',
    'f.json': '{"a": 1, "b": {"c": [1, 2, 3]}}\n',
    'log': 'GET /a 200\nGET /b 404\nPOST /a 500\n',
    'app.log': '10:00 ERROR no\n10:01 WARN hm\n10:02 INFO ok\n',
    'empty.txt': '',
    'with space.txt': 'spaced\n',
    'fix.patch': '--- a/g\n+++ b/g\n@@ -1,3 +1,3 @@\n one 1\n-two 2\n+two 22\n three 3\n',
    'src/main.rs': 'fn main() {\n    println!("hi"); // TODO\n}\n',
    'src/lib.rs': 'pub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n\nmod tests {\n    fn t() {}\n}\n',
    'docs/guide.md': '# Guide\n\nfoo bar\n',
    'docs/deep/more.md': '# More\n',
    'tests/t.sh': '#!/bin/sh\necho hello\n',
    'odd/-rf': 'dash\n',
    'odd/$(touch evaluated)': 'dollar\n',
    'odd/--output=evaluated': 'option\n',
    'odd/a\nb': 'newline\n',
}
LINKS = {'link': 'README.md', 'dirlink': 'src', 'dangling': 'nosuch', 'docs/up': '../README.md'}
# Names that turn into options when a pattern or an unquoted word yields them.
OPTION_NAMES = ['-oevaluated.txt', '--output=evaluated.md', '-i', '-delete', '-exec', '--pre=touch', '-fevaluated']


def build(root):
    """Makes the project, a home and a folder for temporary files under `root`, and returns its path."""
    work = os.path.join(root, 'work')
    os.makedirs(work)
    for name, text in FILES.items():
        put(os.path.join(work, name), text.encode())
    for name, target in LINKS.items():
        os.symlink(target, os.path.join(work, name))
    os.chmod(os.path.join(work, 'tests/t.sh'), 0o755)
    for name, mode in (('a.tar', 'w'), ('a.tar.gz', 'w:gz'), ('a.tgz', 'w:gz')):
        with tarfile.open(os.path.join(work, name), mode) as archive:
            for member in ('src/main.rs', 'README.md'):
                archive.add(os.path.join(work, member), member)
    with zipfile.ZipFile(os.path.join(work, 'a.zip'), 'w') as archive:
        archive.writestr('in/zip.txt', 'zipped\n')
    with gzip.open(os.path.join(work, 'a.gz'), 'wb') as packed:
        packed.write(b'packed\nERROR\n')
    build_history(work)
    os.makedirs(os.path.join(root, 'home'))
    os.makedirs(os.path.join(root, 'tmp'))
    return root


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(data)


def build_history(work):
    """Three commits, a branch, a tag, a stash, one change and one new file; nothing of the caller's configuration."""
    who = {'GIT_CONFIG_NOSYSTEM': '1', 'HOME': work, 'PATH': os.environ['PATH'], 'GIT_AUTHOR_NAME': 'a',
           'GIT_AUTHOR_EMAIL': 'a@example.com', 'GIT_COMMITTER_NAME': 'a', 'GIT_COMMITTER_EMAIL': 'a@example.com'}

    def git(*words):
        subprocess.run(['git', '-C', work, *words], env=who, check=True, capture_output=True)

    git('-c', 'init.defaultBranch=main', 'init', '--template=')
    git('add', 'README.md', 'src', 'Cargo.toml')
    git('commit', '-m', 'first')
    git('add', 'docs', 'f', 'g', 'a.txt', '.gitignore')
    git('commit', '-m', 'second: fix')
    git('tag', '-a', 'v1.0.0', '-m', 'one')
    put(os.path.join(work, 'g'), b'one 1\ntwo 2\nthree 3\nfour 4\n')
    git('stash')
    git('branch', 'side', 'HEAD~1')
    git('add', 'tests', 'VERSION', 'package.json', 'data.csv')
    git('commit', '-m', 'third')
    git('remote', 'add', 'origin', 'https://example.invalid/demo.git')
    put(os.path.join(work, 'a.txt'), b'b 2\na 1\nc 3\nd 4\n')


class Copy:
    """One throw-away copy in which lines are run, as nobody where that is possible."""

    def __init__(self, template, path, option_names):
        self.template, self.path, self.option_names = template, path, option_names
        self.renew()

    def renew(self):
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(self.template, self.path, symlinks=True)
        if self.option_names:
            for name in OPTION_NAMES:
                put(os.path.join(self.path, 'work', name), EVALUATED.encode() + b'\n')
        if os.geteuid() == 0:
            for folder, folders, files in os.walk(self.path):
                for name in folders + files:
                    os.lchown(os.path.join(folder, name), NOBODY, NOBODY)
            os.chown(self.path, NOBODY, NOBODY)
        # Git's index holds times and places of files. Made right for this copy, reading has nothing to refresh.
        self.git('update-index', '-q', '--refresh')
        self.before, self.staged = self.look(), self.index()

    def look(self):
        """Everything about every file; of folders all but the time, because bash and git keep short-lived files."""
        seen = {}
        for folder, folders, files in os.walk(self.path):
            for name in folders + files:
                path = os.path.join(folder, name)
                info = os.lstat(path)
                entry = [info.st_mode, info.st_uid]
                if stat.S_ISREG(info.st_mode):
                    with open(path, 'rb') as file:
                        entry += [info.st_mtime_ns, hashlib.sha256(file.read()).hexdigest()]
                elif stat.S_ISLNK(info.st_mode):
                    entry.append(os.readlink(path))
                seen[os.path.relpath(path, self.path)] = entry
        for folder in ('/tmp', '/var/tmp', '/dev/shm'):
            seen.update(left_by_nobody(folder))
        return seen

    def run(self, lines):
        """Runs the lines one after another and returns their exit codes (124: out of time)."""
        list_path, codes_path = self.path + '.lines', self.path + '.codes'
        put(list_path, b''.join(line.encode() + b'\0' for line in lines))
        # Output goes through a pipe: some readers look, and do less when it is /dev/null.
        with open(list_path, 'rb') as source, open(codes_path, 'wb') as codes:
            sink = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            try:
                subprocess.run([*unprivileged(), 'bash', '-c', DRIVER, 'driver', os.path.join(self.path, 'work')],
                               env=environment(self.path), stdin=source, stdout=sink.stdin, stderr=codes,
                               start_new_session=True, timeout=(SECONDS_PER_LINE + 2) * len(lines) + 30)
            finally:
                sink.stdin.close()
                sink.wait()
        with open(codes_path) as codes:
            found = [int(word) for word in re.findall(r'^code (\d+)$', codes.read(), re.MULTILINE)]
        if len(found) != len(lines):
            raise SystemExit(f'only {len(found)} of {len(lines)} lines were run')
        return found

    def index(self):
        """What git's index says, without the times and places it remembers of files."""
        done = self.git('ls-files', '--stage', '-v')
        return done.returncode, done.stdout

    def git(self, *words):
        return subprocess.run([*unprivileged(), 'git', *words], cwd=os.path.join(self.path, 'work'),
                              env=environment(self.path), capture_output=True)

    def changes(self):
        """The names of what is not as it was."""
        after = self.look()
        names = {name for name in self.before.keys() | after.keys() if self.before.get(name) != after.get(name)}
        if 'work/.git/index' in names and self.index() == self.staged:
            names.remove('work/.git/index')
        return sorted(names)


def left_by_nobody(folder):
    """What the unprivileged user owns in a folder everybody may write to."""
    if os.geteuid() != 0 or not os.path.isdir(folder):
        return {}
    with os.scandir(folder) as entries:
        return {entry.path: 'left behind' for entry in entries
                if entry.stat(follow_symlinks=False).st_uid == NOBODY}


def environment(path):
    return {'PATH': '/usr/bin:/bin', 'HOME': os.path.join(path, 'home'), 'TMPDIR': os.path.join(path, 'tmp'),
            'LC_ALL': 'C.UTF-8', 'TERM': 'dumb', 'GIT_OPTIONAL_LOCKS': '0', 'GIT_CONFIG_NOSYSTEM': '1',
            'GIT_TERMINAL_PROMPT': '0'}


@functools.cache
def unprivileged():
    """The words before a command that take away rights and the network; none for somebody who has no rights anyway."""
    if os.geteuid() != 0:
        return []
    offline = ['unshare', '-n']
    if subprocess.run([*offline, 'true'], capture_output=True).returncode != 0:
        offline = []
    return [*offline, 'setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups']
