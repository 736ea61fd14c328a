import pytest

from knowledge.domain.access import Principal, Role
from knowledge.domain.document import DocId, DocumentStatus, doc_id_for
from knowledge.errors import (
    Conflict,
    DependencyUnavailable,
    InvalidInput,
    InvalidPath,
    NotFound,
    NotPermitted,
    TooLarge,
    UnsupportedFormat,
    VersionConflict,
)
from knowledge.services.converge import Converger
from knowledge.services.preparation import Preparation
from tests.services.world import ADMIN, READER, World, markdown

PATH = "knowledge_base/api/errors.md"


@pytest.fixture
def world() -> World:
    return World()


def is_untouched(world: World) -> bool:
    return not list(world.objects.list("")) and world.registry.head().version == 0


def test_the_bytes_are_stored_unchanged_at_category_and_file_name_D5(world: World) -> None:
    content = b"\xef\xbb\xbf---\r\ntitle: A\r\n---\r\nbody \xe6\x94\xaf"
    result = world.upload("api/errors.md", content)
    assert result.record.file_path == PATH
    stored = world.objects.read(PATH, max_bytes=1000)
    assert stored.body == content


def test_frontmatter_becomes_metadata_and_reserved_fields_stay_D1_D6(world: World) -> None:
    text = "---\ntitle: A\nkeywords: [k]\nsections: [s]\ncategory: other\nowner: {team: pay}\n---\nbody"
    record = world.upload("api/errors.md", text).record
    assert record.metadata == {
        "title": "A",
        "keywords": ["k"],
        "sections": ["s"],
        "category": "other",
        "owner": {"team": "pay"},
    }
    assert record.status is DocumentStatus.INDEXED


def test_without_frontmatter_the_metadata_is_null_D6(world: World) -> None:
    assert world.upload("api/errors.md", "# Plain\n\ntext").record.metadata is None


def test_broken_frontmatter_is_a_warning_naming_the_line_and_the_document_is_still_found_A04(world: World) -> None:
    record = world.upload("api/errors.md", "---\ntitle: Error: disk full\n---\nThe disk is full of logs.").record
    assert record.status is DocumentStatus.INDEXED
    assert record.metadata is None
    assert any("line 2" in warning for warning in record.warnings)
    answer = world.ask("disk is full of logs")
    assert answer.primary is None
    assert answer.supplement is not None
    assert answer.supplement.source == PATH


@pytest.mark.parametrize("block", ["on: push", "content: draft", "handler: x", "2024-01-01: kick-off", "~: nothing"])
def test_any_key_an_author_writes_is_kept_A12(world: World, block: str) -> None:
    record = world.upload("api/errors.md", f"---\ntitle: A\n{block}\n---\nbody").record
    assert record.status is DocumentStatus.INDEXED
    assert record.metadata is not None
    assert len(record.metadata) == 2


def test_dates_stay_the_text_the_author_typed_A02(world: World) -> None:
    block = "created: 2026-04-14\nnested: {review: {due: 2026-05-01}}\nhistory: [2026-01-02T03:04:05Z]"
    record = world.upload("api/errors.md", f"---\n{block}\n---\nbody").record
    assert record.metadata == {
        "created": "2026-04-14",
        "nested": {"review": {"due": "2026-05-01"}},
        "history": ["2026-01-02T03:04:05Z"],
    }


