"""Lists whose items are made when they are asked for, so that none is kept."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar, overload

_Item = TypeVar("_Item", covariant=True)


class MadeSequence(Sequence[_Item]):
    """A sequence of what `made` makes."""

    __slots__ = ()

    @abstractmethod
    def made(self, place: int) -> _Item:
        """The item at a place. Raises IndexError past the end."""

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_Item]: ...
    def __getitem__(self, index: int | slice) -> _Item | Sequence[_Item]:
        if isinstance(index, slice):
            return [self.made(place) for place in range(len(self))[index]]
        return self.made(index)
