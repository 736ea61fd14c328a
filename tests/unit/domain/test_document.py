import pytest

from knowledge.domain.document import MAX_KEY_BYTES, KnowledgeBasePath, doc_id_for
from knowledge.errors import InvalidPath, UnsupportedFormat

BASE = KnowledgeBasePath.parse("knowledge_base")


@pytest.mark.parametrize("text", ["knowledge_base", "knowledge_base/", "/knowledge_base", "/knowledge_base/"])
def test_slashes_at_either_end_of_the_prefix_do_not_matter_D19(text: str) -> None:
    assert KnowledgeBasePath.parse(text) == BASE


def test_a_nested_prefix_is_kept_D19() -> None:
    assert KnowledgeBasePath.parse("teams/pay/kb").path_for("api", "x.md") == "teams/pay/kb/api/x.md"


@pytest.mark.parametrize("text", ["", "/", "//", "a//b", "../kb", "a/./b"])
def test_a_prefix_that_is_no_folder_is_refused(text: str) -> None:
    with pytest.raises(InvalidPath):
        KnowledgeBasePath.parse(text)


@pytest.mark.parametrize(
    "file_name",
    [
        "../../index/snapshot.json",
        "/etc/x.md",
        "..%2f..%2fx.md",
        "a\\..\\b.md",
        "a\u0000.md",
        ".md",
        "index/",
        "..",
        "",
        "   ",
        "x" * 1100 + ".md",
        "支" * 400 + ".md",
        "a\nb.md",
        "a\u200bb.md",
        ".hidden.md",
        "\ud800.md",
    ],
)
def test_a_file_name_that_leaves_the_folder_or_cannot_be_a_key_is_refused_I06(file_name: str) -> None:
    with pytest.raises((InvalidPath, UnsupportedFormat)):
        BASE.path_for("api", file_name)


@pytest.mark.parametrize("category", ["", "/", "..", "a/../b", "a//b", ".hidden", "a\\b", "a%2fb", "a/\u0007"])
def test_a_category_that_leaves_the_folder_is_refused(category: str) -> None:
    with pytest.raises(InvalidPath) as refusal:
        BASE.path_for(category, "x.md")
    assert refusal.value.field == "category"


@pytest.mark.parametrize("file_name", ["notes.txt", "report.docx", "scan.pdf", "noextension", "x.md.exe"])
def test_other_formats_are_refused_by_name_D9(file_name: str) -> None:
    with pytest.raises(UnsupportedFormat, match=r"only \.md"):
        BASE.path_for("api", file_name)


@pytest.mark.parametrize(
    "file_name", ["How to deploy (v2).md", "部署 指南.md", "a+b%20c#d.md", "README.MD", "e\u0301.md"]
)
def test_names_as_people_have_them_are_kept_verbatim(file_name: str) -> None:
    assert BASE.path_for("运维/a b", file_name) == f"knowledge_base/运维/a b/{file_name}"


def test_the_longest_possible_key_is_accepted() -> None:
    room = MAX_KEY_BYTES - len("knowledge_base/a/.md")
    assert len(BASE.path_for("a", "x" * room + ".md").encode()) == MAX_KEY_BYTES


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("knowledge_base/x.md", True),
        ("knowledge_base/a/b/c/x.MD", True),
        ("knowledge_base/team/", False),
        ("knowledge_base/.DS_Store", False),
        ("knowledge_base/photo.png", False),
        ("knowledge_base/.md", False),
        ("_index/vectors/x.md", False),
        ("knowledge_base_old/x.md", False),
    ],
)
def test_only_markdown_files_under_the_prefix_are_documents_B06_B08(key: str, expected: bool) -> None:
    assert BASE.holds(key) is expected


def test_ids_are_url_safe_and_tell_compositions_apart() -> None:
    ids = {doc_id_for(path) for path in ("kb/é.md", "kb/e\u0301.md", "kb/a b+c%20#.md", "kb/部署.md")}
    assert len(ids) == 4
    assert all(doc_id.isascii() and doc_id.isalnum() and len(doc_id) == 26 for doc_id in ids)
