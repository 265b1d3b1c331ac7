"""Makes the inputs of the corpus: from nothing but a seed, or from the machine's own files, always the same.

Each function has the name by which `programs.py` asks for it and makes files in the directory of inputs.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from explain.proof import make_text

USER: Final = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
"""Before a command: as an ordinary user."""
_SEED: Final = 11
_HOSTS: Final = 2_000
_PATHS: Final = 500


def _chance() -> random.Random:
    return random.Random(_SEED)  # noqa: S311 - the same inputs each time


def text(place: Path) -> None:
    """24 MB of words."""
    make_text(place / "text", 24_000_000)


def text_6(place: Path) -> None:
    """6 MB of words, in a directory of their own."""
    (place / "6").mkdir()
    make_text(place / "6/text", 6_000_000)


def templates(place: Path) -> None:
    """A C++ program of four files' worth of the standard library's templates."""
    place.joinpath("templates.cpp").write_text(
        """
#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

int main(int count, char **words) {
    std::map<std::string, std::vector<double>> sorted;
    std::unordered_map<std::string, int> counts;
    for (int at = 1; at < count; ++at) {
        std::istringstream line(words[at]);
        std::string word;
        double number = 0;
        while (line >> word >> number) {
            sorted[word].push_back(number);
            counts[word] += 1;
        }
    }
    for (auto &entry : sorted) {
        std::sort(entry.second.begin(), entry.second.end());
        std::cout << entry.first << ' ' << counts[entry.first] << ' ' << entry.second.back() << '\\n';
    }
}
""",
        encoding="utf-8",
    )


def functions(place: Path) -> None:
    """A Rust program of many functions that use the standard library."""
    one = """
fn f{0}(words: &[String]) -> BTreeMap<String, Vec<usize>> {{
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, word) in words.iter().enumerate().filter(|(at, _)| at % {1} != 0) {{
        found.entry(word.chars().rev().skip({2}).collect()).or_default().push(at * {0});
    }}
    found.retain(|word, places| word.len() > {2} && places.len() < {1});
    found
}}
"""
    bodies = "".join(one.format(at, at % 7 + 2, at % 3) for at in range(8))
    calls = "".join(f"    sum += f{at}(&words).len();\n" for at in range(8))
    place.joinpath("functions.rs").write_text(
        "use std::collections::BTreeMap;\n"
        f"{bodies}\nfn main() {{\n    let words: Vec<String> = std::env::args().collect();\n"
        f'    let mut sum = 0;\n{calls}    println!("{{sum}}");\n}}\n',
        encoding="utf-8",
    )


def pascal(place: Path) -> None:
    """A Pascal program of 1,000 functions."""
    one = """
function f{0}(words: TStringList; most: integer): string;
var at, sum: integer; numbers: array[0..63] of double;
begin
  sum := {0}; result := '';
  for at := 0 to 63 do numbers[at] := sqrt(at + {0}) * most;
  for at := 0 to words.count - 1 do
    if length(words[at]) mod {1} = {2} then begin
      sum := sum + at * {0}; result := result + copy(words[at], {1}, most);
    end;
  if (sum > most) and (numbers[sum mod 64] > {0}) then result := format('%s %d', [result, sum]);
end;
"""
    bodies = "".join(one.format(at, at % 7 + 2, at % 2) for at in range(1_000))
    calls = "".join(f"  writeln(f{at}(words, paramcount));\n" for at in range(1_000))
    place.joinpath("functions.pas").write_text(
        "program functions;\n{$mode objfpc}{$h+}\nuses classes, sysutils;\nvar words: TStringList;\n"
        f"{bodies}\nbegin\n  words := TStringList.create;\n{calls}end.\n",
        encoding="ascii",
    )


def modules(place: Path) -> None:
    """Some packages of Debian's Python."""
    library = Path("/usr/lib/python3.11")
    for name in ("asyncio", "email", "json", "unittest", "xml", "http", "logging"):
        shutil.copytree(
            library / name, place / "modules" / name, ignore=shutil.ignore_patterns("__pycache__")
        )


def access_log(place: Path) -> None:
    """A web server's log of 600,000 requests, compressed."""
    chance = _chance()
    lines = [
        f"10.{host % 7}.{host % 251}.{host % 11} - - [01/Jan/2026:00:00:00 +0000]"
        f' "GET /page/{page} HTTP/1.1" 200 {size}'
        for host, page, size in (
            (chance.randrange(_HOSTS), chance.randrange(_PATHS), chance.randrange(100_000))
            for _ in range(60_000)
        )
    ]
    block = ("\n".join(lines) + "\n").encode()
    # Without a time in its head the file is the same each time.
    with gzip.GzipFile(place / "access.log.gz", "wb", mtime=0) as file:
        for _ in range(10):
            file.write(block)


