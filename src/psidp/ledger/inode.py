"""Inode: which file a name leads to. Linux is not asked for the file's times, since that would slow the next write.

A recent Linux gives a file that was looked at a new time with its next write, however soon, and writes it down with the
next sync. For a log that is synced with every entry that costs half as much again. `statx` can leave the times out.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Callable

__all__ = ["inode"]

AT_FDCWD, AT_SYMLINK_NOFOLLOW, STATX_INO = -100, 0x100, 0x100
_LAYOUT = struct.Struct("=32xQ96xII112x")
"""struct statx, the same on every machine, of which only the inode and the device's two numbers are read."""
_BUFFER = ctypes.c_char * _LAYOUT.size


def inode(path: bytes) -> tuple[int, int]:
    """Device and inode of whatever has this name, a symbolic link too; OSError where nothing has."""
    if _STATX is None:
        found = os.lstat(path)
        return found.st_dev, found.st_ino
    buffer = _BUFFER()
    if _STATX(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO, buffer) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    number, major, minor = _LAYOUT.unpack(buffer)
    return os.makedev(major, minor), number


def _statx() -> Callable[..., int] | None:
    """The C library's statx; None on other systems, with an old library, and where a sandbox forbids the call."""
    if sys.platform != "linux":
        return None
    try:
        call = ctypes.CDLL(None, use_errno=True).statx
    except (AttributeError, OSError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)
    call.restype = ctypes.c_int
    works = call(AT_FDCWD, b"/", AT_SYMLINK_NOFOLLOW, STATX_INO, _BUFFER()) == 0
    return call if works else None


_STATX = _statx()
