"""More than two hundred real commands, and the project they run in."""

import io
import json
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

FIXED = 1_700_000_000
"""The time of every file in the project: archives and compiled files contain it."""
_GIT = "git -c user.name=t -c user.email=t@example.org -c gc.auto=0 -c maintenance.auto=false"
_DATES = f"export GIT_AUTHOR_DATE={FIXED}+0000 GIT_COMMITTER_DATE={FIXED}+0000"
_TAR = f"tar --sort=name --mtime=@{FIXED} --owner=0 --group=0 --numeric-owner"


def _files() -> list[str]:
    """Single files: written, removed, replaced, renamed, in every order that programs use."""
    found = []
    for name in ("notes.txt", "src/a.c", "pkg/mod.py", "data.bin", "marked"):
        found += [
            f"echo more >> {name}", f"rm {name}", f": > {name}", f"cp {name} {name}.bak", f"mv {name} {name}.old",
            f"echo new > {name}.tmp && mv {name}.tmp {name}", f"chmod 600 {name}", f"chmod 777 {name}; chmod 444 {name}",
            f"touch -d @1600000000 {name}", f"truncate -s 3 {name}", f"rm {name} && mkdir {name} && echo x > {name}/in",
            f"ln -sfn nowhere {name}", f"cp {name} c && rm {name} && mv c {name}", f"mv {name} links/ && ln -s links {name}",
        ]  # fmt: skip
    return found


def _folders() -> list[str]:
    found = []
    for name in ("src", "pkg", "deep"):
        found += [
            f"rm -rf {name}", f"mv {name} moved", f"cp -a {name} copy", f"cp -a {name} copy && rm -r {name} && mv copy {name}",
            f"rm -r {name} && mkdir {name} && echo x > {name}/only", f"rm -r {name} && echo file > {name}",
            f"chmod -R go-rwx {name}", f"find {name} -type f -delete", f"find {name} -type f -exec touch -d @1500000000 {{}} +",
            f"mkdir -p {name}/a/b/c && mv {name}/a {name}/z", f"{_TAR} -cf {name}.tar {name} && rm -r {name} && tar xf {name}.tar",
        ]  # fmt: skip
    return found


def _links() -> list[str]:
    return [
        "for n in $(seq 1 60); do ln -s ../notes.txt links/farm$n; done",
        "for n in $(seq 1 20); do ln -s farm$((n+1)) links/farm$n; done",
        "ln -s /etc/passwd links/out; ln -s ../../.. links/up", "ln -sfn ../src links/old; ls links/old > /dev/null",
        "rm links/old", "cp -P links/old links/copy; cp -L links/old real", "mv links farm && ln -s farm links",
        "ln -s loop loop", "cd links && ln -s . here", "find . -type l -delete",
    ]  # fmt: skip


def _texts() -> list[str]:
    return [
        "sed -i s/one/ONE/ notes.txt", "sed -i.bak s/one/ONE/ notes.txt src/a.c", "sed -i '/two/d' notes.txt",
        "perl -pi -e 's/t/T/g' notes.txt pkg/mod.py", "awk '{print NR, $0}' notes.txt > numbered && mv numbered notes.txt",
        "sort -o notes.txt notes.txt", "tr a-z A-Z < notes.txt > upper", "printf '1d\\nw\\nq\\n' | ed -s notes.txt",
        "diff -u notes.txt src/a.c > d.patch; patch -s notes.txt < d.patch", "patch -p1 -s < fix.patch",
        "patch -p1 -s -b < fix.patch; patch -p1 -R -s < fix.patch", "split -b 100 data.bin part-; cat part-* > whole; rm part-*",
        "printf 'a\\r\\nb' > crlf; printf '\\377\\376' > bytes; mkdir -p 'a b/ü'; echo x > 'a b/ü/-n'",
        "tee one two three < notes.txt > /dev/null", "dd if=/dev/zero of=zeros bs=1k count=3 2>/dev/null",
        "truncate -s 1M sparse; printf x | dd of=sparse bs=1 seek=500000 conv=notrunc 2>/dev/null",
        "printf Z | dd of=data.bin bs=1 seek=7 conv=notrunc 2>/dev/null; touch -d @1700000000 data.bin",
        "for n in $(seq 1 300); do echo $n > many-$n; done", "head -c 300000 /dev/zero | tr '\\0' x > large",
        "python3 -c \"import os; os.setxattr('notes.txt', 'user.mark', b'1')\"",
        "python3 -c \"import os; os.setxattr('marked', 'user.mark', b'2')\"", "cp --preserve=all marked marked2; rm marked",
        "python3 -c \"import os; os.removexattr('marked', 'user.mark')\"", "rm -f nothing; true", "mkdir empty; rmdir empty",
        "mkdir -m 711 mode; mkdir -m 1777 sticky", "umask 077; echo x > private; mkdir private.d",
    ]  # fmt: skip


