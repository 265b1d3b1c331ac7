"""Seventy-five programs that people know, none written for latlab: what `explain` is tried on.

Five of each kind. Four of the five are in the part `DEVELOP`, which `explain` may be changed by; all of these
but the first were in the part to report until that had been run once. The fifth is in `REPORT`: its first run
after the code is frozen is what counts. Before that only the list was looked at, and whether a command runs
at all and for how long.

In commands `{in}` is the directory of inputs (made once, always the same; see `made.py`), `{out}` one that
is empty before each run, `{wheels}` and `{npm}` those of the packages, `{go}` Go's own sources, `{postgres}`
PostgreSQL's programs. A line of `sh -c` is what people write into a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Part = Literal["develop", "report"]
DEVELOP: Final = "develop"
REPORT: Final = "report"


@dataclass(frozen=True)
class Program:
    """One entry of the corpus."""

    name: str
    kind: str
    part: Part
    use: str
    """What people use it for."""
    command: tuple[str, ...]
    """What is explained, unless it is a server."""
    inputs: tuple[str, ...] = ()
    """Functions of `made.py`."""
    debian: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Runs before each run, when the server answers, and is not looked at."""
    cold: tuple[str, ...] = ()
    """Inputs that are put out of the page cache before each run."""
    server: tuple[str, ...] = ()
    """Runs meanwhile; ended afterwards."""
    port: int = 0
    """Where the server listens: it is ready when this answers."""
    load: tuple[str, ...] = ()
    """Asks the server for something all the time: then the server is what is explained, for `seconds`."""
    seconds: float = 0.0
    polls: str = "network"
    """The category of its waits in poll, select and epoll, by the descriptors that it polls."""
    collector: Literal["", "java", "go", "node"] = ""
    """Whose functions and threads are garbage collection."""


def _sh(line: str) -> tuple[str, ...]:
    return ("sh", "-c", line)


_SVD: Final = """
import numpy
matrix = numpy.random.default_rng(1).random((500, 500))
print(numpy.linalg.svd(matrix)[1][0], (matrix @ matrix).sum())
"""
_GROUPS: Final = """
import sys, pandas
table = pandas.read_csv(sys.argv[1])
print(table.groupby("host")["bytes"].agg(["sum", "mean", "count"]).sort_values("sum").tail())
print(table.merge(table.drop_duplicates("path"), on="path")["bytes_x"].median())
"""
_SUMS: Final = """
$file = fopen($argv[1], "r");
fgetcsv($file);
while ($row = fgetcsv($file)) {
    $sums[$row[0]][$row[1]] = ($sums[$row[0]][$row[1]] ?? 0) + (int) $row[2];
}
ksort($sums);
foreach ($sums as $host => $paths) {
    printf("%s %d %d\\n", $host, count($paths), array_sum($paths));
}
"""
_COUNTS: Final = """
counts = Hash.new(0)
File.foreach(ARGV[0]) { |line| line.split.each { |word| counts[word] += 1 } }
counts.sort_by { |word, count| [-count, word] }.first(20).each { |word, count| puts "#{count} #{word}" }
"""
_SPARSE: Final = """
import numpy, scipy.sparse, scipy.sparse.linalg
side = 120
one = scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(side, side))
matrix = scipy.sparse.kronsum(one, one).tocsc()
print(scipy.sparse.linalg.spsolve(matrix, numpy.ones(side * side)).max())
print(scipy.sparse.linalg.eigsh(matrix, k=6, sigma=0.0, return_eigenvectors=False))
"""
_TABLE: Final = """
import sys, duckdb
table = duckdb.connect(sys.argv[2], config={"threads": 2})
table.execute("SET enable_progress_bar = false")
table.execute("CREATE TABLE requests AS SELECT * FROM read_csv(?) ORDER BY path, seconds", [sys.argv[1]])
sums = "SELECT host, sum(bytes), median(seconds) FROM requests GROUP BY host ORDER BY 2 DESC"
print(table.execute(sums).fetchmany(5))
"""
_CLASSES: Final = """
import numpy
from sklearn.ensemble import RandomForestClassifier
table = numpy.random.default_rng(1).random((8_000, 20))
classes = (table[:, 0] * table[:, 1] > table[:, 2]).astype(int)
print(RandomForestClassifier(30, n_jobs=2, random_state=1).fit(table, classes).score(table, classes))
"""
_FREQUENCIES: Final = """
[path] = System.argv()
counts = path |> File.stream!() |> Stream.flat_map(&String.split/1) |> Enum.frequencies()
for {word, count} <- counts |> Enum.sort_by(fn {word, count} -> {-count, word} end) |> Enum.take(20) do
  IO.puts("#{count} #{word}")
end
"""
_TALLY: Final = """
(let [words (mapcat #(.split % " ") (line-seq (clojure.java.io/reader "{in}/6/text")))]
  (doseq [[word n] (take 20 (sort-by (juxt (comp - val) key) (frequencies words)))]
    (println n word)))
"""
_MODELS: Final = """
set.seed(1)
table <- data.frame(group = factor(sample(letters, 2e5, TRUE)), x = rnorm(2e5))
table$y <- table$x * as.integer(table$group) + rnorm(2e5)
print(aggregate(y ~ group, table, median)[1:3, ])
print(coef(lm(y ~ x * group, table))[1:3])
print(quantile(replicate(100, mean(sample(table$y, 1e4, TRUE)))))
"""

