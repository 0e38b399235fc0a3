"""Saving in a process that is killed: the old file or the new one, at whatever byte, never a mixture.

Each test runs a script in a fresh interpreter, whose children save over a file and die. After each
death the file must be one of the two; that both occur shows that death came before and after the
moment at which the file is replaced. A killed process may leave a temporary file behind.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills with limits of Linux")

COMMON = """
import os, random, resource, signal, sys, time
from pathlib import Path
import numpy as np, tnsum

folder = Path(sys.argv[1])
path = folder / "x"


def network(number, size):
    return tnsum.chain([np.full((2, size), float(number)), np.full((size, 1), float(number))])


def child(*steps):
    "The process id of a child that takes these steps and ends."
    pid = os.fork()
    if pid:
        return pid
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for step in steps:
            step()
        os._exit(0)
    except BaseException:
        os._exit(1)


def killed_by(pid):
    "Which signal ended a child; 0 if none did."
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def found():
    "The number of the network in the file, which must be one and whole."
    numbers = {float(n) for array in tnsum.load(path).arrays.values() for n in np.unique(array)}
    assert len(numbers) == 1, numbers
    (number,) = numbers
    assert tnsum.load(path).n_parameters == network(number, SIZES[number]).n_parameters
    return number


def left_behind():
    "How many temporary files there are; they go."
    files = [file for file in folder.iterdir() if file != path]
    assert all(file.name.startswith(".tnsum-") and file.name.endswith(".tmp") for file in files)
    for file in files:
        file.unlink()
    return len(files)
"""

AT_EVERY_BYTE = """
SIZES = {1: 2, 2: 3}
old, new = network(1, SIZES[1]), network(2, SIZES[2])
tnsum.save(path, new)
size = path.stat().st_size
tnsum.save(path, old)
before = path.read_bytes()


def limit(n):
    # The kernel kills who writes beyond the limit; Python had told it not to.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))


outcomes = []
for n in range(size + 2):
    signal_number = killed_by(child(lambda: limit(n), lambda: tnsum.save(path, new)))
    outcomes.append(found())
    assert signal_number == (signal.SIGXFSZ if n < size else 0), (n, signal_number)
    assert left_behind() == (n < size), n
    if outcomes[-1] == 1:
        assert path.read_bytes() == before
    else:
        tnsum.save(path, old)
assert outcomes == [1] * size + [2] * 2, outcomes
print("done", size)
"""

LARGE_AT_SOME_BYTES = """
SIZES = {1: 2, 2: 40_000}
old, new = network(1, SIZES[1]), network(2, SIZES[2])
tnsum.save(path, new)
size = path.stat().st_size
tnsum.save(path, old)


def limit(n):
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))


rng = random.Random(0)
for n in [*(rng.randrange(size) for _ in range(20)), *(k * 4096 for k in range(20)), size - 1]:
    assert killed_by(child(lambda: limit(n), lambda: tnsum.save(path, new))) == signal.SIGXFSZ
    assert found() == 1 and left_behind() == 1
assert killed_by(child(lambda: limit(size), lambda: tnsum.save(path, new))) == 0
assert found() == 2 and left_behind() == 0
print("done")
"""

AT_RANDOM_MOMENTS = """
N = 2_000_000  # 48 MB
SIZES = {number: N for number in range(1, 100)}
networks = [network(number, N) for number in range(1, 14)]
start = time.perf_counter()
tnsum.save(path, networks[0])
duration = time.perf_counter() - start
rng = random.Random(0)
expected, outcomes = 1, []
for x in networks[1:]:
    pid = child(lambda: tnsum.save(path, x))
    time.sleep(rng.uniform(0, 1.3 * duration))
    os.kill(pid, signal.SIGKILL)
    killed_by(pid)
    number = found()
    new = int(x.arrays["matrix0"][0, 0])
    assert number in (expected, new), (number, expected, new)
    outcomes.append(number == new)
    expected = number
    left_behind()
print("done", outcomes)
"""

AT_ITS_STEPS = """
SIZES = {1: 2, 2: 3}
old, new = network(1, SIZES[1]), network(2, SIZES[2])


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def before(name):
    setattr(os, name, die)


def after(name):
    function = getattr(os, name)
    setattr(os, name, lambda *arguments: (function(*arguments), die()))


for hook, name, expected in [
    (before, "open", 1), (after, "open", 1), (before, "fsync", 1), (after, "fsync", 1),
    (before, "chmod", 1), (after, "chmod", 1), (before, "replace", 1), (after, "replace", 2),
]:
    tnsum.save(path, old)
    pid = child(lambda: hook(name), lambda: tnsum.save(path, new))
    assert killed_by(pid) == signal.SIGKILL, name
    assert found() == expected, (hook, name)
    assert left_behind() == ((hook, name) not in ((before, "open"), (after, "replace")))
print("done")
"""


def run(script: str, folder: Path) -> str:
    command = [sys.executable, "-c", COMMON + script, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_killed_at_every_byte(tmp_path: Path) -> None:
    done, size = run(AT_EVERY_BYTE, tmp_path).split()
    assert done == "done"
    assert int(size) > 400


def test_killed_at_some_bytes_of_a_larger_file(tmp_path: Path) -> None:
    assert run(LARGE_AT_SOME_BYTES, tmp_path) == "done\n"


def test_killed_at_random_moments(tmp_path: Path) -> None:
    assert run(AT_RANDOM_MOMENTS, tmp_path).startswith("done")


def test_killed_before_and_after_each_step(tmp_path: Path) -> None:
    assert run(AT_ITS_STEPS, tmp_path) == "done\n"
