"""One probe is one file: what the extension lists is what lies in the tiers' folders."""

from __future__ import annotations

import json
from pathlib import Path

from latlab import _core


def test_every_listed_probe_has_its_file_and_every_file_is_listed(root: Path) -> None:
    ids = [probe["id"] for probe in json.loads(_core.list_probes())]
    listed = [tier + "/" + rest.replace(".", "_") for tier, _, rest in (name.partition(".") for name in ids)]
    tiers = {name.split("/")[0] for name in listed}
    folders = [path for path in root.glob("crates/latlab-probes-*/src/*") if path.name in tiers]
    files = [path for folder in folders for path in folder.glob("*.rs") if path.name != "mod.rs"]
    assert sorted(listed) == sorted(f"{path.parent.name}/{path.stem}" for path in files)
