"""Runs a command once for every set of kernels of OpenBLAS that this processor can run.

    python tests/kernels.py pytest -m "numerical and not large"

OpenBLAS chooses its kernels by the processor, or by OPENBLAS_CORETYPE. Each core type is tried in a
process of its own: one that the processor cannot run crashes, and OpenBLAS replaces one that it was
built without. Each set of kernels is used once; the default one comes last, and not at all with
`--others`. The first one also runs without the vector instructions that NumPy chooses by the processor.
"""

import os
import subprocess
import sys

CORES = (
    "Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX", "Cooperlake",
    "SapphireRapids", "ARMV8", "CORTEXA57", "NEOVERSEN1", "NEOVERSEV1", "POWER8", "POWER9", "POWER10",
)  # fmt: skip
TRY = """
import numpy as np, threadpoolctl
a = np.random.default_rng(0).standard_normal((200, 100))
for dtype in ("float32", "float64", "complex64", "complex128"):
    b = a.astype(dtype)
    assert np.allclose(b.T @ b, np.einsum("ij,ik->jk", b, b), rtol=1e-3, atol=1e-3)
    assert np.isfinite(np.linalg.svd(b)[1]).all() and np.isfinite(np.linalg.eigh(b.T @ b)[1]).all()
found = [i["architecture"] for i in threadpoolctl.threadpool_info() if i["internal_api"] == "openblas"]
print(found[0] if found else "")
"""
FEATURES = """
import numpy as np
print(" ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])))
"""


def said(script: str, **environment: str) -> str:
    """What a script prints in another process; nothing if it fails."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def environments() -> list[dict[str, str]]:
    """Variables for each set of kernels, those that are chosen without them last."""
    own, found = said(TRY), {}
    for core in CORES:
        architecture = said(TRY, OPENBLAS_CORETYPE=core)
        if architecture and architecture not in found:
            found[architecture] = {"OPENBLAS_CORETYPE": core}
    default = found.pop(own, {})
    if found:
        next(iter(found.values()))["NPY_DISABLE_CPU_FEATURES"] = said(FEATURES)
    return [*found.values(), default]


def main(command: list[str]) -> int:
    others_only = command[:1] == ["--others"]
    command, worst = command[others_only:], 0
    for variables in environments()[: -1 if others_only else None]:
        print(*(f"{name}={value!r}" for name, value in variables.items()), *command, flush=True)  # noqa: T201
        worst = max(worst, abs(subprocess.run(command, env={**os.environ, **variables}).returncode))
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