def records(place: Path) -> None:
    """120,000 requests, each an object of JSON."""
    chance = _chance()
    with place.joinpath("records.json").open("w", encoding="ascii") as file:
        for _ in range(120_000):
            host, path = chance.randrange(_HOSTS), chance.randrange(_PATHS)
            record = {"host": f"host{host}", "path": f"/page/{path}", "bytes": chance.randrange(100_000)}
            file.write(json.dumps(record) + "\n")


def requests(place: Path) -> None:
    """A table of 600,000 requests."""
    chance = _chance()
    with place.joinpath("requests.csv").open("w", encoding="ascii") as file:
        file.write("host,path,bytes,seconds\n")
        for _ in range(600_000):
            host, path = chance.randrange(_HOSTS), chance.randrange(_PATHS)
            file.write(f"host{host},/page/{path},{chance.randrange(100_000)},{chance.random():.4f}\n")


def commits(place: Path) -> None:
    """400 transactions of one row each."""
    rows = "".join(f"INSERT INTO rows VALUES({at}, 'row number {at}');\n" for at in range(400))
    place.joinpath("commits.sql").write_text(f"CREATE TABLE rows(number, words);\n{rows}", encoding="ascii")


def cluster(place: Path) -> None:
    """A new PostgreSQL."""
    directory = place / "cluster"
    directory.mkdir()
    os.chown(directory, 65534, 65534)
    command = [
        *USER,
        f"{postgres()}/initdb",
        "-D",
        str(directory),
        "-U",
        "latlab",
        "--auth=trust",
        "-E",
        "UTF8",
        "--locale=C",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def mariadb(place: Path) -> None:
    """A new MariaDB."""
    directory = place / "mariadb"
    directory.mkdir()
    os.chown(directory, 65534, 65534)
    command = [*USER, "mariadb-install-db", "--no-defaults", f"--datadir={directory}"]
    command += ["--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def postgres() -> str:
    """Where PostgreSQL's programs are."""
    return str(max(Path("/usr/lib/postgresql").glob("*/bin"), default="/usr/lib/postgresql"))


def site(place: Path) -> None:
    """A file of 16 KiB, and the configuration of a web server that serves it."""
    (place / "site").mkdir()
    place.joinpath("site/piece").write_bytes(_chance().randbytes(16 << 10))
    _nginx(place / "nginx.conf", 48080, place / "site")


def _nginx(file: Path, port: int, root: Path) -> None:
    """Writes the configuration of an nginx that serves a directory."""
    file.write_text(
        f"""
daemon off;
master_process off;
pid /tmp/latlab-nginx.pid;
events {{ worker_connections 100; }}
http {{
    access_log off;
    client_body_temp_path /tmp/latlab-nginx;
    proxy_temp_path /tmp/latlab-nginx;
    fastcgi_temp_path /tmp/latlab-nginx;
    uwsgi_temp_path /tmp/latlab-nginx;
    scgi_temp_path /tmp/latlab-nginx;
    sendfile on;
    server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
""",
        encoding="ascii",
    )


def lighttpd(place: Path) -> None:
    """The configuration of a lighttpd that serves the same file."""
    place.joinpath("lighttpd.conf").write_text(
        f"""
server.document-root = "{place / "site"}"
server.bind = "127.0.0.1"
server.port = 48083
server.max-keep-alive-requests = 1000000
mimetype.assign = ( "" => "application/octet-stream" )
""",
        encoding="ascii",
    )


def names(place: Path) -> None:
    """A thousand names with their addresses, as an unbound's configuration, and the questions for them."""
    addresses = {f"host{at}.example.org.": f"10.0.{at // 250}.{at % 250}" for at in range(1_000)}
    reported = "".join(f'local-data: "{name} A {address}"\n' for name, address in addresses.items())
    place.joinpath("unbound.conf").write_text(
        f"""
server:
interface: 127.0.0.1
port: 48053
num-threads: 2
username: ""
chroot: ""
directory: ""
pidfile: ""
use-syslog: no
local-zone: "example.org." static
{reported}
""",
        encoding="ascii",
    )
    place.joinpath("names").write_text("".join(f"{name} A\n" for name in addresses), encoding="ascii")


def rsyncd(place: Path) -> None:
    """The configuration of an rsync that gives the directory of files to others."""
    directory = place / "tree"
    place.joinpath("rsyncd.conf").write_text(
        f"use chroot = no\nport = 48084\naddress = 127.0.0.1\n[tree]\npath = {directory}\n", encoding="ascii"
    )


def web_pages(place: Path) -> None:
    """A site of 600 small pages, all named by the first; its server's configuration, and addresses of 100."""
    directory = place / "pages"
    directory.mkdir()
    links = "".join(f'<a href="{at}.html">{at}</a>\n' for at in range(600))
    directory.joinpath("index.html").write_text(f"<html><body>{links}</body></html>", encoding="ascii")
    for at in range(600):
        directory.joinpath(f"{at}.html").write_text(
            f"<html><body>{at} {'word ' * 500}</body></html>", encoding="ascii"
        )
    # This server keeps connections open. `wget` sleeps for a second when one that it means to use again is
    # closed, and Python's own server closes each without saying so.
    _nginx(place / "pages.conf", 48082, directory)
    addresses = "".join(f"http://127.0.0.1:48082/{at}.html\n" for at in range(100))
    place.joinpath("addresses").write_text(addresses, encoding="ascii")


def java(place: Path) -> None:
    """10 Java classes."""
    directory = place / "java"
    directory.mkdir()
    method = """
    static List<String> m%d(Map<String, List<Integer>> of, int most) {
        return of.entrySet().stream().filter(e -> e.getValue().size() > %d)
            .sorted(Map.Entry.comparingByKey())
            .map(e -> e.getKey() + e.getValue().stream().mapToInt(v -> v + %d).sum())
            .limit(most).collect(Collectors.toList());
    }
"""
    for at in range(10):
        methods = "".join(method % (of, of, at) for of in range(6))
        directory.joinpath(f"C{at}.java").write_text(
            f"import java.util.*;\nimport java.util.stream.*;\npublic class C{at} {{\n{methods}}}\n",
            encoding="ascii",
        )


def hello(place: Path) -> None:
    """A short TypeScript program: what is checked is the language's own library."""
    place.joinpath("hello.ts").write_text(
        'export const said: string = ["Hello", "world"].join(", ");\n', encoding="ascii"
    )


def checks(place: Path) -> None:
    """12 JavaScript modules, each with tests of its own."""
    directory = place / "checks"
    directory.mkdir()
    directory.joinpath("package.json").write_text("{}\n", encoding="ascii")
    for at in range(12):
        directory.joinpath(f"part{at}.js").write_text(
            "exports.sorted = (list) =>\n"
            f"  [...list].map((n) => (n * {at + 3}) % 1009).sort((a, b) => a - b);\n",
            encoding="ascii",
        )
        tests = "".join(
            f'test("{of} numbers", () => {{\n  const found = sorted([...Array({of}).keys()]);\n'
            f"  expect(found).toHaveLength({of});\n  expect(found).toEqual(sorted(found.keys()));\n}});\n"
            for of in range(100, 1_000, 30)
        )
        directory.joinpath(f"part{at}.test.js").write_text(
            f'const {{ sorted }} = require("./part{at}");\n{tests}', encoding="ascii"
        )


def project(place: Path) -> None:
    """A C program of 12 files with its Makefile."""
    directory = place / "project"
    directory.mkdir()
    function = """
static double f%d(const double *of, int count) {
    double sum = 0;
    for (int at = 0; at < count; ++at) sum += sin(of[at] * %d) / (1 + sqrt(fabs(of[at])));
    if (sum > %d) printf("%%f\\n", sum);
    return sum;
}
"""
    for at in range(12):
        bodies = "".join(function % (of, of + at, of) for of in range(15))
        sums = " + ".join(f"f{of}(of, count)" for of in range(15))
        directory.joinpath(f"part{at}.c").write_text(
            "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
            f"{bodies}\ndouble part{at}(const double *of, int count) {{ return {sums}; }}\n",
            encoding="ascii",
        )
    calls = " + ".join(f"part{at}(of, 8)" for at in range(12))
    heads = "".join(f"double part{at}(const double *of, int count);\n" for at in range(12))
    directory.joinpath("main.c").write_text(
        f"{heads}int main(void) {{ double of[8] = {{1, 2, 3}}; return {calls} > 0; }}\n", encoding="ascii"
    )
    directory.joinpath("Makefile").write_text(
        "PARTS := $(patsubst %.c,$(OUT)/%.o,$(wildcard *.c))\n"
        "$(OUT)/program: $(PARTS)\n\tgcc -o $@ $^ -lm\n"
        "$(OUT)/%.o: %.c\n\tgcc -O2 -c -o $@ $<\n",
        encoding="ascii",
    )


def cmake(place: Path) -> None:
    """The same C program, described for CMake."""
    directory = place / "cmake"
    directory.mkdir()
    directory.joinpath("CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(program C)\nset(CMAKE_BUILD_TYPE Release)\n"
        "file(GLOB parts ../project/*.c)\nadd_executable(program ${parts})\n"
        "target_link_libraries(program m)\n",
        encoding="ascii",
    )


def go_project(place: Path) -> None:
    """A Go program of ten packages, and a build cache that has the standard library's."""
    directory = place / "go"
    for at in range(10):
        package = directory / f"part{at}"
        package.mkdir(parents=True)
        functions = "".join(
            f"func F{of}(words []string) string {{\n\tsort.Strings(words)\n\tfound := map[string]int{{}}\n"
            f"\tfor at, word := range words {{\n\t\tfound[strings.ToUpper(word)] += at * {of}\n\t}}\n"
            f"\treturn fmt.Sprint(found, {of})\n}}\n\n"
            for of in range(60)
        )
        package.joinpath("part.go").write_text(
            f'package part{at}\n\nimport (\n\t"fmt"\n\t"sort"\n\t"strings"\n)\n\n{functions}',
            encoding="ascii",
        )
    imports = "".join(f'\t"example.org/program/part{at}"\n' for at in range(10))
    calls = "".join(f"\tfmt.Println(part{at}.F1(os.Args))\n" for at in range(10))
    directory.joinpath("go.mod").write_text("module example.org/program\n\ngo 1.21\n", encoding="ascii")
    directory.joinpath("main.go").write_text(
        f'package main\n\nimport (\n\t"fmt"\n\t"os"\n{imports})\n\nfunc main() {{\n{calls}}}\n',
        encoding="ascii",
    )
    environment = {**os.environ, "GOCACHE": str(place / "go-cache"), "GOFLAGS": "-buildvcs=false"}
    subprocess.run(["go", "build", "fmt", "os", "sort", "strings"], env=environment, check=True)


def crates(place: Path) -> None:
    """A Rust program of five crates, three of which need none of the others."""
    one = """
pub fn f{0}(words: &[String]) -> Vec<String> {{
    let mut found: Vec<String> = words.iter().filter(|word| word.len() > {0}).cloned().collect();
    found.sort_by_key(|word| word.chars().rev().collect::<String>());
    found.iter().map(|word| format!("{{}} {{}}", word, {0})).collect()
}}
"""
    directory = place / "crates"
    parts = [f"part{at}" for at in range(3)]
    needs: dict[str, list[str]] = {part: [] for part in parts} | {"all": parts, "program": ["all"]}
    for name, needed in needs.items():
        source = directory / name / "src"
        source.mkdir(parents=True)
        depends = "".join(f'{other} = {{ path = "../{other}" }}\n' for other in needed)
        source.parent.joinpath("Cargo.toml").write_text(
            f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n{depends}',
            encoding="ascii",
        )
    members = ", ".join(f'"{name}"' for name in needs)
    directory.joinpath("Cargo.toml").write_text(f"[workspace]\nmembers = [{members}]\n", encoding="ascii")
    functions = "".join(one.format(at) for at in range(2))
    for part in parts:
        directory.joinpath(part, "src/lib.rs").write_text(functions, encoding="ascii")
    calls = " + ".join(f"{part}::f1(words).len()" for part in parts)
    directory.joinpath("all/src/lib.rs").write_text(
        f"pub fn all(words: &[String]) -> usize {{ {calls} }}\n", encoding="ascii"
    )
    directory.joinpath("program/src/main.rs").write_text(
        'fn main() { println!("{}", all::all(&std::env::args().collect::<Vec<_>>())); }\n', encoding="ascii"
    )
    # Cargo.lock, which the ordinary user may not write.
    command = [
        "/usr/bin/cargo",
        "generate-lockfile",
        "--offline",
        "--manifest-path",
        str(directory / "Cargo.toml"),
    ]
    subprocess.run(command, env={**os.environ, "RUSTC": "/usr/bin/rustc"}, check=True)


def tree(place: Path) -> None:
    """2,000 files of 2 to 62 KB in 80 directories; the word that is looked for is in the last."""
    chance = _chance()
    words = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 10))) for _ in range(5_000)
    ]
    block = " ".join(chance.choices(words, k=12_000))
    for at in range(2_000):
        directory = place / "tree" / f"{at % 80:02}"
        directory.mkdir(parents=True, exist_ok=True)
        begin, size = chance.randrange(len(block) // 8), chance.randint(2_000, 62_000)
        directory.joinpath(f"{at:04}.txt").write_text(block[begin : begin + size], encoding="ascii")
    place.joinpath("tree/79/last.txt").write_text("zyzzyva\n", encoding="ascii")
    subprocess.run(["sync", "-f", place], check=True)


def repository(place: Path) -> None:
    """A repository of 300 versions of 80 files."""
    directory = place / "repository.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", directory], check=True)
    chance = _chance()
    files = [[f"line {chance.random()}" for _ in range(400)] for _ in range(80)]
    stream = []
    for version in range(300):
        stream.append(
            f"commit refs/heads/main\ncommitter A <a@example.org> {version} +0000\ndata 1\n{version % 10}\n"
        )
        # At first all of them, later ten at a time.
        for at in range(80) if version == 0 else chance.sample(range(80), 10):
            for _ in range(20):
                files[at][chance.randrange(400)] = f"line {chance.random()}"
            content = "\n".join(files[at])
            stream.append(f"M 100644 inline {at % 8}/{at}.txt\ndata {len(content)}\n{content}\n")
    subprocess.run(
        ["git", "-C", directory, "fast-import", "--quiet"], input="".join(stream).encode(), check=True
    )
    subprocess.run(["chmod", "-R", "a+rwX", directory], check=True)