def _metadata() -> list[str]:
    """Hard links, times and attributes of files, folders and links, holes."""
    python = 'python3 -c "import os; {}"'
    return [
        "ln notes.txt hard", "ln src/a.c one; ln one two; echo x >> two", "echo x > a; ln a b; ln b src/c; rm a", "cp -al deep farm",
        "mkdir new && echo x > new/a && ln new/a new/b && ln new/a outside-of-new", "ln notes.txt hard && rm notes.txt",
        "cp -al src s2 && sed -i s/one/1/ s2/a.c", "mkdir h && for n in $(seq 1 40); do echo $n > h/$n; ln h/$n h/l$n; done",
        "mkdir q; echo x > q/a; ln q/a q/b; tar -cf q.tar q; rm -r q; tar xf q.tar; rm q.tar", "stat -c %a . src notes.txt > modes",
        "touch -d @1500000000 src", "touch -d @1500000000 deep/a deep", "chmod 700 pkg; touch -d @1400000000 pkg", "touch -d @2000000000 src",
        "touch -h -d @1300000000 links/old", "touch -r notes.txt src/a.c; touch -d @1250000000.123456789 data.bin",
        "mkdir -p t/u && echo x > t/u/f && touch -d @1100000000 t/u/f t/u t", "cp -a deep deep2 && touch -r deep deep2",
        "echo x > src/new; touch -d @1500000000 src", "rm src/a.c; touch -d @1500000000 src; chmod 711 src",
        python.format("os.setxattr('src', 'user.folder', b'1')"), python.format("os.mkdir('n'); os.setxattr('n', 'user.folder', b'2')"),
        python.format("os.setxattr('pkg', 'user.a', b''); os.setxattr('pkg/mod.py', 'user.b', bytes(range(200)))"),
        "truncate -s 64M holes", "truncate -s 8M h; printf x | dd of=h bs=1 seek=5000000 conv=notrunc 2>/dev/null; cp --sparse=always h h2",
        "chmod 2755 src 2>/dev/null; chmod 755 src", "chmod 000 data.bin; chmod 644 data.bin",
        "mv src/a.c a.c; mv a.c src/a.c", "mv notes.txt x; mv src/a.c notes.txt; mv x src/a.c", "mv deep/a/one deep/one; mv deep d2; mv d2 deep",
    ]  # fmt: skip


def _archives() -> list[str]:
    return [
        f"{_TAR} -cf all.tar src pkg notes.txt", f"{_TAR} -czf all.tgz deep && mkdir out && tar xzf all.tgz -C out",
        "gzip -nk notes.txt; gzip -n data.bin", "bzip2 -k notes.txt", "xz -k notes.txt", "zstd -q notes.txt",
        "TZ=UTC zip -qrX a.zip src pkg", "unzip -q vendor.zip", "unzip -qo vendor.zip -d src", "tar xf vendor.tar",
        "tar xf vendor.tar --strip-components=1 -C src", "find src pkg -type f -print0 | sort -z | xargs -0 cat > all.txt",
        "python3 -m zipfile -e vendor.zip out", "python3 -m tarfile -e vendor.tar out",
        "python3 -c \"import shutil; shutil.copytree('deep', 'copy'); shutil.rmtree('deep')\"",
    ]  # fmt: skip


