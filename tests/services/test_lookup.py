import logging
import threading

import pytest

from knowledge.domain.document import KnowledgeEntry
from knowledge.domain.lookup import Confidence, Tier
from knowledge.errors import CorruptState, InvalidQuery
from tests.services.world import READER, World, markdown


@pytest.fixture
def world() -> World:
    return World()


def test_a_unique_hit_is_certain_and_makes_no_embedding_and_no_vector_call_D13(world: World) -> None:
    world.upload("api/a.md", markdown("ERR_77", body="Expired card."))
    world.reset_counts()
    answer = world.ask("what is ERR_77?")
    assert answer.primary is not None
    assert answer.primary.confidence is Confidence.HIGH
    assert "Expired card." in answer.primary.content
    assert answer.supplement is None
    assert world.embedder.calls == {}
    assert world.vectors.calls == {}


def test_one_lookup_costs_one_read_of_the_log_and_one_of_the_file_when_nothing_changed(world: World) -> None:
    world.upload("api/a.md", markdown("ERR_77"))
    world.ask("ERR_77")
    world.reset_counts()
    world.ask("ERR_77")
    assert world.registry.calls == {"changes_after": 1}
    assert world.objects.calls == {"read": 1}


def test_several_hits_are_uncertain_and_supplemented_D13(world: World) -> None:
    world.upload("api/a.md", markdown("timeout", body="Gateway timeout explained."))
    world.upload("api/b.md", markdown("timeout", body="Database timeout explained."))
    answer = world.ask("database timeout explained")
    assert answer.primary is not None
    assert answer.primary.source == "knowledge_base/api/a.md"
    assert answer.primary.confidence is Confidence.LOW
    assert answer.supplement is not None
    assert answer.supplement.source == "knowledge_base/api/b.md"


def test_a_weak_keyword_alone_is_not_enough_D13(world: World) -> None:
    world.upload("api/a.md", markdown("for", body="The for loop."))
    answer = world.ask("what is it for")
    assert answer.primary is not None
    assert answer.primary.confidence is Confidence.LOW
    assert world.embedder.calls["embed_query"] == 1


def test_no_hit_is_answered_by_meaning_D13(world: World) -> None:
    world.upload("api/a.md", markdown("ERR_77", body="Restart the settlement worker every night."))
    answer = world.ask("settlement worker restart every night")
    assert answer.primary is None
    assert answer.supplement is not None
    assert answer.supplement.source == "knowledge_base/api/a.md"


@pytest.mark.parametrize("query", ["khgcvyuui", "best pasta recipe in Rome", "今天天气怎么样"])
def test_a_mere_nearest_neighbour_is_not_found_D15_D09(world: World, query: str) -> None:
    world.upload("api/a.md", markdown("ERR_77", body="Restart the settlement worker every night."))
    answer = world.ask(query)
    assert not answer.found
    assert answer.primary is None
    assert answer.supplement is None


