"""Text normalisation for matching. Stored text is never changed by it."""

import codecs
import functools
import re
import unicodedata

# Unicode general category Cf (format characters: zero-width space and joiners, byte order mark, soft hyphen, direction
# marks) and the variation selectors are invisible, so two texts that look the same must match whether they hold them
# or not. Source: Unicode Standard 16, chapter 23 and DerivedGeneralCategory.txt, and UTS #51 for emoji presentation
# selectors.
_INVISIBLE = (
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
# Full-width ASCII, as NFKC has it too; Chinese punctuation is, and NFKC takes four times as long where there is some.
# Source: Unicode Standard, Halfwidth and Fullwidth Forms.
_FULL_WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_INVISIBLE_OR_FULL_WIDTH = re.compile(f"[{_INVISIBLE}\uff01-\uff5e]")

# Scripts written without blanks between words, where a keyword may touch its neighbours: Thai, Lao, Myanmar and Khmer,
# Kana, Bopomofo, the Han blocks, and Hangul, whose particles are glued to the noun. Source: UAX #29, section 4,
# and the Unicode block list.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3100-\u318f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U0001b000-\U0001b16f"
    "\U00020000-\U0003ffff]"
)
# A blank on either side of such a character is a matter of taste: `支付 API` and `支付API`, `雾凇 词库` and `雾凇词库`.
# The blank comes first in the pattern, so that a text without any is passed over at once.
_GAP = re.compile(rf" (?:(?={_UNSPACED.pattern})|(?<={_UNSPACED.pattern} ))")

# Characters that people take for the ASCII one and NFKC leaves alone. Source: Unicode, names list: hyphens, dashes and
# the minus sign; single and double quotation marks.
_LOOKALIKES = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
    }
)
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_LOOKALIKE = re.compile(f"[{''.join(map(chr, _LOOKALIKES))}]")


def normalise(text: str) -> str:
    """Two texts that a reader takes for the same are equal: case, width, composition, blanks, invisible characters.

    NFKC, casefold, NFKC again (casefold may decompose; Source: Unicode Standard D146), format characters and variation
    selectors removed, dashes and quotation marks become the ASCII ones, runs of white space become one blank, blanks
    beside a character of an unspaced script go, none are left at either end.
    """
    if text.isascii():
        return " ".join(text.casefold().split())
    visible = _INVISIBLE_OR_FULL_WIDTH.sub(lambda found: _FULL_WIDTH.get(found[0], ""), text)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    if _LOOKALIKE.search(folded):
        folded = folded.translate(_LOOKALIKES)
    return _GAP.sub("", " ".join(folded.split()))


def decode_head(head: bytes) -> str | None:
    """The text of a file's first bytes, without byte order mark and without a code point cut at the end.

    None when they are not UTF-8.
    """
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(head).removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None


def first_invalid_byte(content: bytes) -> int | None:
    """The offset of the first byte that is not UTF-8, or None."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None


def is_encodable(text: str) -> bool:
    """False for a text with half of a surrogate pair, which JSON can carry and UTF-8 cannot."""
    return text.isascii() or _HALF_A_PAIR.search(text) is None


def is_unspaced(char: str) -> bool:
    """True for a character of a script that is written without blanks between words."""
    return _UNSPACED.match(char) is not None


def is_mostly_unspaced(text: str) -> bool:
    """True for a text in Chinese or another script without blanks, also when it holds English terms and code.

    Source: own choice; one such character carries about as much as a word of three letters, so from a quarter of all
    letters on they are most of what is said.
    """
    letters = sum(map(str.isalnum, text))
    return letters > 0 and len(_UNSPACED.findall(text)) * 4 > letters


# Asked of the neighbours of every keyword found; a base uses a few thousand characters.
@functools.lru_cache(maxsize=8192)
def is_word_character(char: str) -> bool:
    """True where a neighbour of the same kind continues the word: letters, digits, marks and `_`, in spaced scripts."""
    if char.isascii():
        return char.isalnum() or char == "_"
    return (char.isalnum() or unicodedata.category(char).startswith("M")) and not is_unspaced(char)