def _builds() -> list[str]:
    return [
        "cc -o prog src/a.c && ./prog > out.txt", "cc -g0 -c src/a.c -o a.o && ar rcsD liba.a a.o && rm a.o", "make -s",
        "make -s -j2 all && make -s clean", "make -s all && touch -d @1700000001 src/a.c && make -s all",
        "cc -MMD -c src/a.c -o a.o", "cc -E src/a.c > a.i", "cc -S src/a.c && cc -c a.s",
        "python3 -m compileall -q pkg", "python3 -c 'import pkg.mod'", "python3 -m unittest -q pkg.test_mod",
        "python3 -m venv --without-pip env && env/bin/python -c 'print(1)' > ran", "python3 pkg/gen.py",
        "python3 -m py_compile pkg/mod.py && rm -r pkg/__pycache__", "node -e \"require('fs').writeFileSync('n.json', '{}')\"",
        "python3 -m zipfile -e wheels/tiny-1.0-py3-none-any.whl lib && PYTHONPATH=lib python3 -Bc 'import tiny'",
        "mkdir lib && cd lib && unzip -q ../wheels/tiny-1.0-py3-none-any.whl && cd .. && rm -r lib/tiny-1.0.dist-info",
        "python3 -m venv env --without-pip && unzip -q wheels/*.whl -d env/lib && env/bin/python -c 'print(2)' > ran",
        "cd web && npm ci --offline --silent", "cd web && npm install --offline --silent ./dep.tgz",
        "cd web && npm ci --offline --silent && npm run --silent build", "cd web && npm ci --offline --silent && rm -rf node_modules",
        "cd web && npm pkg set version=2.0.0 --silent", "cd web && npm pack --silent --offline > /dev/null && tar xzf web-1.0.0.tgz",
        "sqlite3 db.sqlite 'create table t(a); insert into t values (1)' 2>/dev/null || echo none > db.sqlite",
        "python3 -c \"import sqlite3; c=sqlite3.connect('d.db'); c.execute('create table t(a)'); c.commit()\"",
    ]  # fmt: skip


def _git() -> list[str]:
    lines = [
        "echo x >> notes.txt; $G reset -q --hard", "rm -r src; $G checkout -q -- src", "$G rm -qr deep", "$G mv notes.txt n.txt",
        "echo x > new; $G add new; $G commit -qm new", "$G checkout -qb other; echo y >> notes.txt; $G commit -qam y",
        "$G stash -q; true", "echo z >> notes.txt; $G stash -q; $G stash pop -q", "$G clean -qfdx", "$G revert --no-edit HEAD -n",
        "$G tag v1; $G branch b", "$G archive --format=tar HEAD -o h.tar", "$G apply fix.patch", "$G config x.y z",
        "$G checkout -q HEAD~1", "$G reset -q --hard HEAD~1; $G reset -q --hard ORIG_HEAD", "$G gc -q --prune=now",
        "$G worktree add -q wt HEAD~1 2>/dev/null; true", "$G format-patch -q -1 && rm *.patch",
    ]  # fmt: skip
    return [f"{_DATES}; {line.replace('$G', _GIT)}" for line in lines]


def _several() -> list[str]:
    """Several of these in one command."""
    return [
        "mv src moved && mkdir src && cp -a moved/inner src/", "mkdir d; mv notes.txt d/notes.txt; mv d/notes.txt d/other.txt",
        "rm -r src/inner; echo file > src/inner", "mv notes.txt src/a.c; mv data.bin renamed.bin",
        "find . -name '*.txt' -delete; find src -type f -exec touch -d 2020-01-01 {} +",
        "touch -d 2001-02-03 notes.txt; touch new-empty; truncate -s 10 data.bin",
        "cp -a src copy; rm -r copy/inner; sort -o notes.txt notes.txt; dd if=/dev/zero of=zeros bs=1k count=3 2>/dev/null",
        f"{_TAR} -cf all.tar src notes.txt && rm -r src && mkdir again && tar xf all.tar -C again",
    ]  # fmt: skip


COMMANDS = [
    *_files(), *_folders(), *_links(), *_texts(), *_metadata(), *_archives(), *_builds(), *_git(), *_several(),
]  # fmt: skip
SHORT = COMMANDS[2::9]
"""Every ninth, of every kind."""


