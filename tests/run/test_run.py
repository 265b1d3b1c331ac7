from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.some import some

from latlab.errors import RunFileError, UserError
from latlab.run import export, model, reader, sharing
from latlab.run.run import Run, load

SMALL_PATH = Path(__file__).resolve().parent.parent / "data" / "run-small.latlab.jsonl"
RUN = reader.read(SMALL_PATH)
ROUNDS_PATH = SMALL_PATH.with_name("run-rounds.latlab.jsonl")
ROUNDS = reader.read(ROUNDS_PATH)


def test_records_are_selected_by_glob_and_point() -> None:
    found = RUN.select("memory.*", pages="4k", order="random")
    assert found
    assert {record.probe for record in found} == {"memory.load.dependent", "memory.parallelism"}
    assert {record.point.pages for record in found} == {"4k"}
    assert len(RUN.select("memory.bandwidth", working_set_bytes=[24576, 1 << 30], threads=1)) == 10
    assert len(RUN.select("memory.bandwidth").select(operation="read", threads=1)) == 7
    assert RUN.select("memory.poke", kind="per_op", working_set_bytes=0).probes == ("memory.poke",)
    assert RUN.select("memory") == RUN.select("memory.*")
    assert RUN.select("clock.read", working_set_bytes=None) == RUN["clock.read"]
    assert len(RUN.select("nothing.*")) == 0


def test_a_field_that_no_point_has_is_an_error_and_not_an_empty_answer() -> None:
    with pytest.raises(TypeError, match="working_set_bytes"):
        RUN.select(working_set=1)


def test_a_probe_is_looked_up_by_its_id() -> None:
    assert len(RUN["clock.read"]) == 10
    assert "clock.read" in RUN
    with pytest.raises(KeyError, match=r"clock\.read"):
        RUN["clock.write"]


def test_levels_are_those_that_the_run_found() -> None:
    assert [level.name for level in RUN.levels] == ["L1", "L2", "L3", "RAM"]
    assert RUN.levels[0].reported_bytes == 48 * 1024
    assert Run(RUN.header, RUN.records[:5]).levels == []


def test_levels_of_a_damaged_finding_are_none() -> None:
    (derived,) = RUN.select("memory.load.dependent", kind="derived")
    damaged: list[object] = [{"levels": 3}, {"levels": [3]}, {"levels": [{"name": 3}]}, [], "x"]
    for findings in some(damaged):
        assert Run(RUN.header, [msgspec.structs.replace(derived, findings=findings)]).levels == []


def test_a_figure_whose_proof_failed_is_no_figure() -> None:
    record = RUN["memory.poke"][0]
    assert record.value == pytest.approx(20.02)
    failed = msgspec.structs.replace(
        record, checks=(model.Check(name="checksum", ok=False, detail="differs"),)
    )
    assert failed.value is None
    assert failed.interval is None
    (row,) = export.rows([failed])
    assert row["p50"] is None
    assert row["p999"] is None
    assert row["proved"] is False


def test_every_row_has_the_same_columns() -> None:
    rows = RUN.rows()
    assert len(rows) == len(RUN.records)
    assert all(list(row) == list(export.COLUMNS) for row in rows)
    for row in rows:
        for name, value in row.items():
            assert value is None or type(value) is export.COLUMNS[name] or isinstance(value, int)


def test_a_data_frame_has_one_row_a_record_and_numbers_where_numbers_are() -> None:
    pytest.importorskip("pandas")
    frame = RUN.to_pandas()
    assert list(frame.columns) == list(export.COLUMNS)
    assert frame["p50"].dtype == "float64"
    assert frame["working_set_bytes"].dtype == "Int64"
    assert frame["placement"].dtype == "string"
    assert frame.query("probe == 'clock.read'")["p50"].notna().all()
    assert len(RUN.select("nothing").to_pandas()) == 0


def test_arrow_takes_a_run_and_a_selection() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table(RUN)
    assert table.num_rows == len(RUN.records)
    assert table.column_names == list(export.COLUMNS)
    assert pa.table(RUN.select("nothing")).num_rows == 0


def test_without_pandas_or_arrow_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match="pip install pandas"):
        RUN.to_pandas()
    with pytest.raises(UserError, match="latlab"):
        RUN.__arrow_c_stream__()


