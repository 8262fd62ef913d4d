"""Having a language model read memories that are stored already."""

from __future__ import annotations

from recollect.errors import BadSetting
from recollect.facade.working import Working
from recollect.model import Item


class Extracting(Working):
    """The reading side of a language model."""

    def extract(self, *ids: str) -> list[Item]:
        """Lets the configured language model read memories: entities, facts and relations
        that the rules did not find. What was read before is not read again.

        Raises ModelError where the model does not answer; nothing is lost then, and
        ``maintain`` asks again.
        """
        from recollect.maintain.extract import ReadByModel  # start-up time: recall does without

        if self.llm is None:
            raise BadSetting(
                "reading memories needs a language model", remedy="recollect config set llm ..."
            )
        names = [self.stored(item_id).id for item_id in ids]
        ReadByModel(tuple(names))(self._work())
        return list(self.store.get(names).values())
