"""Kernels run in Triton's interpreter here; it has to be chosen before the first of them is read."""

import os

os.environ["TRITON_INTERPRET"] = "1"
