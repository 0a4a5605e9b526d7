"""Words a verdict rests on or sets aside, with the place where anyone can read them again."""

from supervisor.core.signature import Hit, Source
from supervisor.core.value import value


@value
class Quote:
    """A line of a log, or what a probe or a shim said, which has no place."""

    text: str
    speaker: str = ""  # the host it comes from, else who wrote it
    place: str = ""  # file and line number: "ranks/00003.log:12"
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
    """Rank logs and launcher.log are where run folders have them."""
    own = "launcher.log" if hit.source is Source.LAUNCHER else f"{hit.source} log"
    known = own if hit.rank is None else f"ranks/{hit.rank:05d}.log"
    return f"{hit.file or known}:{hit.line_number}"