def fill(root: Path) -> None:
    """The project: sources in C, Python and JavaScript, archives, links, attributes, and a repository around them."""
    for folder in ("src/inner", "pkg", "links", "deep/a/b/c", "wheels", "web"):
        (root / folder).mkdir(parents=True)
    texts = {
        "notes.txt": "one\ntwo\nthree\n", "src/a.c": "/* one */\nint main(void) { return 0; }\n", "src/inner/b.h": "#define B 1\n",
        "pkg/__init__.py": "", "pkg/mod.py": "import os\n\nVALUE = 1\n", "deep/a/b/c/leaf": "leaf\n", "deep/a/one": "1\n",
        "pkg/test_mod.py": "import unittest\nfrom pkg import mod\nclass T(unittest.TestCase):\n    def test(self):\n"
        "        open('.cache-of-tests', 'w').write(str(mod.VALUE))\n",
        "pkg/gen.py": "for n in range(5):\n    open(f'gen{n}.py', 'w').write(f'V = {n}\\n')\n", "marked": "marked\n",
        "Makefile": "all: prog\nprog: src/a.c\n\tmkdir -p build\n\tcc -c -o build/a.o src/a.c\n\tcc -o prog build/a.o\n"
        "clean:\n\trm -rf build prog\n.PHONY: all clean\n",
        "fix.patch": "--- a/notes.txt\n+++ b/notes.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
    }  # fmt: skip
    for name, text in texts.items():
        (root / name).write_text(text)
    (root / "data.bin").write_bytes(bytes(range(256)) * 4)
    (root / "links/old").symlink_to("../notes.txt")
    os.setxattr(root / "marked", "user.mark", b"1")
    _fill_archives(root)
    _fill_web(root / "web")
    _settle(root)
    _make_repository(root)


def _fill_archives(root: Path) -> None:
    with tarfile.open(root / "vendor.tar", "w") as tar, zipfile.ZipFile(root / "vendor.zip", "w") as zipped:
        for name, content in (("vendor/x.txt", b"x\n"), ("vendor/run.sh", b"#!/bin/sh\n")):
            about = tarfile.TarInfo(name)
            about.size, about.mtime, about.mode = len(content), FIXED, 0o755 if name.endswith("sh") else 0o644
            tar.addfile(about, io.BytesIO(content))
            zipped.writestr(zipfile.ZipInfo(name, (2023, 11, 14, 0, 0, 0)), content)
    with zipfile.ZipFile(root / "wheels/tiny-1.0-py3-none-any.whl", "w") as wheel:
        parts = {
            "tiny.py": "X = 1\n",
            "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
            "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "tiny-1.0.dist-info/RECORD": "",
        }
        for name, text in parts.items():
            wheel.writestr(zipfile.ZipInfo(name, (2023, 11, 14, 0, 0, 0)), text)


def _fill_web(web: Path) -> None:
    with tarfile.open(web / "dep.tgz", "w:gz") as tar:
        for name, value in (("package/package.json", {"name": "dep", "version": "1.0.0"}), ("package/index.js", None)):
            text = (json.dumps(value) if value else "module.exports = 1\n").encode()
            about = tarfile.TarInfo(name)
            about.size, about.mtime = len(text), FIXED
            tar.addfile(about, io.BytesIO(text))
    build = "node -e \"require('dep'); require('fs').writeFileSync('built.js', '1')\""
    package = {
        "name": "web", "version": "1.0.0", "dependencies": {"dep": "file:dep.tgz"}, "scripts": {"build": build}, "files": ["x.js"],
    }  # fmt: skip
    (web / "package.json").write_text(json.dumps(package))
    lock = {
        "name": "web", "version": "1.0.0", "lockfileVersion": 3, "requires": True,
        "packages": {
            "": {"name": "web", "version": "1.0.0", "dependencies": {"dep": "file:dep.tgz"}},
            "node_modules/dep": {"version": "1.0.0", "resolved": "file:dep.tgz"},
        },
    }  # fmt: skip
    (web / "package-lock.json").write_text(json.dumps(lock))


def _settle(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        os.utime(path, (FIXED, FIXED), follow_symlinks=False)


def _make_repository(root: Path) -> None:
    dates = {"GIT_AUTHOR_DATE": f"{FIXED} +0000", "GIT_COMMITTER_DATE": f"{FIXED} +0000"}
    environ = {**os.environ, **dates, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    base = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for line in (
        ["init", "-q", "-b", "main"], ["add", "notes.txt", "src"], ["commit", "-qm", "1"], ["add", "."], ["commit", "-qm", "2"],
    ):  # fmt: skip
        subprocess.run([*base, *line], cwd=root, env=environ, check=True)
    for path in (root / ".git").rglob("*"):
        os.utime(path, (FIXED, FIXED), follow_symlinks=False)
