"""What a profile is without each of its parts."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.errors import Refused
from recollect.profile import SLOTS, Profile

WITHOUT = " without "


def ablations(profile: Profile, label: str, only: Sequence[str] = ()) -> dict[str, Profile]:
    """The profile with each slot emptied and each channel and stage taken out in turn.

    Where a slot holds one stage, taking it out is emptying the slot: asked once.
    The last channel stays: without any there is no walk. ``only`` names the parts
    to take out.
    """
    there = (*parts(profile), *SLOTS)
    for part in only:
        if part not in there:
            raise Refused(
                f"profile {label} has no part {part!r}",
                remedy=f"there are: {', '.join(dict.fromkeys(there))}",
            )
    variants: dict[str, Profile] = {}
    seen = {profile}
    for part in only or parts(profile):
        changed = profile.without(part)
        if changed.channels and changed not in seen:
            seen.add(changed)
            variants[f"{label}{WITHOUT}{part}"] = changed
    return variants


def parts(profile: Profile) -> list[str]:
    """Everything that can be taken out, by the name ``Profile.without`` knows it by."""
    names = [channel.name for channel in profile.channels]
    for slot in SLOTS:
        stages = profile.slot(slot)
        names += [stage.name for stage in stages]
        if len(stages) > 1:
            names.append(slot)
    return list(dict.fromkeys(names))