def git_settings(place: Path) -> None:
    """Lets git read a repository of another user; it does not pass such a setting of its command line on."""
    place.joinpath("git.config").write_text("[safe]\n\tdirectory = *\n", encoding="ascii")


def subversion(place: Path) -> None:
    """A Subversion repository of 300 files."""
    directory, chance = place / "subversion", _chance()
    subprocess.run(["svnadmin", "create", directory], check=True)
    with tempfile.TemporaryDirectory() as files:
        for at in range(300):
            folder = Path(files, str(at % 15))
            folder.mkdir(exist_ok=True)
            lines = "\n".join(f"line {chance.random()}" for _ in range(chance.randint(50, 800)))
            folder.joinpath(f"{at}.txt").write_text(lines, encoding="ascii")
        subprocess.run(["svn", "import", "-q", "-m", "All", files, f"file://{directory}"], check=True)
    subprocess.run(["chmod", "-R", "a+rX", directory], check=True)


def mercurial(place: Path) -> None:
    """A Mercurial repository of 30 versions of 100 files."""
    directory, chance = place / "mercurial", _chance()
    environment = {**os.environ, "HGRCPATH": ""}
    subprocess.run(["hg", "init", directory], env=environment, check=True)
    files = [[f"line {chance.random()}" for _ in range(300)] for _ in range(100)]
    for version in range(30):
        for at, lines in enumerate(files):
            for _ in range(10):
                lines[chance.randrange(300)] = f"line {chance.random()}"
            file = directory / str(at % 9) / f"{at}.txt"
            file.parent.mkdir(exist_ok=True)
            file.write_text("\n".join(lines), encoding="ascii")
        command = ["hg", "-R", str(directory), "commit", "-q", "-A", "-m", str(version)]
        command += ["-u", "A <a@example.org>", "-d", f"{version} 0"]
        subprocess.run(command, env=environment, check=True)
    subprocess.run(["chmod", "-R", "a+rX", directory], check=True)


