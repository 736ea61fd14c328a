"""What is found while 16 threads change the same documents, over a real node."""

import itertools
import random
import threading
import time
from dataclasses import dataclass

from opensearchpy import OpenSearch

from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore
from knowledge.domain.document import doc_id_for
from knowledge.errors import Conflict, NotFound
from tests.services.world import ADMIN, World, markdown

THREADS = 16
NAMES = ("a", "b", "c", "d")
# On a slow machine fewer changes fit; then the threads go on, this long.
SECONDS, LONGEST_S = 8.0, 60.0


@dataclass
class Change:
    """One upload or delete, from its call to its return."""

    started: float
    text: str = ""
    """Unique to this upload; empty for a delete."""
    ended: float = float("inf")
    has_succeeded: bool = False


class Crowd:
    """Threads that change and look at the same documents; what they did and found is noted."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.changes: dict[str, list[Change]] = {path_of(name): [] for name in NAMES}
        self.found: list[tuple[str, str, float, float]] = []
        """Path, text, and when the lookup that found it began and ended."""
        self.errors: list[Exception] = []

    def run(self) -> None:
        """Returns after some seconds, when there were enough changes."""
        began = time.monotonic()
        threads = [threading.Thread(target=self._work, args=(number, began)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def count(self, *, uploads: bool) -> int:
        """The uploads or deletes that took effect."""
        return sum(
            change.has_succeeded and bool(change.text) is uploads
            for changes in self.changes.values()
            for change in tuple(changes)
        )

    def stale(self) -> list[str]:
        """What was found although it had not been current at any moment of its lookup."""
        return [found[1] for found in self.found if not self._may_be_current(*found)]

    def _is_over(self, began: float) -> bool:
        seconds = time.monotonic() - began
        enough = min(self.count(uploads=True), self.count(uploads=False)) > THREADS
        return seconds > (SECONDS if enough else LONGEST_S)

    def _work(self, number: int, began: float) -> None:
        dice = random.Random(number)  # noqa: S311 - test data
        try:
            for turn in itertools.count():
                if self._is_over(began):
                    return
                action = dice.choice(("upload", "upload", "delete", "look"))
                if action != "look":
                    text = f"version {number}-{turn}." if action == "upload" else ""
                    self._change(dice.choice(NAMES), text)
                self._look()
        except Exception as error:  # noqa: BLE001 - a thread's error has to be shown by the test
            self.errors.append(error)

    def _change(self, name: str, text: str) -> None:
        made = Change(time.monotonic(), text)
        self.changes[path_of(name)].append(made)
        try:
            if text:
                self.world.upload(f"d/{name}.md", markdown("key", body=f"The pumpkin ledger says {text}"))
            else:
                self.world.documents.delete_document(ADMIN, doc_id_for(path_of(name)))
            made.has_succeeded = True
        except (Conflict, NotFound):
            pass  # Somebody else was quicker.
        made.ended = time.monotonic()

    def _look(self) -> None:
        began = time.monotonic()
        hits = self.world.semantic.rank("the pumpkin ledger says", top_k=10).hits
        ended = time.monotonic()
        self.found.extend((hit.chunk.file_path, hit.chunk.text, began, ended) for hit in hits)

    def _may_be_current(self, path: str, text: str, began: float, ended: float) -> bool:
        """False when its upload came later, had failed before, or was followed by a whole change before the lookup."""
        (upload,) = [change for change in self.changes[path] if change.text and change.text in text]
        if upload.started > ended or (upload.ended < began and not upload.has_succeeded):
            return False
        return not any(
            change.has_succeeded and change.started > upload.ended and change.ended < began
            for change in self.changes[path]
        )


def path_of(name: str) -> str:
    return f"knowledge_base/d/{name}.md"


def test_deleting_and_uploading_again_under_16_threads_never_gives_a_stale_chunk(
    opensearch: OpenSearch, opensearch_alias: str
) -> None:
    world = World(vectors=lambda _: OpenSearchVectorStore(opensearch, alias=opensearch_alias, dimension=256))
    crowd = Crowd(world)
    crowd.run()
    assert crowd.errors == []
    assert crowd.stale() == []
    assert crowd.count(uploads=True) > THREADS
    assert crowd.count(uploads=False) > THREADS
    assert len({text for _, text, _, _ in crowd.found}) > THREADS
    for path in crowd.changes:
        world.objects.delete(path)
        # The second time for a generation that two were removing at once.
        world.converger.converge(path)
        world.converger.converge(path)
    assert world.chunks("pumpkin ledger") == []
