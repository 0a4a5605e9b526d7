"""Loads the signatures again when their files change. Owns the watching, not the loading.

A set with a mistake is reported once and the one before stays in use, so an editor that saves
half a file takes no signature away from a running job. Where a folder lies on a file system that
reports no changes (most shared ones report none made elsewhere), nothing is reloaded until the
next start.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.adapters.signature_files import SignatureSet, load_signatures
from supervisor.errors import SupervisorError

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

_SETTLE_SECONDS = 0.3  # an editor's save is several events


class SignatureWatch:
    """A running watch; `close` ends it."""

    def __init__(
        self,
        folders: Sequence[Path],
        known: SignatureSet,
        on_change: Callable[[SignatureSet], None],
        on_mistake: Callable[[str], None],
    ) -> None:
        self._folders, self._on_change, self._on_mistake = folders, on_change, on_mistake
        self._changed = threading.Event()
        self._closed = False
        self._mistake = ""
        self._digest = known.digest
        self._observer = _observer(folders, self._changed.set)
        self._changed.set()  # what changed between the reading of `known` and now
        self._thread = threading.Thread(target=self._follow, name="signatures", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching; no call comes after this returns."""
        self._closed = True
        self._changed.set()
        self._observer.stop()
        self._observer.join()
        self._thread.join()

    def _follow(self) -> None:
        pause = threading.Event()
        while not self._closed:
            self._changed.wait()
            pause.wait(_SETTLE_SECONDS)
            self._changed.clear()
            if not self._closed:
                self._reload()

    def _reload(self) -> None:
        try:
            signatures = load_signatures(self._folders)
        except SupervisorError as error:
            self._report(str(error))
            return
        self._mistake = ""
        if signatures.digest != self._digest:
            self._digest = signatures.digest
            self._on_change(signatures)

    def _report(self, mistake: str) -> None:
        if mistake != self._mistake:
            self._mistake = mistake
            self._on_mistake(f"{mistake} (the signatures before this change stay in use)")


def watch_signatures(
    folders: Sequence[Path],
    on_change: Callable[[SignatureSet], None],
    on_mistake: Callable[[str], None] = lambda mistake: None,
) -> SignatureWatch:
    """Call `on_change` with a new set, from another thread, whenever one has been written well."""
    return SignatureWatch(folders, load_signatures(folders), on_change, on_mistake)


def _observer(folders: Sequence[Path], note: Callable[[], None]) -> "BaseObserver":
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers import Observer

    class Note(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            if event.event_type not in ("opened", "closed_no_write"):
                note()

    observer = Observer()
    for folder in {folder if folder.is_dir() else folder.parent for folder in folders}:
        observer.schedule(Note(), str(folder))
    observer.start()
    return observer
