"""Generated documents for the benchmarks: as many as wanted, the same in every run, half of them Chinese."""

import random

from knowledge.domain.document import KnowledgeEntry

_ENGLISH = [
    "gateway",
    "ledger",
    "refund",
    "webhook",
    "partition",
    "replica",
    "settlement",
    "invoice",
    "cursor",
    "quota",
]
_CHINESE = ["网关", "账本", "退款", "回调", "分区", "副本", "结算", "发票", "游标", "配额", "令牌", "重试", "限流"]


def entries(count: int, *, keywords: int = 5) -> list[KnowledgeEntry]:
    """`count` catalog entries with distinct error codes and a few shared terms."""
    dice = random.Random(7)  # noqa: S311 - the same documents in every run
    made = []
    for number in range(count):
        words = _CHINESE if number % 2 else _ENGLISH
        joint = "" if number % 2 else " "
        terms = [joint.join(dice.sample(words, 2)) + joint + str(number % 1000) for _ in range(keywords - 1)]
        made.append(
            KnowledgeEntry(
                file_path=f"knowledge_base/team-{number % 20:02}/document-{number:06}.md",
                title=f"Document {number}",
                keywords=(f"ERR-{number:06}", *terms),
                summary=f"What {terms[0]} means and what to do about it",
            )
        )
    return made


def markdown_of(entry: KnowledgeEntry) -> bytes:
    """The document behind an entry, about 2 KB."""
    listed = ", ".join(entry.keywords)
    body = "\n\n".join(f"## Step {n}\n\n{'Look at the dashboard before anything else. ' * 8}" for n in range(5))
    return (
        f"---\ntitle: {entry.title}\nkeywords: [{listed}]\nsummary: {entry.summary}\n---\n# {entry.title}\n\n{body}\n"
    ).encode()


def queries(count: int, documents: int) -> list[str]:
    """Queries of about 50 characters: a third with an error code, a third with shared terms, a third with nothing."""
    dice = random.Random(11)  # noqa: S311 - the same queries in every run
    kinds = (
        lambda: f"what does ERR-{dice.randrange(documents):06} mean in production today?",
        lambda: (
            f"线上出现{dice.choice(_CHINESE)}{dice.choice(_CHINESE)}{dice.randrange(1000)}的告警，应该先检查哪一个面板再处理？"
        ),
        lambda: "how long does the train take from the airport to town",
    )
    return [kinds[number % 3]() for number in range(count)]
