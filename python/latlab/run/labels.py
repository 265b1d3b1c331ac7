"""Labels of kept runs: one small JSON file beside them, so that run files never change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from latlab.errors import UserError
from latlab.run.saving import locked, save
from latlab.run.store import Store
from latlab.text import clean

_NAME: Final = "labels.json"
#: Without what separates the parts of a side of `latlab compare`.
_LABEL: Final = re.compile(r"[^,=@]{1,60}")


def labels(store: Store) -> dict[str, str]:
    """The label of each run that has one, by the run's id.

    Raises:
        UserError: the file is damaged or cannot be read.
    """
    file = _file(store)
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(f"{clean(file, most=300)} cannot be read: {clean(error.strerror or error)}") from None
    except ValueError:
        raise UserError(f"{clean(file, most=300)} is damaged: repair it, or move it away") from None


def checked_label(text: str) -> str:
    """A label without spaces around it; empty for none.

    Raises:
        UserError: it is too long, or holds what a label cannot.
    """
    label = text.strip()
    if label and (not _LABEL.fullmatch(label) or clean(label) != label):
        raise UserError(
            f"label {clean(text, most=80)!r}: use up to 60 characters on one line, without comma, = and @"
        )
    return label


def keep_labels(store: Store, changes: Mapping[str, str]) -> None:
    """Gives runs their labels; an empty one takes a run's label away. Other runs keep theirs.

    Raises:
        UserError: the file is damaged, which leaves it as it is, or cannot be written.
    """
    with locked(store.folder):
        known = labels(store)
        kept = {run: label for run, label in {**known, **changes}.items() if label}
        if kept != known:
            text = msgspec.json.format(msgspec.json.encode(kept), indent=1)
            save(_file(store), text + b"\n")


def _file(store: Store) -> Path:
    return store.folder / _NAME
