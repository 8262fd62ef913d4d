"""Saying that two names are one, and taking it back."""

from __future__ import annotations

from recollect.errors import NotFound, Refused
from recollect.facade.opened import Opened
from recollect.model import Entity


class Merging(Opened):
    """Entities that turn out to be one."""

    def merge_entities(self, kept: str, gone: str) -> Entity:
        """Lets one entity stand for both: its names, its memories, its edges.

        Each is named by its id (``person:ana``) or by a name that only it has. What is
        remembered of the other from now on is remembered of this one; `split_entities`
        takes it back.

        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.remember("Ana Torres prefers tea")
        ...     _ = memory.remember("Call @atorres on Monday")
        ...     merged = memory.merge_entities("Ana Torres", "atorres")
        ...     print(merged.aliases, merged.mentions)
        ('atorres',) 2
        """
        first, second = self._entity(kept), self._entity(gone)
        self.store.merge_entities(first.id, second.id, actor=self.settings.actor, now=self._clock())
        return self._entity(first.id)

    def split_entities(self, kept: str, gone: str) -> Entity:
        """Takes a merging back; gives the entity that is its own again."""
        first = self._entity(kept)
        found = self.store.links_of([first.id], ("same_as",))
        merged = [link.src.id for link in found if link.dst.id == first.id]
        named = [one for one in merged if gone in (one, one.partition(":")[2])]
        if len(named) != 1:
            known = f"merged into it: {', '.join(merged)}" if merged else "nothing was"
            raise NotFound(f"{gone!r} was not merged into {first.id}", remedy=known)
        self.store.split_entities(first.id, named[0], actor=self.settings.actor, now=self._clock())
        return self._entity(named[0])

    def _entity(self, written: str) -> Entity:
        """The entity of that id, or the only one of that name."""
        name = written.partition(":")[2] or written
        found = {one.id: one for one in self.store.find_entities(name, 100)}
        if written in found:
            return found[written]
        exact = [one for one in found.values() if _is_called(one, written)]
        if len(exact) == 1:
            return exact[0]
        if exact:
            ids = ", ".join(one.id for one in exact)
            raise Refused(f"{written!r} could be any of {ids}", remedy="name it by its id")
        raise NotFound(
            f"no memory speaks of {written!r}", remedy="recollect entities shows the names"
        )


def _is_called(entity: Entity, name: str) -> bool:
    wanted = name.casefold()
    return wanted in (one.casefold() for one in (entity.name, *entity.aliases))
