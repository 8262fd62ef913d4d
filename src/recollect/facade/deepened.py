"""Which walks a question takes: one, or a first and a wider one."""

from __future__ import annotations

from recollect import engine
from recollect.context import Context
from recollect.facade.opened import Opened
from recollect.model import Recall
from recollect.profile import Profile


class Deepened(Opened):
    """What asking stands on: one story or two."""

    def _walks(self, wanted: str | Profile | None, *, deep: bool) -> tuple[Profile | None, Profile]:
        """The profile of the first walk, None where one walk is all, and of the last."""
        profile = self.profile(wanted)
        if not deep and profile.deep is None:
            return None, profile
        from recollect.deep import deepen  # start-up time: most look once

        return deepen(profile, self.profile)

    def _walked(self, first: Profile | None, profile: Profile, ctx: Context) -> Recall:
        if first is None:
            return engine.recall(profile, ctx)
        from recollect import deep  # start-up time: most look once

        return deep.recall(first, profile, ctx, self.llm)
