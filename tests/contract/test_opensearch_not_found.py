"""Case D09: nonsense is told from a paraphrase in either space of OpenSearch, with the local model."""

import pytest

from knowledge.adapters.local_embedder import LocalEmbedder
from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore
from knowledge.ports import VectorStore
from tests.contract.serverless_standin import Settled
from tests.services.world import World, markdown

NOTES = {
    "settlement": "If a settlement batch hangs, restart the settlement worker and run the reconciliation once more.",
    "certificates": "TLS certificates are renewed thirty days before they expire; the alarm goes to the platform team.",
    "refunds": "A refund goes back to the card within five working days; larger ones need an approval by finance.",
    "failover": "When the primary database is lost, promote the replica in the second zone and repoint the proxy.",
    "limits": "Each merchant may send a hundred requests a second; beyond that the gateway slows them down.",
    "logs": "Logs are kept for ninety days and hold no card numbers; older ones are in cold storage.",
}


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture(params=["cosine", "inner product"])
def world(request: pytest.FixtureRequest, opensearch_alias: str, embedder: LocalEmbedder) -> World:
    store: VectorStore
    if request.param == "cosine":
        store = OpenSearchVectorStore(request.getfixturevalue("opensearch"), alias=opensearch_alias, dimension=384)
    else:
        client, server = request.getfixturevalue("serverless"), request.getfixturevalue("standin")
        serverless = OpenSearchVectorStore(client, alias=opensearch_alias, dimension=384, serverless=True)
        store = Settled(serverless, server)
    made = World(vectors=lambda _: store, embedder=embedder)
    for name, body in NOTES.items():
        made.upload(f"d/{name}.md", markdown(f"key-{name}", title=name.capitalize(), body=body))
    return made


@pytest.mark.parametrize("query", ["khgcvyuui", "best pasta recipe in Rome", "今天天气怎么样"])
def test_d09_nonsense_and_absent_topics_are_not_found(world: World, query: str) -> None:
    answer = world.ask(query)
    assert (answer.found, answer.primary, answer.supplement, answer.degraded) == (False, None, None, ())


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("what should I do when a settlement run is stuck?", "settlement"),
        ("how long until a customer gets the money of a refund back?", "refunds"),
        ("for how many days are logs stored?", "logs"),
    ],
)
def test_d09_a_paraphrase_of_a_note_is_found(world: World, query: str, name: str) -> None:
    answer = world.ask(query)
    assert answer.supplement is not None
    assert answer.supplement.source == f"knowledge_base/d/{name}.md"
    assert answer.degraded == ()
