"""The kernels become packed instructions, and give the same bits on a processor without wide or fused instructions."""

import os
import platform
import re
import subprocess
import sys

import numpy as np
import pytest

from sgdsde._jit import kernel_uncached
from sgdsde.random.normal import fill_normals
from sgdsde.random.philox import EXACT

PRINT_BITS = """
import hashlib, numpy as np
from sgdsde.random.normal import fill_normals
out = np.empty((65, 37))
fill_normals(out, 2**40 + 1, np.arange(37, dtype=np.uint64), 1, np.uint64(99))
print(hashlib.sha256(out.tobytes()).hexdigest())
"""


def bits(**environment):
    run = subprocess.run(
        [sys.executable, "-c", PRINT_BITS],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


def test_bits_are_those_of_the_plainest_processor():
    assert bits(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == bits()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="looks for names of x86 instructions")
def test_normals_become_packed_instructions():
    signature = fill_normals.signatures[0]
    compiled = kernel_uncached(signature, **EXACT)(fill_normals.py_func)
    asm = compiled.inspect_asm(signature)
    assert len(re.findall(r"\sv?pmuludq\s.*[xyz]mm", asm)) >= 20  # two products in each of ten rounds
    assert re.search(r"\sv?divpd\s", asm) and re.search(r"\sv?sqrtpd\s", asm)
    assert not re.search(r"vfn?m(add|sub)", asm)  # nothing contracted
    assert not re.search(r"\b(log|sin|cos|sincos)\b", asm)  # no libm
    out, again = np.empty((2, 40, 20))
    for f, o in ((fill_normals, out), (compiled, again)):
        f(o, 3, np.arange(20, dtype=np.uint64), 0, np.uint64(7))
    assert np.array_equal(out, again)