def test_csv_has_no_cell_that_a_spreadsheet_runs(tmp_path: Path) -> None:
    evil = [
        msgspec.structs.replace(RUN.records[0], engine=engine, point=model.Point(clock='a\nb,"c"\x1b[31m'))
        for engine in ("=1+1", "+1", "-1", "@x", "\t=1", " =1", "|x", "%x", "\r=1", "\u200b=1")
    ]
    text = Run(RUN.header, evil).to_csv(tmp_path / "run.csv")
    assert (tmp_path / "run.csv").read_text() == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(evil)
    for row in rows:
        assert row["engine"].startswith(("'", "\\u200b"))
        assert row["clock"] == 'a b,"c"\\x1b[31m'
        assert float(row["p50"]) > 0


def test_csv_has_the_ends_of_the_interval_in_their_order() -> None:
    record = RUN["memory.load.dependent"][0]
    (row,) = csv.DictReader(io.StringIO(export.to_csv([record])))
    assert record.interval is not None
    assert record.interval[0] < record.interval[1]
    assert (float(row["p50_lo"]), float(row["p50_hi"])) == record.interval


def test_exports_say_of_how_many_rounds_a_figure_is() -> None:
    (row,) = export.rows(ROUNDS.select("kernel.syscall", operation="getppid"))
    assert (row["rank"], row["rounds"]) == ("headline", 6)
    (detail,) = export.rows(ROUNDS.select("memory.alignment", kind="batch_mean"))
    assert (detail["rank"], detail["rounds"]) == ("detail", 1)


def test_a_run_says_how_many_rounds_it_is_of_and_on_which_cpus() -> None:
    assert ROUNDS.made_of == "6 rounds on CPUs 0 and 1"
    first = [line for line in ROUNDS.lines if line.round == 0]
    assert Run.of_lines(ROUNDS.header, first).made_of == "1 of 6 rounds on CPU 0"


def test_a_run_of_figures_alone_keeps_them_in_its_file(tmp_path: Path) -> None:
    assert load(RUN.save(tmp_path / "copy.latlab.jsonl")) == RUN


