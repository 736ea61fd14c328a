"""Generated documents for the benchmarks: as many as wanted, the same in every run, no keyword twice, half Chinese."""

import random
from collections.abc import Sequence

from knowledge.domain.document import KnowledgeEntry

_ENGLISH = """
    gateway ledger refund webhook partition replica settlement invoice cursor quota token retry throttle cluster
    broker consumer snapshot migration schema certificate timeout checkpoint scheduler balance merchant payout
    chargeback currency region shard tenant policy audit backlog channel session cache deadlock rollout canary
    """
_CHINESE = """
    网关 账本 退款 回调 分区 副本 结算 发票 游标 配额 令牌 重试 限流 集群 代理 消费者 快照 迁移 表结构 证书 超时 检查点
    调度器 余额 商户 出款 拒付 币种 地域 分片 租户 策略 审计 积压 渠道 会话 缓存 死锁 发布 灰度
    """
# What the rest of a query is made of.
_FILLING = (
    "was seen again on the new cluster in production since this morning, what should be done",
    "又出现在生产环境的新集群里了，从今天早上开始一直有告警，应该先检查哪一个面板，再找谁处理，需要马上回滚这次上线吗，还是先扩容再观察",
)
# What a person pastes: one line of an error message, or one sentence. Source: the measure.
QUERY_CHARS = 50


def entries(count: int, *, keywords: int = 5) -> list[KnowledgeEntry]:
    """`count` catalog entries; every second one is Chinese, and no two keywords of all of them are equal."""
    dice = random.Random(7)  # noqa: S311 - the same documents in every run
    taken: set[str] = set()
    made = []
    for number in range(count):
        is_chinese = number % 2 == 1
        terms = [f"错误码{number:06}" if is_chinese else f"ERR-{number:06}"]
        while len(terms) < keywords:
            term = _term(dice, is_chinese)
            if term not in taken:
                taken.add(term)
                terms.append(term)
        made.append(
            KnowledgeEntry(
                file_path=f"knowledge_base/team-{number % 20:02}/document-{number:06}.md",
                title=f"Document {number}",
                keywords=tuple(terms),
                summary=f"What {terms[0]} means and what to do about it",
            )
        )
    return made


def _term(dice: random.Random, is_chinese: bool) -> str:
    joint, words = ("", _CHINESE) if is_chinese else (" ", _ENGLISH)
    return joint.join([*dice.sample(words.split(), 2), str(dice.randrange(1000))])


def markdown_of(entry: KnowledgeEntry) -> bytes:
    """The document behind an entry, about 2 KB."""
    listed = ", ".join(entry.keywords)
    body = "\n\n".join(f"## Step {n}\n\n{'Look at the dashboard before anything else. ' * 8}" for n in range(5))
    return (
        f"---\ntitle: {entry.title}\nkeywords: [{listed}]\nsummary: {entry.summary}\n---\n# {entry.title}\n\n{body}\n"
    ).encode()


def queries(count: int, documents: Sequence[KnowledgeEntry]) -> list[str]:
    """Queries of 50 characters, every second one Chinese: two thirds name a keyword, a third nothing there is."""
    dice = random.Random(11)  # noqa: S311 - the same queries in every run
    made = []
    for number in range(count):
        language = number % 2
        if number % 3 == 2:
            subject = "列车从机场到市区" if language else "the train from the airport"
        else:
            subject = dice.choice(documents[dice.randrange(len(documents) // 2) * 2 + language].keywords)
        joint = "" if language else " "
        made.append(f"{subject}{joint}{_FILLING[language]}"[:QUERY_CHARS])
    return made


def parts_of_keywords(count: int, documents: Sequence[KnowledgeEntry]) -> list[str]:
    """Parts, of two characters and more, of some keywords: what one keyword holds, and what tens of thousands hold."""
    dice = random.Random(13)  # noqa: S311 - the same queries in every run
    made = []
    for _ in range(count):
        keyword = dice.choice(documents[dice.randrange(len(documents))].keywords)
        start = dice.randrange(len(keyword) - 1)
        made.append(keyword[start : dice.randint(start + 2, len(keyword))])
    return made