def drawing(place: Path) -> None:
    """A PostScript document of four pages of text and curves."""
    page = """
/Times-Roman findfont 11 scalefont setfont
0 1 60 { dup 12 mul 40 add 40 exch moveto
  (Moving data takes time, and this line is number ) show 3 string cvs show } for
/x { sin 250 mul 300 add } def
/y { cos 350 mul 400 add } def
0 1 1500 { /at exch def
  newpath at 360 mod 500 div 0.2 0.6 setrgbcolor
  300 400 moveto at x at y at 50 add x at 90 add y at 130 add x at 170 add y curveto stroke } for
showpage
"""
    place.joinpath("drawing.ps").write_text("%!PS\n" + page * 4, encoding="ascii")


MAKERS: Final[dict[str, Callable[[Path], None]]] = {
    maker.__name__: maker
    for maker in (
        text,
        text_6,
        templates,
        functions,
        pascal,
        modules,
        access_log,
        records,
        requests,
        commits,
        cluster,
        mariadb,
        site,
        lighttpd,
        names,
        rsyncd,
        web_pages,
        java,
        hello,
        checks,
        project,
        cmake,
        go_project,
        crates,
        tree,
        repository,
        git_settings,
        subversion,
        mercurial,
        drawing,
    )
}


def make(names: Sequence[str], place: Path) -> None:
    """What of these is not there yet; a file with the name of each says that it is whole."""
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o755)
    for name in names:
        whole = place / f".{name}"
        if not whole.exists():
            MAKERS[name](place)
            whole.touch()
