"""Many texts in two blocks of memory: a hundred thousand are loaded without making an object for each."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable

from knowledge.retrieval.made_sequence import MadeSequence

# Half a surrogate pair, which a path or a title may hold, has to come back as it was.
_SURROGATES = "surrogatepass"


class PackedTexts(MadeSequence[str]):
    """An immutable list of texts, each decoded when it is asked for. Every text is followed by a line break."""

    __slots__ = ("block", "ends")

    def __init__(self, block: bytes, ends: "array[int]") -> None:
        """`block` holds the texts in UTF-8, `ends` the place of the line break after each, in bytes."""
        self.block = block
        self.ends = ends

    @classmethod
    def of(cls, texts: Iterable[str]) -> "PackedTexts":
        """`texts` packed, in their order."""
        block, ends = bytearray(), array("I")
        for text in texts:
            block += text.encode("utf-8", _SURROGATES)
            ends.append(len(block))
            block += b"\n"
        return cls(bytes(block), ends)

    def __len__(self) -> int:
        return len(self.ends)

    def made(self, place: int) -> str:
        """See MadeSequence."""
        return self.bytes_at(place).decode("utf-8", _SURROGATES)

    def start_of(self, index: int) -> int:
        """Where the text begins, in bytes."""
        return self.ends[index - 1] + 1 if index else 0

    def bytes_at(self, index: int) -> bytes:
        """The text in UTF-8, whose order is that of code points. Raises IndexError past the end."""
        return self.block[self.start_of(index) : self.ends[index]]

    def find(self, text: bytes) -> int:
        """The place of the first text that is not before `text`; the texts must be sorted."""
        return bisect_left(range(len(self)), text, key=self.bytes_at)
