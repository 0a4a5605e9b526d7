"""The signatures of a run: loaded when first needed, replaced when their files change."""

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
        if own_folders:  # a mistake of the user's is told before anything starts
            load_signatures(self._folders)

    def matcher(self) -> Matcher:
        """The matcher over all signatures, as they are now."""
        with self._lock:
            if self._matcher is None:
                self._matcher = self._build(load_signatures(self._folders))
                self._watch()
            return self._matcher

    def _build(self, signatures: SignatureSet) -> Matcher:
        return Matcher(signatures, on_switched_off=self._warn)

    def _watch(self) -> None:
        from supervisor.adapters.signature_watch import watch_signatures

        watch_signatures(self._folders, self._replace, self._warn)

    def _replace(self, signatures: SignatureSet) -> None:
        fresh = self._build(signatures)
        with self._lock:
            self._matcher = fresh
        self._warn(f"signatures reloaded: {len(signatures.entries)}")