def test_numpy_arrays_come_back_without_pickle(tmp_path: Path) -> None:
    RUN.select(kind="batch_mean").to_npz(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as arrays:
        assert arrays["0/values"].tolist() == list(RUN.records[0].values or ())
        assert arrays["index"][0] == "clock.read · tsc"
        assert (arrays["p50_lo"][0], arrays["p50_hi"][0]) == RUN.records[0].interval
        assert arrays["rounds"][0] == 6


def test_json_is_one_object_that_reads_back_the_same(tmp_path: Path) -> None:
    text = ROUNDS.to_json()
    whole = json.loads(text)
    assert whole["schema"] == "latlab.run/2.0"
    assert whole["rounds"] == 6
    assert len(whole["records"]) == len(ROUNDS.records)
    assert len(whole["lines"]) == len(ROUNDS.lines)
    assert whole["footer"]["stopped_by"] == "completed"
    assert "line" not in whole
    assert "line" not in whole["records"][0]
    (tmp_path / "run.json").write_text(text)
    assert load(tmp_path / "run.json") == ROUNDS
    assert json.loads(Run(RUN.header, []).to_json())["footer"] is None


def without_nothing(value: object) -> object:
    """The same without fields that say "none", "not" or "nothing", which may be written or left out."""
    if isinstance(value, dict):
        return {
            name: without_nothing(item)
            for name, item in value.items()
            if item is not None and item is not False and item not in ({}, [])
        }
    return [without_nothing(item) for item in value] if isinstance(value, list) else value


def test_json_keeps_every_field_of_the_lines() -> None:
    lines = [json.loads(line) for line in ROUNDS_PATH.read_text().splitlines()]
    whole = json.loads(ROUNDS.to_json())
    for mine, theirs in some(zip(whole["lines"], lines[1:-1], strict=True)):
        known = {"ops_per_sample": 0, "samples": 0, "observed": {}, "point": {}, "summary": {}, "tail": []}
        for record in (mine, theirs):
            record.update({name: record.get(name) or default for name, default in known.items()})
        del theirs["line"]
        assert without_nothing({**theirs, **mine}) == without_nothing(mine)
        assert without_nothing(mine) == without_nothing(theirs)


def test_a_saved_run_is_the_same_run_and_never_replaces_another(tmp_path: Path) -> None:
    path = ROUNDS.save(tmp_path / "copy.latlab.jsonl")
    assert load(path) == ROUNDS
    with pytest.raises(RunFileError, match="already exists"):
        RUN.save(path)


def test_an_anonymous_run_names_neither_host_nor_folders() -> None:
    settings = msgspec.structs.replace(RUN.settings, dir="/home/synthetic-user/data")
    said = "degraded: /home/synthetic-user on synthetic-host is ext4, see /sys/block/vda"
    record = msgspec.structs.replace(
        RUN.records[0], flags=(said,), findings={"path": ["/home/synthetic-user/data/x"]}
    )
    shared = Run(msgspec.structs.replace(RUN.header, settings=settings), [record], RUN.footer).anonymous()
    text = shared.to_json()
    assert "synthetic" not in text
    assert "/data" not in text
    assert shared.records[0].flags == ("degraded: path-1 on host-1 is ext4, see /sys/block/vda",)
    assert shared.machine.text("cpu.model_name") == "AMD EPYC"
    assert [system["kind"] for system in shared.machine.sections("file_systems")] == ["ext4", "xfs"]


def test_every_field_that_the_schema_marks_as_private_is_left_out() -> None:
    core = pytest.importorskip("latlab._core")
    marked = {
        name
        for definition in json.loads(core.schema_json())["$defs"].values()
        for name, field in definition.get("properties", {}).items()
        if field.get("private")
    }
    assert marked
    assert marked <= {path.rpartition(".")[2] for path in sharing.PRIVATE}


def test_the_complementary_distribution_falls_from_all_to_nothing() -> None:
    record = msgspec.structs.replace(RUN.records[0], values=(3.0, 1.0, 2.0, 2.0))
    assert record.ccdf() == [(1.0, 0.75), (2.0, 0.25)]
    assert msgspec.structs.replace(record, values=None).ccdf() == []


def test_the_complementary_distribution_of_a_histogram_agrees_with_the_summary() -> None:
    pytest.importorskip("latlab._core")
    record = RUN.select("memory.poke", kind="per_op", working_set_bytes=10**9, operation="read")[0]
    points = record.ccdf()
    assert sum(count for _, _, count in record.buckets()) == record.samples
    assert all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(points))
    assert record.summary is not None
    assert record.summary.p99 is not None
    above = [share for value, share in points if value <= record.summary.p99]
    assert above[-1] == pytest.approx(0.01, abs=0.004)


def test_a_damaged_histogram_is_a_run_file_error() -> None:
    pytest.importorskip("latlab._core")
    record = msgspec.structs.replace(
        RUN.records[0],
        histogram=model.EncodedHistogram(encoding="hdr-v2-deflate-base64", unit="ps", data="AAAA"),
    )
    with pytest.raises(RunFileError, match="damaged"):
        record.ccdf()


def test_a_machine_answers_what_it_knows_and_none_for_the_rest() -> None:
    machine = model.Machine({"cpu": {"model_name": "X", "online": [0, 1, "2", True], "boost": False}, "n": 3})
    assert machine.text("cpu.model_name") == "X"
    assert machine.text("cpu.boost") is None
    assert machine.flag("cpu.boost") is False
    assert machine.integers("cpu.online") == [0, 1]
    assert machine.number("n") == 3.0
    assert machine.integer("cpu") is None
    assert machine.at("n.x.y") is None
    assert machine.sections("cpu.online") == []
    assert dict(machine.section("nothing")) == {}


def test_import_latlab_loads_nothing_heavy() -> None:
    program = "import sys, latlab; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "latlab" in loaded
    assert not loaded & {"numpy", "msgspec", "altair", "click", "rich", "sqlite3", "pandas", "latlab._core"}


def test_every_public_name_can_be_imported() -> None:
    import latlab  # noqa: PLC0415

    for name in latlab.__all__:
        assert getattr(latlab, name) is not None
    assert set(latlab.__all__) <= set(dir(latlab))
    with pytest.raises(AttributeError, match="nothing"):
        latlab.nothing  # noqa: B018