def test_an_empty_knowledge_base_finds_nothing_and_is_not_degraded_D16(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    answer = world.ask("anything")
    assert not answer.found
    assert answer.degraded == ()
    assert any(record.message == "knowledge_base_empty" for record in caplog.records)


@pytest.mark.parametrize("port", ["embedder.embed_query", "vectors.search", "registry.generations"])
def test_the_exact_answer_is_given_when_the_semantic_tier_is_down_D15(world: World, port: str) -> None:
    for path in ("api/a.md", "api/b.md"):
        world.upload(path, markdown("timeout"))
    name, method = port.split(".")
    getattr(world, name).broken.add(method)
    answer = world.ask("timeout")
    assert answer.primary is not None
    assert answer.supplement is None
    assert answer.degraded == (Tier.SEMANTIC,)


def test_the_exact_answer_is_given_when_the_semantic_tier_is_slow_D15(world: World) -> None:
    for path in ("api/a.md", "api/b.md"):
        world.upload(path, markdown("timeout"))
    index, lookup = world.instance(semantic_timeout_s=0.05)
    index.load()
    release = threading.Event()
    world.embedder.before["embed_query"] = lambda: release.wait(10)
    answer = lookup.lookup_knowledge(READER, "timeout")
    release.set()
    assert answer.primary is not None
    assert answer.degraded == (Tier.SEMANTIC,)


def test_meaning_answers_while_the_catalog_cannot_be_loaded_D15_D16(world: World) -> None:
    world.upload("api/a.md", markdown("ERR_77", body="Restart the settlement worker every night."))
    world.registry.broken.add("head")
    answer = world.ask("restart the settlement worker every night")
    assert answer.supplement is not None
    assert answer.degraded == (Tier.EXACT,)


def test_a_catalog_that_is_still_loading_does_not_hold_a_lookup_up_D16(world: World) -> None:
    world.upload("api/a.md", markdown("ERR_77", body="Restart the settlement worker every night."))
    index, lookup = world.instance()
    lookup._load_wait_s = 0.05
    release = threading.Event()
    world.registry.before["head"] = lambda: release.wait(10)
    answer = lookup.lookup_knowledge(READER, "restart the settlement worker every night")
    assert answer.supplement is not None
    assert answer.degraded == (Tier.EXACT,)
    release.set()
    assert index.wait_until_loaded(5)
    assert lookup.lookup_knowledge(READER, "ERR_77").primary is not None


def test_what_is_in_memory_answers_while_the_log_is_down(world: World) -> None:
    world.upload("api/a.md", markdown("ERR_77"))
    world.ask("ERR_77")
    world.registry.broken.add("changes_after")
    answer = world.ask("ERR_77")
    assert answer.primary is not None
    assert answer.degraded == (Tier.EXACT,)


def test_a_match_whose_file_is_gone_is_no_match(world: World) -> None:
    world.upload("api/a.md", markdown("timeout"))
    world.upload("api/b.md", markdown("timeout"))
    world.ask("timeout")
    world.objects.delete("knowledge_base/api/a.md")
    answer = world.ask("timeout")
    assert answer.primary is not None
    assert answer.primary.source == "knowledge_base/api/b.md"
    assert answer.primary.confidence is Confidence.HIGH


def test_content_is_cut_after_2000_characters_D12(world: World) -> None:
    world.upload("api/a.md", markdown("ERR_77", body="支" * 3000))
    primary = world.ask("ERR_77").primary
    assert primary is not None
    assert len(primary.content) == 2003
    assert primary.content.endswith("支...")


@pytest.mark.parametrize("query", ["", "   ", "\u200b", "\n\t"])
def test_an_empty_query_is_refused(world: World, query: str) -> None:
    with pytest.raises(InvalidQuery, match="empty"):
        world.ask(query)


def test_an_oversized_query_is_refused(world: World) -> None:
    with pytest.raises(InvalidQuery, match="4000"):
        world.ask("x" * 3_000_000)


def test_sections_are_listed_and_returned_when_asked_for(world: World) -> None:
    body = "# Codes\n\nIntro.\n\n## Causes\n\nA slow bank.\n\n```sh\n# no heading\n```\n\n## Remedy\n\nRetry once.\n"
    world.upload("api/a.md", markdown("ERR_77", body=body))
    plain = world.ask("ERR_77").primary
    assert plain is not None
    assert plain.available_sections is None
    listed = world.ask("ERR_77", include_sections=True).primary
    assert listed is not None
    assert listed.available_sections == ("Codes", "Causes", "Remedy")
    answer = world.ask("ERR_77", section_title="remedy")
    assert answer.section_title == "Remedy"
    assert answer.primary is not None
    assert "Retry once." in answer.primary.content
    assert "slow bank" not in answer.primary.content


def test_an_unknown_section_gives_the_start_and_the_sections_there_are(world: World) -> None:
    world.upload("api/a.md", markdown("ERR_77", body="## Causes\n\nA slow bank.\n"))
    answer = world.ask("ERR_77", section_title="Remedies")
    assert answer.section_title is None
    assert answer.primary is not None
    assert answer.primary.available_sections == ("Causes",)
    assert answer.primary.content.startswith("---")


def test_explain_counts_every_match_and_the_log_a_hundred(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world.index.load()
    world.upload("api/a.md", markdown("gateway z"))
    for n in range(1_200):
        world.index.add(KnowledgeEntry(f"knowledge_base/b/{n:04}.md", "B", (f"gateway {n}",)))
    answer = world.ask("gateway", explain=True)
    assert answer.primary is not None
    assert (answer.primary.source, answer.primary.confidence) == ("knowledge_base/api/a.md", Confidence.LOW)
    assert answer.explanation is not None
    assert answer.explanation["match_count"] == 1_201
    assert [vars(record)["exact_hits"] for record in caplog.records if record.message == "lookup_answered"] == [100]


def test_the_only_file_left_of_very_many_that_a_query_is_a_part_of_is_a_unique_hit(world: World) -> None:
    world.upload("b/z.md", markdown("gateway z"))
    world.ask("gateway")
    for n in range(600):
        world.index.add(KnowledgeEntry(f"knowledge_base/a/{n:04}.md", "A", (f"gateway {n}",)))
    answer = world.ask("gateway", explain=True)
    assert answer.primary is not None
    assert (answer.primary.source, answer.primary.confidence) == ("knowledge_base/b/z.md", Confidence.HIGH)
    assert answer.explanation is not None
    assert answer.explanation["match_count"] == 1


def test_explain_says_what_matched_and_how_long_it_took(world: World) -> None:
    world.upload("api/a.md", markdown("ERR_77"))
    explanation = world.ask("about ERR_77", explain=True).explanation
    assert explanation is not None
    assert explanation["matches"] == [
        {
            "source": "knowledge_base/api/a.md",
            "title": "A title",
            "keywords_in_query": ["err_77"],
            "keywords_containing_query": [],
            "weak": False,
        }
    ]
    assert set(explanation["timings_ms"]) == {"exact_L0"}  # type: ignore[call-overload]


def test_the_query_text_is_never_logged_at_info(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world.upload("api/a.md", markdown("ERR_77"))
    world.ask("secretword about ERR_77")
    assert not any("secretword" in str(vars(record)) for record in caplog.records)


def test_a_file_that_was_away_for_a_moment_is_found_again_when_it_is_back(world: World) -> None:
    """Nothing was committed meanwhile, so no log entry would bring back what an instance had forgotten."""
    world.upload("api/a.md", markdown("ERR_77"))
    world.ask("ERR_77")
    world.objects.delete("knowledge_base/api/a.md")
    assert world.ask("ERR_77").primary is None
    world.drop("knowledge_base/api/a.md", markdown("ERR_77"))
    world.converger.converge("knowledge_base/api/a.md")
    assert world.ask("ERR_77").primary is not None


@pytest.mark.parametrize("error", [CorruptState("injected"), RuntimeError("injected")])
def test_whatever_goes_wrong_in_the_semantic_tier_the_exact_answer_is_given_D15(
    world: World, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    for path in ("api/a.md", "api/b.md"):
        world.upload(path, markdown("timeout"))

    def fail() -> None:
        raise error

    world.registry.before["generations"] = fail
    answer = world.ask("timeout")
    assert answer.primary is not None
    assert answer.degraded == (Tier.SEMANTIC,)
    assert any(record.message == "semantic_tier_failed" for record in caplog.records)


def test_an_unreadable_log_entry_leaves_the_exact_tier_answering(world: World) -> None:
    world.upload("api/a.md", markdown("ERR_77"))
    world.ask("ERR_77")

    def fail() -> None:
        raise CorruptState("injected")

    world.registry.before["changes_after"] = fail
    assert world.ask("ERR_77").primary is not None


def test_half_a_character_in_a_query_is_refused(world: World) -> None:
    with pytest.raises(InvalidQuery, match="UTF-8"):
        world.ask("\ud800abc")


def test_of_a_long_query_the_model_reads_only_what_it_can(world: World) -> None:
    world.upload("api/a.md", "Restart the settlement worker every night.")
    seen: list[str] = []
    embed_query = world.embedder._adapter.embed_query

    def watched(text: str) -> object:
        seen.append(text)
        return embed_query(text)

    world.embedder._adapter.embed_query = watched
    world.semantic.rank("支付" * 2000, top_k=3)
    assert 200 < len(seen[0]) < 1000
