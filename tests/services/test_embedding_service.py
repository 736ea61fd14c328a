"""Case D11: a batch of files, some with nothing to embed, over an endpoint that refuses empty and overlong texts."""

from collections.abc import Callable

from knowledge.domain.document import DocumentStatus, doc_id_for
from knowledge.entrypoints.s3_events import IndexerServices, build_handler
from tests.contract.embedding_server import Answer, Call, stand_in
from tests.entrypoints.events import Context
from tests.entrypoints.test_s3_events import dropped
from tests.services.world import World, markdown
from tests.unit.adapters import endpoint
from tests.unit.adapters.network import FakeTime

MAX_CHARS = 512 * 4
PLAIN = [f"knowledge_base/d/{number}.md" for number in range(7)]
EMPTY, BLANK, LONG = (f"knowledge_base/d/{name}.md" for name in ("empty", "blank", "long"))
PATHS = [*PLAIN[:3], EMPTY, BLANK, LONG, *PLAIN[3:]]


def strict(call: Call) -> Answer:
    """One empty or overlong text fails the whole call, as it does at OpenAI."""
    texts = call.body["input"]
    if any(not text.strip() or len(text) > MAX_CHARS for text in texts):
        return endpoint.refusal(400)
    return endpoint.answer(call)


def fill(world: World) -> None:
    for number, path in enumerate(PLAIN):
        world.drop(path, markdown(f"KEY-{number}", body=f"Chapter {number} of the pumpkin ledger."))
    world.drop(EMPTY, "---\ntitle: Nothing more\nkeywords: [ERR_EMPTY]\n---\n")
    world.drop(BLANK, " \n\t\n \n")
    world.drop(LONG, "pumpkin " * 7500)


def indexer(world: World) -> Callable[[list[str]], list[str]]:
    """Delivers messages for the paths; gives the paths whose messages come back."""
    handler = build_handler(
        lambda: IndexerServices(world.converger, world.item_documents, world.queue, max_receive_count=8)
    )

    def deliver(paths: list[str]) -> list[str]:
        answer = handler({"Records": [dropped(path, path) for path in paths]}, Context())
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    return deliver


def statuses(world: World) -> dict[str, DocumentStatus]:
    records = {path: world.registry.read(doc_id_for(path)).record for path in PATHS}
    return {path: record.status for path, record in records.items() if record}


def test_d11_notes_without_text_keep_no_other_from_being_indexed() -> None:
    with stand_in(strict) as server:
        world = World(embedder=endpoint.embedder(server.url, FakeTime()))
        fill(world)
        deliver = indexer(world)
        assert deliver(PATHS) == []
        assert statuses(world) == dict.fromkeys(PATHS, DocumentStatus.INDEXED)
        assert {hit.file_path for hit in world.chunks("pumpkin")} == {*PLAIN, LONG}
        answer = world.ask("what is ERR_EMPTY")
        assert (answer.primary and answer.primary.source) == EMPTY
        record = world.registry.read(doc_id_for(BLANK)).record
        assert record.warnings
        asked = len(server.calls)
        assert deliver(PATHS) == []
        assert len(server.calls) == asked


def test_d11_what_failed_is_tried_again_and_only_that() -> None:
    with stand_in(strict) as server:
        world = World(embedder=endpoint.embedder(server.url, FakeTime()))
        fill(world)
        deliver = indexer(world)
        # As often as one call is tried: the first document fails, the others do not.
        server.faults.extend([endpoint.refusal(503)] * 5)
        assert deliver(PATHS) == [PATHS[0]]
        assert statuses(world) == dict.fromkeys(PATHS, DocumentStatus.INDEXED) | {PATHS[0]: DocumentStatus.PENDING}
        asked = len(server.calls)
        assert deliver(PATHS) == []
        assert statuses(world) == dict.fromkeys(PATHS, DocumentStatus.INDEXED)
        assert len(server.calls) == asked + 1
