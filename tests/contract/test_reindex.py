import pytest

from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.domain.lookup import Tier
from knowledge.errors import DependencyUnavailable
from knowledge.services.reindex import Reindex
from tests.services.world import World, markdown


class Successor(HashingEmbedder):
    """The same vectors under another name, as of a new release of a model."""

    @property
    def name(self) -> str:
        return "hashing-4"


def changed() -> World:
    """A base of three documents whose embedder has just been changed."""
    world = World()
    for name in ("a", "b", "c"):
        world.upload(f"kb/{name}.md", markdown(f"ERR_{name}", body=f"The {name} worker must be restarted every night."))
    world.embedder._adapter = Successor()
    return world


def reindex(world: World) -> Reindex:
    return Reindex(world.registry, world.converger, world.vectors, world.embedder)


def test_until_it_is_done_meaning_is_refused_and_exact_answers_go_on() -> None:
    world = changed()
    assert world.ask("ERR_a").primary is not None
    answer = world.ask("the b worker must be restarted every night")
    assert (answer.found, answer.degraded) == (False, (Tier.SEMANTIC,))
    assert len(list(reindex(world).run())) == 3
    answer = world.ask("the b worker must be restarted every night")
    assert answer.supplement is not None
    assert answer.supplement.source == "knowledge_base/kb/b.md"
    assert {
        record.embedder for record in world.registry.list(path_prefix="", status=None, cursor=None, limit=10).records
    } == {"hashing-4"}


def test_broken_off_it_goes_on_where_it_stopped() -> None:
    world = changed()
    next(reindex(world).run())
    assert world.vectors.notes()["embedder"] == "hashing-3gram"
    world.reset_counts()
    assert len(list(reindex(world).run())) == 3
    assert world.embedder.calls["embed_passages"] == 2
    assert world.vectors.notes()["embedder"] == "hashing-4"


def test_while_a_document_is_not_embedded_the_index_does_not_claim_to_be() -> None:
    world = changed()
    world.embedder.broken.add("embed_passages")
    assert len(list(reindex(world).run())) == 3
    assert world.vectors.notes()["embedder"] == "hashing-3gram"
    world.registry.broken.add("list")
    with pytest.raises(DependencyUnavailable):
        list(reindex(world).run())