CORPUS: Final = (
    # ---- compilers
    Program(
        "g++",
        "compiler",
        DEVELOP,
        "compiles C++ programs",
        ("g++", "-O2", "-std=c++17", "-o", "{out}/a.out", "{in}/templates.cpp"),
        inputs=("templates",),
        debian=("g++",),
    ),
    Program(
        "rustc",
        "compiler",
        DEVELOP,
        "compiles Rust programs",
        ("/usr/bin/rustc", "--edition", "2021", "-O", "-o", "{out}/a.out", "{in}/functions.rs"),
        inputs=("functions",),
        debian=("rustc",),
    ),
    Program(
        "clang",
        "compiler",
        DEVELOP,
        "compiles C programs",
        _sh("clang -O2 -o {out}/program {in}/project/*.c -lm"),
        inputs=("project",),
        debian=("clang",),
    ),
    Program(
        "gcc -flto",
        "compiler",
        DEVELOP,
        "compiles C programs as a whole",
        _sh("gcc -O2 -flto=1 -o {out}/program {in}/project/*.c -lm"),
        inputs=("project",),
        debian=("gcc",),
    ),
    Program(
        "fpc",
        "compiler",
        REPORT,
        "compiles Pascal programs",
        ("fpc", "-O2", "-FE{out}", "{in}/functions.pas"),
        inputs=("pascal",),
        debian=("fpc",),
    ),
    # ---- interpreters
    Program(
        "python compileall",
        "interpreter",
        DEVELOP,
        "compiles Python's modules before they are imported",
        (
            "env",
            "PYTHONPYCACHEPREFIX={out}",
            "/usr/bin/python3",
            "-m",
            "compileall",
            "-q",
            "-f",
            "{in}/modules",
        ),
        inputs=("modules",),
        debian=("python3",),
    ),
    Program(
        "perl words",
        "interpreter",
        DEVELOP,
        "counts words",
        (
            "perl",
            "-ne",
            "$n{$_}++ for split; END { print qq($_ $n{$_}\\n) for sort keys %n }",
            "{in}/text",
        ),
        inputs=("text",),
        debian=("perl",),
    ),
    Program(
        "php report",
        "interpreter",
        DEVELOP,
        "sums up a table in a script",
        ("php", "-n", "-r", _SUMS, "{in}/requests.csv"),
        inputs=("requests",),
        debian=("php-cli",),
    ),
    Program(
        "ruby words",
        "interpreter",
        DEVELOP,
        "counts words in a script",
        ("ruby", "--disable-gems", "-e", _COUNTS, "{in}/6/text"),
        inputs=("text_6",),
        debian=("ruby",),
    ),
    Program(
        "elixir words",
        "interpreter",
        REPORT,
        "counts words in a script",
        ("env", "HOME={out}", "elixir", "-e", _FREQUENCIES, "{in}/6/text"),
        inputs=("text_6",),
        debian=("elixir",),
    ),
    # ---- pipelines
    Program(
        "sort | uniq",
        "pipeline",
        DEVELOP,
        "lists the most frequent words of a text",
        _sh("tr -s ' ' '\\n' <{in}/text | head -n 1500000 | sort | uniq -c | sort -rn | head -n 20"),
        inputs=("text",),
        debian=("coreutils",),
    ),
    Program(
        "zcat | awk",
        "pipeline",
        DEVELOP,
        "lists who asks a web server most",
        _sh(
            "zcat {in}/access.log.gz | awk '{ sum[$1] += $10 } END { for (who in sum) print sum[who], who }'"
            " | sort -rn | head -n 20"
        ),
        inputs=("access_log",),
        debian=("gzip", "mawk"),
    ),
    Program(
        "jq | sort",
        "pipeline",
        DEVELOP,
        "lists who asks most, by records in JSON",
        _sh(
            "jq -r 'select(.bytes > 50000) | .host' {in}/records.json"
            " | sort | uniq -c | sort -rn | head -n 20"
        ),
        inputs=("records",),
        debian=("jq", "coreutils"),
    ),
    Program(
        "cut | sort | join",
        "pipeline",
        DEVELOP,
        "lists the hosts of a table with how often they asked",
        _sh(
            "cut -d, -f1 {in}/requests.csv | sort | uniq -c | awk '{ print $2, $1 }' >{out}/counts;"
            " cut -d, -f1,3 {in}/requests.csv | tr , ' ' | sort -u -k1,1 | join - {out}/counts | tail -n 3"
        ),
        inputs=("requests",),
        debian=("coreutils", "mawk"),
    ),
    Program(
        "tar | lz4 | openssl",
        "pipeline",
        REPORT,
        "packs a directory and encrypts it",
        _sh(
            "tar -C {in} -c tree | lz4 -q -5 -c"
            " | openssl enc -aes-256-ctr -pbkdf2 -pass pass:secret -out {out}/tree.tar.lz4.enc"
        ),
        inputs=("tree",),
        debian=("tar", "lz4", "openssl"),
    ),
    # ---- databases
    Program(
        "sqlite3 commits",
        "database",
        DEVELOP,
        "writes rows in transactions that are safe on the disk",
        _sh("sqlite3 {out}/rows.db <{in}/commits.sql"),
        inputs=("commits",),
        debian=("sqlite3",),
    ),
    Program(
        "pgbench",
        "database",
        DEVELOP,
        "asks PostgreSQL for transactions, as four clients",
        (
            "pgbench",
            "-h",
            "127.0.0.1",
            "-p",
            "45432",
            "-U",
            "latlab",
            "-c",
            "4",
            "-j",
            "2",
            "-t",
            "150",
            "-n",
            "postgres",
        ),
        inputs=("cluster",),
        server=("{postgres}/postgres", "-D", "{in}/cluster", "-p", "45432", "-k", ""),
        port=45432,
        before=(
            "pgbench",
            "-i",
            "-q",
            "-s",
            "2",
            "-h",
            "127.0.0.1",
            "-p",
            "45432",
            "-U",
            "latlab",
            "postgres",
        ),
        debian=("postgresql-15",),
    ),
    Program(
        "duckdb import",
        "database",
        DEVELOP,
        "reads a table into a file of DuckDB and sorts it there",
        ("env", "PYTHONPATH={wheels}", "/usr/bin/python3", "-c", _TABLE, "{in}/requests.csv", "{out}/table"),
        inputs=("requests",),
        debian=("python3",),
        wheels=("duckdb",),
    ),
    Program(
        "sqlite3 import",
        "database",
        DEVELOP,
        "reads a table into a file and asks it a question",
        (
            "sqlite3",
            "{out}/requests.db",
            ".import --csv {in}/requests.csv requests",
            "SELECT host, sum(bytes), count(DISTINCT path) FROM requests GROUP BY 1 ORDER BY 2 DESC LIMIT 3",
        ),
        inputs=("requests",),
        debian=("sqlite3",),
    ),
    Program(
        "mariadbd",
        "database",
        REPORT,
        "changes rows for others, each change safe on the disk",
        (),
        server=_sh(
            "cp -r {in}/mariadb {out}/rows && exec /usr/sbin/mariadbd --no-defaults --datadir={out}/rows"
            " --socket={out}/socket --bind-address=127.0.0.1 --port=43306"
        ),
        port=43306,
        load=(
            "mariadb-slap",
            "--no-defaults",
            "--host=127.0.0.1",
            "--port=43306",
            "--user=root",
            "--silent",
            "--auto-generate-sql",
            "--auto-generate-sql-add-autoincrement",
            "--auto-generate-sql-load-type=update",
            "--concurrency=4",
            "--number-of-queries=100000000",
        ),
        seconds=2.0,
        inputs=("mariadb",),
        debian=("mariadb-server",),
    ),
    # ---- servers under load
    Program(
        "redis-server",
        "server under load",
        DEVELOP,
        "keeps values in memory for others",
        (),
        server=("redis-server", "--port", "46379", "--save", "", "--dir", "{out}"),
        port=46379,
        load=(
            "redis-benchmark",
            "-p",
            "46379",
            "-t",
            "set,get",
            "-n",
            "100000000",
            "-c",
            "20",
            "-r",
            "100000",
            "-q",
        ),
        seconds=2.0,
        debian=("redis-server", "redis-tools"),
    ),
    Program(
        "nginx",
        "server under load",
        DEVELOP,
        "serves files to browsers",
        (),
        server=("nginx", "-e", "stderr", "-c", "{in}/nginx.conf"),
        port=48080,
        load=("ab", "-q", "-t", "60", "-n", "100000000", "-c", "10", "http://127.0.0.1:48080/piece"),
        seconds=2.0,
        inputs=("site",),
        debian=("nginx-light", "apache2-utils"),
    ),
    Program(
        "memcached",
        "server under load",
        DEVELOP,
        "keeps values in memory for others, with two threads",
        (),
        server=("memcached", "-l", "127.0.0.1", "-p", "46380", "-t", "2"),
        port=46380,
        load=("memcaslap", "-s", "127.0.0.1:46380", "-T", "1", "-c", "16", "-t", "60s"),
        seconds=2.0,
        debian=("memcached", "libmemcached-tools"),
    ),
    Program(
        "lighttpd",
        "server under load",
        DEVELOP,
        "serves files to browsers that keep their connections",
        (),
        server=("lighttpd", "-D", "-f", "{in}/lighttpd.conf"),
        port=48083,
        load=("ab", "-q", "-k", "-t", "60", "-n", "100000000", "-c", "8", "http://127.0.0.1:48083/piece"),
        seconds=2.0,
        inputs=("site", "lighttpd"),
        debian=("lighttpd", "apache2-utils"),
    ),
    Program(
        "unbound",
        "server under load",
        REPORT,
        "tells the addresses of names, over UDP",
        (),
        server=("unbound", "-d", "-c", "{in}/unbound.conf"),
        port=48053,
        load=_sh("exec dnsperf -s 127.0.0.1 -p 48053 -d {in}/names -l 60 -c 8 -q 20"),
        seconds=2.0,
        inputs=("names",),
        debian=("unbound", "dnsperf"),
    ),
    # ---- numerical libraries
    Program(
        "numpy svd",
        "numerical library",
        DEVELOP,
        "decomposes a matrix",
        ("env", "PYTHONPATH={wheels}", "/usr/bin/python3", "-c", _SVD),
        debian=("python3",),
        wheels=("numpy",),
    ),
    Program(
        "pandas groupby",
        "numerical library",
        DEVELOP,
        "sums up a table by a column",
        ("env", "PYTHONPATH={wheels}", "/usr/bin/python3", "-c", _GROUPS, "{in}/requests.csv"),
        inputs=("requests",),
        debian=("python3",),
        wheels=("pandas",),
    ),
    Program(
        "scikit-learn",
        "numerical library",
        DEVELOP,
        "learns classes from a table, with threads",
        ("env", "PYTHONPATH={wheels}", "/usr/bin/python3", "-c", _CLASSES),
        debian=("python3",),
        wheels=("scikit-learn",),
    ),
    Program(
        "scipy sparse",
        "numerical library",
        DEVELOP,
        "solves equations of a sparse matrix",
        ("env", "PYTHONPATH={wheels}", "/usr/bin/python3", "-c", _SPARSE),
        debian=("python3",),
        wheels=("scipy",),
    ),
    Program(
        "R",
        "numerical library",
        REPORT,
        "fits models to a table",
        ("Rscript", "--vanilla", "-e", _MODELS),
        debian=("r-base-core",),
    ),
    # ---- language runtimes with a collector: Java, Go
    Program(
        "javac",
        "runtime with a collector",
        DEVELOP,
        "compiles Java programs, itself in Java",
        _sh("exec javac -J-Xmx64m -J-Xlog:gc*:file={out}/gc.log -d {out} {in}/java/*.java"),
        inputs=("java",),
        debian=("openjdk-17-jdk-headless",),
        collector="java",
    ),
    Program(
        "gofmt",
        "runtime with a collector",
        DEVELOP,
        "formats Go programs, itself in Go",
        ("env", "GODEBUG=gctrace=1", "gofmt", "-l", "{go}/net", "{go}/runtime"),
        debian=("golang-go",),
        collector="go",
    ),
    Program(
        "javadoc",
        "runtime with a collector",
        DEVELOP,
        "writes the manual of Java programs, itself in Java",
        _sh("exec javadoc -J-Xmx64m -J-Xlog:gc*:file={out}/gc.log -quiet -d {out}/manual {in}/java/*.java"),
        inputs=("java",),
        debian=("openjdk-17-jdk-headless",),
        collector="java",
    ),
    Program(
        "jar",
        "runtime with a collector",
        DEVELOP,
        "packs a directory, itself in Java",
        _sh("exec jar -J-Xmx64m -J-Xlog:gc*:file={out}/gc.log -cfM {out}/tree.jar -C {in} tree"),
        inputs=("tree",),
        debian=("openjdk-17-jdk-headless",),
        collector="java",
    ),
    Program(
        "clojure",
        "runtime with a collector",
        REPORT,
        "counts words in a script that it compiles for Java first",
        (
            "/usr/bin/java",
            "-Xmx64m",
            "-cp",
            "/usr/share/java/clojure.jar:/usr/share/java/spec.alpha.jar:/usr/share/java/core.specs.alpha.jar",
            "clojure.main",
            "-e",
            _TALLY,
        ),
        inputs=("text_6",),
        debian=("clojure", "openjdk-17-jdk-headless"),
        collector="java",
    ),
    # ---- language runtimes with a collector: JavaScript
    Program(
        "tsc",
        "JavaScript",
        DEVELOP,
        "checks the types of TypeScript programs",
        (
            "node",
            "{npm}/typescript/bin/tsc",
            "--noEmit",
            "--skipLibCheck",
            "false",
            "--lib",
            "esnext",
            "{in}/hello.ts",
        ),
        inputs=("hello",),
        debian=("nodejs",),
        npm=("typescript@5.9",),
        collector="node",
        polls="locks",
    ),
    Program(
        "prettier",
        "JavaScript",
        DEVELOP,
        "formats JavaScript and TypeScript programs",
        (
            "node",
            "{npm}/prettier/bin/prettier.cjs",
            "--with-node-modules",
            "{npm}/typescript/lib/lib.es5.d.ts",
        ),
        debian=("nodejs",),
        npm=("prettier@3", "typescript@5.9"),
        collector="node",
        polls="locks",
    ),
    Program(
        "webpack",
        "JavaScript",
        DEVELOP,
        "bundles the modules of a program",
        (
            "node",
            "{npm}/webpack-cli/bin/cli.js",
            "build",
            "--mode",
            "development",
            "--entry",
            "{npm}/lodash-es/cloneDeep.js",
            "--output-path",
            "{out}/web",
        ),
        debian=("nodejs",),
        npm=("webpack@5", "webpack-cli@7", "lodash-es@4"),
        collector="node",
        polls="locks",
    ),
    Program(
        "terser",
        "JavaScript",
        DEVELOP,
        "makes a program for browsers small",
        ("node", "{npm}/terser/bin/terser", "{npm}/lodash/lodash.js", "-c", "-m", "-o", "{out}/small.js"),
        debian=("nodejs",),
        npm=("terser@5", "lodash@4"),
        collector="node",
        polls="locks",
    ),
    Program(
        "jest",
        "JavaScript",
        REPORT,
        "tests the modules of a program, in two threads",
        _sh(
            "cd {in}/checks && exec node {npm}/jest/bin/jest.js --workerThreads --maxWorkers=2"
            " --cacheDirectory={out}"
        ),
        inputs=("checks",),
        debian=("nodejs",),
        npm=("jest@30",),
        collector="node",
        polls="locks",
    ),
    # ---- network clients
    Program(
        "curl --limit-rate",
        "network client",
        DEVELOP,
        "downloads a file, no faster than it is told",
        ("curl", "-s", "--limit-rate", "12M", "-o", "{out}/file", "http://127.0.0.1:48081/text"),
        inputs=("text",),
        server=(
            "/usr/bin/python3",
            "-m",
            "http.server",
            "--bind",
            "127.0.0.1",
            "--directory",
            "{in}",
            "48081",
        ),
        port=48081,
        debian=("curl", "python3"),
    ),
    Program(
        "wget -r",
        "network client",
        DEVELOP,
        "downloads a site of many small files",
        ("wget", "-q", "-r", "-l", "2", "-P", "{out}", "http://127.0.0.1:48082/"),
        inputs=("web_pages",),
        server=("nginx", "-e", "stderr", "-c", "{in}/pages.conf"),
        port=48082,
        debian=("wget", "nginx-light"),
    ),
    Program(
        "aria2c",
        "network client",
        DEVELOP,
        "downloads many files, four at a time",
        ("aria2c", "-q", "--no-conf", "-j", "4", "-d", "{out}", "-i", "{in}/addresses"),
        inputs=("web_pages",),
        server=("nginx", "-e", "stderr", "-c", "{in}/pages.conf"),
        port=48082,
        debian=("aria2", "nginx-light"),
    ),
    Program(
        "rsync://",
        "network client",
        DEVELOP,
        "copies a directory from another machine",
        ("rsync", "-a", "rsync://127.0.0.1:48084/tree", "{out}/copy"),
        inputs=("tree", "rsyncd"),
        server=("rsync", "--daemon", "--no-detach", "--config", "{in}/rsyncd.conf"),
        port=48084,
        debian=("rsync",),
    ),
    Program(
        "lftp mirror",
        "network client",
        REPORT,
        "copies a directory from an FTP server, two files at a time",
        (
            "env",
            "HOME={out}",
            "lftp",
            "-e",
            "mirror --parallel=2 tree {out}/copy; exit",
            "ftp://127.0.0.1:48021",
        ),
        inputs=("tree",),
        server=("/usr/bin/python3", "-m", "pyftpdlib", "-i", "127.0.0.1", "-p", "48021", "-d", "{in}"),
        port=48021,
        debian=("lftp", "python3-pyftpdlib"),
    ),
    # ---- parallel builds
    Program(
        "make -j2",
        "parallel build",
        DEVELOP,
        "compiles the files of a C program side by side",
        ("make", "-s", "-j2", "-C", "{in}/project", "OUT={out}"),
        inputs=("project",),
        debian=("make", "gcc"),
        polls="waiting-for-children",
    ),
    Program(
        "go build",
        "parallel build",
        DEVELOP,
        "compiles the packages of a Go program side by side",
        (
            "env",
            "GOCACHE={out}/cache",
            "HOME={out}",
            "GOFLAGS=-buildvcs=false",
            "go",
            "build",
            "-C",
            "{in}/go",
            "-o",
            "{out}/program",
            ".",
        ),
        inputs=("go_project",),
        # As root: who builds has to write there.
        before=_sh("cp -r {in}/go-cache {out}/cache && chmod -R a+rwX {out}/cache"),
        debian=("golang-go",),
        polls="pipe",
    ),
    Program(
        "cargo build",
        "parallel build",
        DEVELOP,
        "compiles the crates of a Rust program side by side",
        (
            "env",
            "CARGO_HOME={out}/cargo",
            "RUSTC=/usr/bin/rustc",
            "/usr/bin/cargo",
            "build",
            "--quiet",
            "--offline",
            "--locked",
            "--jobs=2",
            "--manifest-path={in}/crates/Cargo.toml",
            "--target-dir={out}/target",
        ),
        inputs=("crates",),
        debian=("cargo",),
        polls="pipe",
    ),
    Program(
        "xargs -P2 gcc",
        "parallel build",
        DEVELOP,
        "compiles files side by side, without a Makefile",
        _sh("cd {out} && ls {in}/project/*.c | xargs -P 2 -n 1 gcc -O2 -c"),
        inputs=("project",),
        debian=("findutils", "gcc"),
        polls="waiting-for-children",
    ),
    Program(
        "cmake, ninja",
        "parallel build",
        REPORT,
        "looks at what a machine has and compiles a C program's files side by side",
        _sh("cmake -G Ninja -S {in}/cmake -B {out}/build && cmake --build {out}/build --parallel 2"),
        inputs=("project", "cmake"),
        debian=("cmake", "ninja-build", "gcc"),
        polls="pipe",
    ),
    # ---- file tree walkers
    Program(
        "grep -r, cold",
        "file tree walker",
        DEVELOP,
        "looks for a word in all files of a directory that was not read before",
        ("grep", "-r", "-c", "zyzzyva", "{in}/tree"),
        inputs=("tree",),
        cold=("tree",),
        debian=("grep",),
    ),
    Program(
        "rsync -a, cold",
        "file tree walker",
        DEVELOP,
        "copies a directory that was not read before",
        ("rsync", "-a", "{in}/tree", "{out}/copy"),
        inputs=("tree",),
        cold=("tree",),
        debian=("rsync",),
        polls="pipe",
    ),
    Program(
        "tar, cold",
        "file tree walker",
        DEVELOP,
        "puts a directory that was not read before into one file",
        ("tar", "-C", "{in}", "-cf", "{out}/tree.tar", "tree"),
        inputs=("tree",),
        cold=("tree",),
        debian=("tar",),
    ),
    Program(
        "sha256sum, cold",
        "file tree walker",
        DEVELOP,
        "checks the files of a directory that was not read before",
        _sh("find {in}/tree -type f -exec sha256sum {} +"),
        inputs=("tree",),
        cold=("tree",),
        debian=("findutils", "coreutils"),
    ),
    Program(
        "rg, cold",
        "file tree walker",
        REPORT,
        "looks for a word in a directory that was not read before, with two threads",
        ("rg", "--no-config", "-j", "2", "-i", "-w", "zy[a-z]+va", "{in}/tree"),
        inputs=("tree",),
        cold=("tree",),
        debian=("ripgrep",),
    ),
    # ---- compressors
    Program(
        "xz -T2",
        "compressor",
        DEVELOP,
        "compresses a file well, with two threads",
        ("xz", "-T2", "-2", "-k", "-c", "--block-size=2MiB", "{in}/6/text"),
        inputs=("text_6",),
        debian=("xz-utils",),
    ),
    Program(
        "zstd -T2",
        "compressor",
        DEVELOP,
        "compresses a file fast, with two threads",
        ("zstd", "-q", "-T2", "-7", "-c", "{in}/text"),
        inputs=("text",),
        debian=("zstd",),
    ),
    Program(
        "pigz",
        "compressor",
        DEVELOP,
        "compresses a file like gzip, with two threads",
        ("pigz", "-p", "2", "-c", "{in}/text"),
        inputs=("text",),
        debian=("pigz",),
    ),
    Program(
        "7z",
        "compressor",
        DEVELOP,
        "packs a file, with two threads",
        ("7z", "a", "-bd", "-mx=3", "-mmt=2", "{out}/text.7z", "{in}/6/text"),
        inputs=("text_6",),
        debian=("p7zip-full",),
    ),
    Program(
        "mksquashfs",
        "compressor",
        REPORT,
        "makes a compressed file system of a directory, with two threads",
        ("mksquashfs", "{in}/tree", "{out}/tree.squashfs", "-processors", "2", "-no-progress", "-quiet"),
        inputs=("tree",),
        debian=("squashfs-tools",),
    ),
    # ---- what mostly sleeps
    Program(
        "sleep loop",
        "sleeper",
        DEVELOP,
        "waits for a file to appear, as scripts do",
        _sh("for i in $(seq 20); do test -e {out}/ready; sleep 0.1; done"),
        debian=("dash", "coreutils"),
    ),
    Program(
        "ping",
        "sleeper",
        DEVELOP,
        "asks a machine whether it is there",
        ("ping", "-q", "-i", "0.1", "-c", "20", "127.0.0.1"),
        debian=("iputils-ping",),
    ),
    Program(
        "vmstat",
        "sleeper",
        DEVELOP,
        "says each second how busy the machine is",
        ("vmstat", "1", "3"),
        debian=("procps",),
    ),
    Program(
        "top -b",
        "sleeper",
        DEVELOP,
        "lists what runs, every half a second",
        ("top", "-b", "-d", "0.5", "-n", "5"),
        debian=("procps",),
        polls="sleep",
    ),
    Program(
        "iostat",
        "sleeper",
        REPORT,
        "says each second how busy the disks are",
        ("iostat", "-d", "1", "3"),
        debian=("sysstat",),
    ),
    # ---- version control
    Program(
        "git repack",
        "version control",
        DEVELOP,
        "packs a repository, with two threads",
        (
            "git",
            "-c",
            "safe.directory=*",
            "-c",
            "pack.threads=2",
            "-C",
            "{in}/repository.git",
            "repack",
            "-a",
            "-d",
            "-f",
            "-q",
        ),
        inputs=("repository",),
        debian=("git",),
        polls="pipe",
    ),
    Program(
        "git clone",
        "version control",
        DEVELOP,
        "copies a repository and checks it out",
        (
            "env",
            "GIT_CONFIG_GLOBAL={in}/git.config",
            "git",
            "clone",
            "-q",
            "file://{in}/repository.git",
            "{out}/clone",
        ),
        inputs=("repository", "git_settings"),
        debian=("git",),
        polls="pipe",
    ),
    Program(
        "svn checkout",
        "version control",
        DEVELOP,
        "checks a repository out",
        ("svn", "checkout", "-q", "--config-dir", "{out}/settings", "file://{in}/subversion", "{out}/copy"),
        inputs=("subversion",),
        debian=("subversion",),
    ),
    Program(
        "git log -p",
        "version control",
        DEVELOP,
        "shows what was changed, of every version",
        (
            "env",
            "GIT_CONFIG_GLOBAL={in}/git.config",
            "git",
            "-C",
            "{in}/repository.git",
            "log",
            "-p",
            "--stat",
        ),
        inputs=("repository", "git_settings"),
        debian=("git",),
    ),
    Program(
        "hg clone",
        "version control",
        REPORT,
        "copies a repository, version by version, and checks it out",
        ("env", "HGRCPATH=", "hg", "clone", "-q", "--pull", "{in}/mercurial", "{out}/copy"),
        inputs=("mercurial",),
        debian=("mercurial",),
    ),
    # ---- pictures and films
    Program(
        "ffmpeg x264",
        "media",
        DEVELOP,
        "encodes a film",
        (
            "ffmpeg",
            "-v",
            "error",
            "-nostdin",
            "-f",
            "lavfi",
            "-i",
            "testsrc2=duration=4:size=960x540:rate=25",
            "-c:v",
            "libx264",
            "-threads",
            "2",
            "-f",
            "null",
            "-",
        ),
        debian=("ffmpeg",),
    ),
    Program(
        "convert",
        "media",
        DEVELOP,
        "blurs and shrinks a picture",
        (
            "/usr/bin/convert",
            "-seed",
            "1",
            "-size",
            "1600x1200",
            "plasma:red-blue",
            "-blur",
            "0x6",
            "-resize",
            "40%",
            "{out}/small.png",
        ),
        debian=("imagemagick",),
    ),
    Program(
        "ghostscript",
        "media",
        DEVELOP,
        "draws the pages of a document",
        ("gs", "-q", "-sDEVICE=png16m", "-r150", "-o", "{out}/page%d.png", "{in}/drawing.ps"),
        inputs=("drawing",),
        debian=("ghostscript",),
    ),
    Program(
        "sox",
        "media",
        DEVELOP,
        "makes a sound and packs it",
        (
            "sox",
            "-R",
            "-n",
            "-r",
            "44100",
            "{out}/sound.flac",
            "synth",
            "30",
            "pinknoise",
            "reverb",
        ),
        debian=("sox",),
    ),
    Program(
        "gstreamer",
        "media",
        REPORT,
        "scales a film and packs it, each step in a thread of its own",
        _sh(
            "GST_REGISTRY={out}/registry exec gst-launch-1.0 -q"
            " videotestsrc num-buffers=120 ! video/x-raw,width=1280,height=720 ! queue"
            " ! videoscale ! video/x-raw,width=640,height=360 ! queue"
            " ! theoraenc ! oggmux ! filesink location={out}/film.ogg"
        ),
        # Which steps there are is found out once and written down, as a rule in the home directory.
        before=_sh("GST_REGISTRY={out}/registry gst-inspect-1.0 && chmod a+r {out}/registry"),
        debian=("gstreamer1.0-tools", "gstreamer1.0-plugins-base"),
    ),
)
"""The seventy-five."""


def part(which: Part) -> list[Program]:
    """The entries of a part, in their order."""
    return [program for program in CORPUS if program.part == which]


def placed(words: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """A command with the directories of this machine in it."""
    made = []
    for word in words:
        for name, place in places.items():
            word = word.replace(f"{{{name}}}", place)  # noqa: PLW2901 - one name after the other
        made.append(word)
    return made
