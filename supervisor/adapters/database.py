"""The signatures of a run: loaded when first needed, replaced when their files change.

Once a run has begun, nothing in the user's files can end it: what they held when it began is kept
in memory, a change with a mistake is told and left out, and where files cannot be watched they are
read once.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from supervisor.adapters.matcher import Matcher
from supervisor.adapters.signature_files import SignatureSet, load_signatures, shipped_folder


class Database:
    """Hands out the current matcher."""

    def __init__(self, own_folders: Sequence[Path], warn: Callable[[str], None]) -> None:
        self._folders = (shipped_folder(), *own_folders)
        self._warn = warn
        self._lock = threading.Lock()
        self._matcher: Matcher | None = None
        # A mistake of the user's is told before anything starts.
        self._first = load_signatures(self._folders) if own_folders else None

    def matcher(self) -> Matcher:
        """The matcher over all signatures, as they are now."""
        with self._lock:
            if self._matcher is None:
                signatures = self._first or load_signatures(self._folders)
                self._matcher = self._build(signatures)
                self._watch(signatures)
            return self._matcher

    def _build(self, signatures: SignatureSet) -> Matcher:
        return Matcher(signatures, on_switched_off=self._warn)

    def _watch(self, known: SignatureSet) -> None:
        from supervisor.adapters.signature_watch import SignatureWatch

        try:
            SignatureWatch(self._folders, known, self._replace, self._warn)
        except OSError as error:  # no watch left to give, or a folder that is gone
            self._warn(f"signature files are not watched for changes: {error}")

    def _replace(self, signatures: SignatureSet) -> None:
        fresh = self._build(signatures)
        with self._lock:
            self._matcher = fresh
        self._warn(f"signatures reloaded: {len(signatures.entries)}")
