"""The folders that a pattern leads through, watched where a watch tells everything.

One watch a folder, not one a file: kernels before 5.11 allow a user 8,192, and a folder's watch
also tells of new files. A folder whose file system reports nothing, or for which the kernel has
no watch left, is one to be polled.
"""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from supervisor.adapters.file_systems import reports_changes
from supervisor.adapters.inotify import CONTENTS, NAMES, Changes, Inotify
from supervisor.adapters.log_pattern import LogPattern, Positions


@dataclass(slots=True)
class _Folder:
    path: str
    positions: Positions
    watch: int | None


class LogFolders:
    """Finds the files of a pattern, and tells which of them changed."""

    def __init__(
        self,
        pattern: LogPattern,
        apart: str | None = None,
        watchable: Callable[[str], bool] = reports_changes,
    ) -> None:
        self._pattern, self._apart, self._watchable = pattern, apart, watchable
        self._inotify = _inotify()
        self._folders: dict[str, _Folder] = {}
        self._by_watch: dict[int, _Folder] = {}
        self.polled: set[str] = set()  # folders that no watch tells of
        self._renamed: set[str] = set()  # what files that were covered are called now
        self._paths: dict[tuple[int, bytes], tuple[str, bool]] = {}  # and whether it is covered

    @property
    def descriptor(self) -> int | None:
        """Readable when something changed."""
        return self._inotify.descriptor if self._inotify else None

    def covers(self, path: str) -> bool:
        """Whether the pattern means this file."""
        parent, name = os.path.split(path)
        folder = self._folders.get(parent)
        return folder is not None and self._pattern.covers(folder.positions, name)

    def is_polled(self, path: str) -> bool:
        """Whether nothing tells of changes of this file."""
        return bool(self.polled) and os.path.dirname(path) in self.polled

    def changed(self, is_known: Callable[[int], bool]) -> tuple[dict[str, bool], bool]:
        """The files that changed since the last look (True: by that name perhaps another than
        before), and whether there were more than the kernel kept.
        """
        if self._inotify is None:
            return {}, False
        changes = self._inotify.changes()
        files = self._files(changes, is_known)
        for watch, name in changes.folders:
            if (parent := self._by_watch.get(watch)) is not None:
                path = os.path.join(parent.path, os.fsdecode(name))
                positions = self._pattern.inside(parent.positions, os.fsdecode(name))
                files |= dict.fromkeys(self._tree(path, positions, is_known), True)
        for watch in changes.gone:
            self._drop(watch)
        return files, changes.overflowed

    def scan(self, is_known: Callable[[int], bool]) -> Iterator[str]:
        """All files there are now, those with a known inode whatever they are called."""
        self._paths.clear()  # folders may have been renamed
        self._renamed.clear()
        before = set(self._folders)
        for path in self._tree(self._pattern.base, self._pattern.begin, is_known):
            before.discard(os.path.dirname(path))
            yield path
        for path in before:
            if not os.path.isdir(path):
                self._folders.pop(path, None)
                self.polled.discard(path)

    def close(self) -> None:
        """Give the watches back."""
        if self._inotify:
            self._inotify.close()

    def _files(self, changes: Changes, is_known: Callable[[int], bool]) -> dict[str, bool]:
        """Renamed files first: what was written before a rotation comes before what came after."""
        files: dict[str, bool] = {}
        renamed: dict[str, bool] = {}
        for key, is_new in changes.names.items():
            path, covered = self._paths.get(key) or self._path(*key)
            if covered:
                files[path] = is_new
            elif path in self._renamed or (is_new and is_known(_inode(path))):
                self._renamed.add(path)
                renamed[path] = True
        return renamed | files

    def _path(self, watch: int, name: bytes) -> tuple[str, bool]:
        folder = self._by_watch.get(watch)
        if folder is None:
            return "", False
        text = os.fsdecode(name)
        found = os.path.join(folder.path, text), self._pattern.covers(folder.positions, text)
        self._paths[watch, name] = found
        return found

    def _tree(
        self, path: str, positions: Positions, is_known: Callable[[int], bool]
    ) -> Iterator[str]:
        """The files at and below a folder; it is watched before it is read, so that none is missed
        between.
        """
        waiting = [(path, positions)]
        while waiting:
            path, positions = waiting.pop()
            if not positions or path == self._apart:
                continue
            self._enter(path, positions)
            for entry in _entries(path):
                if _is_folder(entry):
                    deeper = self._pattern.inside(positions, entry.name, is_link=entry.is_symlink())
                    waiting.append((entry.path, deeper))
                elif self._pattern.covers(positions, entry.name):
                    yield entry.path
                elif is_known(entry.inode()):
                    self._renamed.add(entry.path)
                    yield entry.path

    def _enter(self, path: str, positions: Positions) -> None:
        watch = self._watch(path, positions)
        folder = self._folders[path] = _Folder(path, positions, watch)
        if watch is None:
            self.polled.add(path)
        else:
            self._by_watch[watch] = folder
            self.polled.discard(path)

    def _watch(self, path: str, positions: Positions) -> int | None:
        if self._inotify is None or not self._watchable(path):
            return None
        mask = CONTENTS if self._pattern.may_hold_files(positions) else NAMES
        try:
            return self._inotify.watch(path, mask)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                raise
            return None

    def _drop(self, watch: int) -> None:
        folder = self._by_watch.pop(watch, None)
        if folder is not None and self._folders.get(folder.path) is folder:
            del self._folders[folder.path]


def _inotify() -> Inotify | None:
    """None where the user's instances (often 128) are used up, or in a sandbox without them."""
    try:
        return Inotify()
    except OSError:
        return None


def _inode(path: str) -> int:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0  # no file's


def _entries(path: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:  # removed since, or not ours to read
        return []


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to where we may not look
        return False
