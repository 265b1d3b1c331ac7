"""Everything that is shown of one question, in the order of a page: a new one is a file and its name here."""

from __future__ import annotations

from typing import Final

from latlab.topics import loaded, storage_random, storage_rate

MEMORY: Final = (loaded.TOPIC,)
STORAGE: Final = (storage_random.TOPIC, storage_rate.TOPIC)
TOPICS: Final = (*MEMORY, *STORAGE)
