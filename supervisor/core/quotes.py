"""Words a verdict rests on or sets aside, with the place where anyone can read them again."""

from supervisor.core.signature import Hit
from supervisor.core.value import value


@value
class Quote:
    """A line of a log, or what a probe or a shim said, which has no place."""

    text: str
    speaker: str = ""  # the host it comes from, else who wrote it
    place: str = ""  # file and line number: "attempts/001/ranks/00003.log:12"
    signature: str = ""  # id of the entry that hit it
    meaning: str = ""  # that entry's title
    note: str = ""  # why it was set aside

    @property
    def told(self) -> str:
        """The words with who said them."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


def quoted(hit: Hit, note: str = "") -> Quote:
    """The line of a hit."""
    speaker = hit.host or hit.source
    return Quote(
        text=hit.line,
        speaker=speaker,
        place=_place(hit),
        signature=hit.signature,
        meaning=hit.title,
        note=note,
    )


def told(hit: Hit) -> str:
    """A line with whom it comes from."""
    return f"{hit.host or hit.source}: {hit.line}"


def _place(hit: Hit) -> str:
    """A journal of an older version knows no files."""
    if hit.file:
        return f"{hit.file}:{hit.line_number}"
    speaker = hit.source.value if hit.rank is None else f"rank {hit.rank}"
    return f"{speaker}, line {hit.line_number}"
