"""One probe is one file: what the extension lists is what lies in the tiers' folders."""

from __future__ import annotations

import json
from pathlib import Path

from latlab import _core


def test_every_listed_probe_has_its_file_and_every_file_is_listed(root: Path) -> None:
    source = root / "crates/latlab-probes/src"
    ids = [probe["id"] for probe in json.loads(_core.list_probes())]
    listed = [tier + "/" + rest.replace(".", "_") for tier, _, rest in (name.partition(".") for name in ids)]
    tiers = {name.split("/")[0] for name in listed}
    files = [path for tier in tiers for path in (source / tier).glob("*.rs") if path.name != "mod.rs"]
    assert sorted(listed) == sorted(path.relative_to(source).with_suffix("").as_posix() for path in files)
