"""Open regular files only: a named pipe would wait for ever, a device would never end."""

import errno
import os
import stat
from pathlib import Path

from manyheads.errors import DataError

_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
_KINDS |= dict.fromkeys((stat.S_IFCHR, stat.S_IFBLK), "a device")


def require_regular(path: Path) -> Path:
    """Return the path of a regular file, without opening it.

    Raises:
        OSError: there is no such file, or it is not a regular file.
    """
    kind = stat.S_IFMT(path.stat().st_mode)
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'something else')}, not a file")
    return path


def size_of(path: Path) -> int:
    """Return the size of a file without opening it; -1 if there is none, as for a broken link."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):  # such as a name that is too long, or has a null character
        return -1


def files_below(folder: Path) -> list[Path]:
    """List all files of a folder and its sub-folders, sorted.

    Links to folders are followed, but no folder is entered twice: links may lead in circles.

    Raises:
        DataError: a folder cannot be read.
    """
    files: list[Path] = []
    entered: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        try:
            at = place.stat()
            if (at.st_dev, at.st_ino) in entered:
                continue
            entered.add((at.st_dev, at.st_ino))
            with os.scandir(place) as entries:
                for entry in entries:
                    # `isdir`: a link to itself is no folder, and no error.
                    folder_like = os.path.isdir(entry) if entry.is_symlink() else entry.is_dir()  # noqa: PTH112
                    (waiting if folder_like else files).append(place / entry.name)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DataError(f"There is no folder {place}: name a folder of images.") from error
        except OSError as error:
            raise DataError(
                f"The folder {place} cannot be read: {error.strerror}. Change its permissions, or "
                "move it away."
            ) from error
    return sorted(files)