@pytest.mark.parametrize(
    ("path", "content", "error"),
    [
        ("api/notes.txt", b"x", UnsupportedFormat),
        ("api/report.docx", b"x", UnsupportedFormat),
        ("api/scan.pdf", b"x", UnsupportedFormat),
        ("../secrets/x.md", b"x", InvalidPath),
        ("/x.md", b"x", InvalidPath),
        ("api/", b"x", InvalidPath),
        ("api/x.md", b"\xff\xfe#\x00", UnsupportedFormat),
        ("api/x.md", b"caf\xe9", UnsupportedFormat),
        ("api/x.md", b"x" * (1024 * 1024 + 1), TooLarge),
    ],
)
def test_what_is_refused_is_named_and_nothing_is_stored_D9(
    world: World, path: str, content: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        world.upload(path, content)
    assert is_untouched(world)


def test_a_reader_may_not_upload_or_delete(world: World) -> None:
    with pytest.raises(NotPermitted, match="writer"):
        world.documents.upload_document(READER, category="api", file_name="x.md", content=b"x")
    writer = Principal("w", Role.WRITER)
    record = world.documents.upload_document(writer, category="api", file_name="x.md", content=b"x").record
    with pytest.raises(NotPermitted, match="reviewer"):
        world.documents.delete_document(writer, record.doc_id)
    assert world.objects.stat(record.file_path) is not None


def test_the_next_lookup_in_any_instance_sees_an_upload_D7(world: World) -> None:
    others = [world.instance()[1] for _ in range(3)]
    for lookup in others:
        assert not lookup.lookup_knowledge(READER, "ERR_77").found
    world.upload("api/errors.md", markdown("ERR_77"))
    for lookup in others:
        primary = lookup.lookup_knowledge(READER, "ERR_77").primary
        assert primary is not None
        assert primary.source == PATH


def test_a_document_without_frontmatter_is_not_in_the_exact_tier_D7(world: World) -> None:
    world.upload("api/errors.md", "# ERR_77\n\nERR_77 means the card expired")
    world.index.refresh()
    assert world.index.exact_match("ERR_77") == []


def test_losing_its_frontmatter_takes_a_document_out_of_the_exact_tier(world: World) -> None:
    world.upload("api/errors.md", markdown("ERR_77"))
    world.index.refresh()
    assert len(world.index.exact_match("ERR_77")) == 1
    world.upload("api/errors.md", "plain text now")
    world.index.refresh()
    assert world.index.exact_match("ERR_77") == []


@pytest.mark.parametrize("port", ["registry", "objects"])
def test_a_failed_store_raises_and_leaves_nothing_behind_D8(world: World, port: str) -> None:
    broken = {"registry": "commit", "objects": "put"}[port]
    getattr(world, port).broken.add(broken)
    with pytest.raises(DependencyUnavailable):
        world.upload("api/errors.md", markdown("ERR_77"))
    getattr(world, port).broken.clear()
    assert is_untouched(world)
    assert world.chunks("text") == []
    assert not world.ask("ERR_77").found


def test_a_failed_replacement_leaves_the_previous_version_served_D8(world: World) -> None:
    world.upload("api/errors.md", markdown("ERR_OLD"))
    world.registry.broken.add("commit")
    with pytest.raises(DependencyUnavailable):
        world.upload("api/errors.md", markdown("ERR_NEW"))
    world.registry.broken.clear()
    assert b"ERR_OLD" in world.objects.read(PATH, max_bytes=1000).body
    primary = world.ask("ERR_OLD").primary
    assert primary is not None
    assert "ERR_OLD" in primary.content
    assert not world.ask("ERR_NEW").found


def test_an_instance_that_scanned_during_a_failing_upload_forgets_it(world: World) -> None:
    world.upload("api/errors.md", markdown("ERR_OLD"))
    other_index, other = world.instance()
    world.registry.before["commit"] = other_index.load
    commit = world.registry._adapter.commit
    fail_once = iter([True])

    def failing(changes: object) -> None:
        if next(fail_once, False):
            raise DependencyUnavailable("registry", "injected")
        commit(changes)

    world.registry._adapter.commit = failing
    with pytest.raises(DependencyUnavailable):
        world.upload("api/errors.md", markdown("ERR_NEW"))
    assert not other.lookup_knowledge(READER, "ERR_NEW").found
    assert other.lookup_knowledge(READER, "ERR_OLD").found


def test_a_commit_whose_answer_was_lost_is_undone_completely(world: World) -> None:
    world.registry.broken_after_effect.add("commit")
    with pytest.raises(DependencyUnavailable):
        world.upload("api/errors.md", markdown("ERR_77"))
    world.registry.broken_after_effect.clear()
    world.converger.converge(PATH)
    assert not list(world.objects.list("knowledge_base/"))
    assert world.registry.read(doc_id_for(PATH)).record is None
    assert not world.ask("ERR_77").found


def test_a_failed_embedding_leaves_the_document_readable_and_pending(world: World) -> None:
    world.embedder.broken.add("embed_passages")
    record = world.upload("api/errors.md", markdown("ERR_77")).record
    assert record.status is DocumentStatus.PENDING
    assert record.reason
    primary = world.ask("ERR_77").primary
    assert primary is not None
    world.embedder.broken.clear()
    finished = world.converger.converge(PATH)
    assert finished is not None
    assert finished.status is DocumentStatus.INDEXED
    assert finished.reason is None


def test_a_second_failed_try_writes_nothing_more(world: World) -> None:
    world.embedder.broken.add("embed_passages")
    world.upload("api/errors.md", markdown("ERR_77"))
    head = world.registry.head().version
    world.converger.converge(PATH)
    assert world.registry.head().version == head


def test_a_document_given_up_says_why_and_is_tried_again_when_looked_at(world: World) -> None:
    world.embedder.broken.add("embed_passages")
    doc_id = world.upload("api/errors.md", markdown("ERR_77")).record.doc_id
    world.converger.give_up(PATH)
    record = world.reader.get_document(READER, doc_id)
    assert record.status is DocumentStatus.FAILED
    assert record.reason is not None
    assert "given up" in record.reason
    assert world.ask("ERR_77").primary is not None
    world.embedder.broken.clear()
    world.converger.converge(PATH)
    assert world.reader.get_document(READER, doc_id).status is DocumentStatus.INDEXED


def test_embedding_that_runs_out_of_time_goes_on_from_where_it_stopped(world: World) -> None:
    body = "\n\n".join(f"## Part {n}\n\nText of part {n}, which is long enough." for n in range(20))
    world.drop(PATH, body)
    first = world.converger.converge(PATH, deadline=float("-inf"))
    assert first is not None
    assert (first.status, first.embedded_count, first.chunk_count) == (DocumentStatus.PENDING, 0, 20)
    ticks = iter([*[0.0] * 6, 9.0])  # three looks at the clock for each batch
    world.preparation.vectors._clock = lambda: next(ticks)
    second = world.converger.converge(PATH, deadline=5.0)
    assert second is not None
    assert (second.status, second.embedded_count) == (DocumentStatus.PENDING, 8)
    world.preparation.vectors._clock = lambda: 0.0
    world.reset_counts()
    third = world.converger.converge(PATH, deadline=5.0)
    assert third is not None
    assert third.status is DocumentStatus.INDEXED
    assert world.embedder.calls["embed_passages"] == 3


def test_the_same_content_again_embeds_nothing_and_keeps_one_document_I02(world: World) -> None:
    first = world.upload("api/errors.md", markdown("ERR_77"))
    world.reset_counts()
    second = world.upload("api/errors.md", markdown("ERR_77"))
    assert (first.created, second.created) == (True, False)
    assert second.record.doc_id == first.record.doc_id
    assert second.record.generation == first.record.generation
    assert world.embedder.calls == {}
    assert world.vectors.calls == {}
    assert len(world.reader.list_documents(READER).records) == 1


def test_a_shorter_version_leaves_no_old_chunk_behind_I02(world: World) -> None:
    long = "\n\n".join(f"## Part {n}\n\nUnique text number{n}." for n in range(9))
    assert world.upload("api/errors.md", long).record.chunk_count == 9
    short = "\n\n".join(f"## Part {n}\n\nUnique text number{n}." for n in range(3))
    world.reset_counts()
    assert world.upload("api/errors.md", short).record.chunk_count == 3
    hits = world.chunks("unique text number8")
    assert len(hits) == 3
    assert world.embedder.calls["embed_passages"] == 0


def test_the_same_content_under_two_names_is_two_documents_I02(world: World) -> None:
    world.upload("api/a.md", markdown("ERR_77"))
    world.upload("api/b.md", markdown("ERR_77"))
    assert len(world.reader.list_documents(READER).records) == 2


def test_an_empty_file_says_so_and_embeds_nothing_B06(world: World) -> None:
    record = world.upload("api/empty.md", b"").record
    assert any("empty document" in warning for warning in record.warnings)
    assert world.embedder.calls == {}


def test_a_document_of_only_frontmatter_is_found_by_keyword_without_a_vector_D11(world: World) -> None:
    world.upload("api/errors.md", "---\ntitle: A\nkeywords: [ERR_77]\n---\n")
    assert world.embedder.calls == {}
    assert world.ask("ERR_77").primary is not None


def test_weak_keywords_are_reported_by_the_upload(world: World) -> None:
    record = world.upload("api/errors.md", markdown("for", "vpn")).record
    assert [warning for warning in record.warnings if "'for'" in warning]
    assert not [warning for warning in record.warnings if "'vpn'" in warning]


def test_the_list_of_warnings_is_bounded(world: World) -> None:
    keywords = [f"{chr(0x4E00 + n)}" for n in range(500)]
    record = world.upload("api/errors.md", markdown(*keywords)).record
    assert len(record.warnings) <= 21
    assert "480 more" in record.warnings[-1]


def test_a_deleted_document_is_found_by_neither_tier_in_any_instance_D18_I01(world: World) -> None:
    text = markdown("ERR_77", body="The card number was mistyped by the customer.")
    record = world.upload("api/errors.md", text).record
    _, other = world.instance()
    assert other.lookup_knowledge(READER, "ERR_77").found
    world.documents.delete_document(ADMIN, record.doc_id)
    for lookup in (world.lookup, other, world.instance()[1]):
        assert not lookup.lookup_knowledge(READER, "ERR_77").found
        assert not lookup.lookup_knowledge(READER, "card number was mistyped by the customer").found
    assert world.reader.list_documents(READER).records == ()
    assert world.chunks("card") == []


def test_vectors_that_could_not_be_removed_are_never_returned_and_removed_later_I01(world: World) -> None:
    record = world.upload("api/errors.md", markdown("ERR_77", body="The card number was mistyped.")).record
    world.vectors.broken.add("delete")
    world.documents.delete_document(ADMIN, record.doc_id)
    assert not world.ask("the card number was mistyped").found
    world.vectors.broken.clear()
    world.converger.converge(PATH)
    assert world.chunks("card") == []
    assert world.registry.read(record.doc_id).discarded == ()


def test_deleting_what_is_not_there_is_not_found_and_changes_nothing_D18(world: World) -> None:
    world.upload("api/errors.md", markdown("ERR_77"))
    head = world.registry.head().version
    with pytest.raises(NotFound):
        world.documents.delete_document(ADMIN, DocId("nosuchdocument"))
    assert world.registry.head().version == head


def test_deleting_twice_is_not_found_the_second_time(world: World) -> None:
    doc_id = world.upload("api/errors.md", markdown("ERR_77")).record.doc_id
    world.documents.delete_document(ADMIN, doc_id)
    with pytest.raises(NotFound):
        world.documents.delete_document(ADMIN, doc_id)


def test_a_delete_during_the_embedding_wins_I03(world: World) -> None:
    world.drop(PATH, markdown("ERR_77"))
    world.embedder.before["embed_passages"] = lambda: world.objects.delete(PATH)
    world.converger.converge(PATH)
    world.converger.converge(PATH)
    assert world.registry.read(doc_id_for(PATH)).record is None
    assert world.chunks("text") == []


def test_a_newer_version_committed_during_the_embedding_wins_I03(world: World) -> None:
    world.drop(PATH, markdown("ERR_OLD", body="The old text."))
    world.embedder.before["embed_passages"] = lambda: world.upload(
        "api/errors.md", markdown("ERR_NEW", body="New text.")
    )
    world.converger.converge(PATH)
    world.index.refresh()
    assert [entry.keywords for entry in world.index.entries] == [("ERR_NEW",)]
    hits = world.chunks("text")
    assert ["New text." in hit.text for hit in hits] == [True]


def test_an_older_content_is_never_written_over_a_newer_one(world: World) -> None:
    """The object is replaced and committed by another process right after this one has read the record."""
    world.drop(PATH, markdown("ERR_OLD"))
    world.objects.before["read"] = lambda: world.upload("api/errors.md", markdown("ERR_NEW"))
    world.converger.converge(PATH)
    world.index.refresh()
    assert [entry.keywords for entry in world.index.entries] == [("ERR_NEW",)]


def test_a_document_that_keeps_changing_is_a_conflict_and_not_an_endless_loop(world: World) -> None:
    world.drop(PATH, "text")

    def lose(changes: object) -> None:
        raise VersionConflict(PATH)

    world.registry._adapter.commit = lose
    with pytest.raises(Conflict, match="kept changing"):
        world.converger.converge(PATH)
    assert world.registry.calls["commit"] == 10
    assert world.chunks("text") == []


@pytest.mark.parametrize("key", ["knowledge_base/team/", "knowledge_base/a.txt", "_index/x.md", "other/x.md"])
def test_keys_that_are_no_documents_are_left_alone_B06_B08(world: World, key: str) -> None:
    world.drop(key, "text")
    assert world.converger.converge(key) is None
    assert world.registry.head().version == 0


def test_a_dropped_file_that_is_not_utf8_is_failed_with_the_reason_and_not_retried(world: World) -> None:
    world.drop(PATH, b"\xff\xfe\x00")
    record = world.converger.converge(PATH)
    assert record is not None
    assert record.status is DocumentStatus.FAILED
    assert record.reason is not None
    assert "UTF-8" in record.reason
    head = world.registry.head().version
    world.converger.converge(PATH)
    assert world.registry.head().version == head


def test_a_dropped_file_that_is_too_large_is_failed_and_in_no_tier() -> None:
    world = World(max_document_bytes=100)
    world.drop(PATH, markdown("ERR_77", body="x" * 200))
    record = world.converger.converge(PATH)
    assert record is not None
    assert record.status is DocumentStatus.FAILED
    world.index.load()
    assert not world.index.entries


def test_unchanged_content_costs_two_calls_and_writes_nothing_B08(world: World) -> None:
    world.upload("api/errors.md", markdown("ERR_77"))
    world.reset_counts()
    world.converger.converge(PATH)
    assert world.registry.calls == {"read": 1}
    assert world.objects.calls == {"stat": 1}


def test_the_list_is_paged_in_path_order_and_filtered_by_category_and_status(world: World) -> None:
    for path in ("api/b.md", "api/a.md", "api/v2/c.md", "apis/d.md", "ops/e.md"):
        world.upload(path, markdown("k"))
    world.drop("knowledge_base/ops/f.md", b"\xff")
    world.converger.converge("knowledge_base/ops/f.md")
    names = []
    cursor = None
    while True:
        page = world.reader.list_documents(READER, cursor=cursor, limit=2)
        names += [record.file_path.removeprefix("knowledge_base/") for record in page.records]
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    assert names == ["api/a.md", "api/b.md", "api/v2/c.md", "apis/d.md", "ops/e.md", "ops/f.md"]
    in_api = world.reader.list_documents(READER, category="api").records
    assert [record.file_path for record in in_api] == [f"knowledge_base/api/{n}" for n in ("a.md", "b.md", "v2/c.md")]
    failed = world.reader.list_documents(READER, status=DocumentStatus.FAILED).records
    assert [record.file_path for record in failed] == ["knowledge_base/ops/f.md"]


def test_content_is_text_or_a_link(world: World) -> None:
    record = world.upload("api/errors.md", "# 中文\r\n").record
    assert world.reader.get_content(READER, record.doc_id).text == "# 中文\r\n"
    world.drop("knowledge_base/api/bad.md", b"\xff")
    world.converger.converge("knowledge_base/api/bad.md")
    content = world.reader.get_content(READER, doc_id_for("knowledge_base/api/bad.md"))
    assert content.text is None
    assert content.download_url


def test_a_document_that_was_too_large_is_indexed_once_the_limit_is_raised() -> None:
    small = World(max_document_bytes=100)
    small.drop(PATH, markdown("ERR_77", body="x" * 200))
    assert small.converger.converge(PATH) is not None
    preparation = Preparation(small.objects, small.vectors, small.embedder, max_document_bytes=1000)
    record = Converger(small.objects, small.registry, preparation, small.base).converge(PATH)
    assert record is not None
    assert record.status is DocumentStatus.INDEXED


def test_a_lost_race_does_not_embed_again_what_was_embedded(world: World) -> None:
    world.drop(PATH, "\n\n".join(f"## Part {n}\n\nText of part {n}." for n in range(8)))
    commit, lost = world.registry._adapter.commit, iter([True])

    def lose_once(changes: object) -> None:
        if next(lost, False):
            raise VersionConflict(PATH)
        commit(changes)

    world.registry._adapter.commit = lose_once
    world.converger.converge(PATH)
    assert world.embedder.calls["embed_passages"] == 2


def test_broken_frontmatter_is_not_taken_for_a_heading(world: World) -> None:
    text = "---\ntitle: Payment: errors\nkeywords: [a]\n---\n\n# Real heading\n\ntext"
    assert world.upload("api/errors.md", text).record.title == "Real heading"
    assert any(chunk.text == "Real heading\n\ntext" for chunk in world.chunks("text"))


def test_a_text_that_the_embedder_refuses_fails_its_document_and_no_other(world: World) -> None:
    def refuse() -> None:
        raise InvalidInput("the text is too long for the model")

    world.embedder.before["embed_passages"] = refuse
    record = world.upload("api/errors.md", markdown("ERR_77")).record
    assert (record.status, record.reason) == (DocumentStatus.FAILED, "the text is too long for the model")
    assert world.ask("ERR_77").primary is not None
    assert world.upload("api/other.md", markdown("ERR_78")).record.status is DocumentStatus.INDEXED


def test_a_file_that_comes_back_as_it_was_reaches_an_instance_that_scanned_while_it_was_away(world: World) -> None:
    world.upload("api/errors.md", markdown("ERR_77"))
    world.objects.delete(PATH)
    world.index.load()
    world.drop(PATH, markdown("ERR_77"))
    world.reset_counts()
    world.converger.converge(PATH)
    assert world.ask("ERR_77").primary is not None
    assert world.embedder.calls == {}


def test_a_slow_converge_does_not_bring_back_what_was_replaced_and_deleted_meanwhile_I03(world: World) -> None:
    world.drop(PATH, markdown("ERR_77", body="Version one."))

    def meanwhile() -> None:
        category, _, name = PATH.removeprefix("knowledge_base/").rpartition("/")
        world.upload(f"{category}/{name}", markdown("ERR_77", body="Version two."))
        world.documents.delete_document(ADMIN, doc_id_for(PATH))

    world.embedder.before["embed_passages"] = meanwhile
    assert world.converger.converge(PATH) is None
    assert world.registry.read(doc_id_for(PATH)).record is None
    assert world.chunks("version") == []
    assert not world.ask("ERR_77").found
