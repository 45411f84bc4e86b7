"""The same pieces of work by calls of this version. It changes with the interface; work_0_2.py does not.

So far the calls are those of 0.2.
"""

from bench.since_0_2 import work_0_2

__all__ = ["WORK"]

WORK = dict(work_0_2.WORK)
