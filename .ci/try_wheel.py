"""Build the wheel, install it into an empty environment, start it, and print what that costs.

``python .ci/try_wheel.py`` needs nothing but Python and a package index. It runs on Linux, macOS
and Windows. It ends with an error if the server does not answer, or if the engine's own
distribution does not work by itself.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINE_WORKS = (
    "import engine, sys;"
    "passes = {'StartAt': 'P', 'States': {'P': {'Type': 'Pass', 'End': True}}};"
    "assert engine.run(passes, 7).output == 7;"
    "assert 'django' not in sys.modules"
)
START_S = 120.0
_MIB = 1024 * 1024


def main() -> None:
    """Try the wheel and the engine alone."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
        (wheel,) = folder.glob("stateyard-*.whl")
        print(f"{wheel.name}: {wheel.stat().st_size / _MIB:.1f} MiB")
        try_server(wheel, folder)
        try_engine(folder)


def try_server(wheel: Path, folder: Path) -> None:
    """Install the wheel with all it needs, and let it serve."""
    python = environment(folder / "server")
    begun = time.monotonic()
    pip(python, "install", str(wheel))
    print(f"installed in {time.monotonic() - begun:.0f} s, {tree_size(folder / 'server')} MiB:")
    for size, part in largest_packages(folder / "server"):
        print(f"  {size:4} MiB  {part}")
    begun = time.monotonic()
    data = folder / "data"
    command = [str(Path(python).parent / "stateyard"), "up", "--port", "0", "--data", str(data)]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)  # noqa: S603
    try:
        page = wait_for_page(server, data / "address")
        print(f"first page after {time.monotonic() - begun:.1f} s")
    finally:
        server.terminate()
        server.wait()
    if not re.search(r"/static/stateyard/[\w/-]+\.css", page):
        sys.exit(f"the login page names no style: {page[:500]}")


def try_engine(folder: Path) -> None:
    """Run a state machine where the engine's own distribution is, with what it requires."""
    python = environment(folder / "engine")
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT / "engine"))
    (wheel,) = folder.glob("stateyard_engine-*.whl")
    pip(python, "install", str(wheel))
    subprocess.run([python, "-c", ENGINE_WORKS], cwd=folder, check=True)  # noqa: S603
    print(f"the engine alone: {tree_size(folder / 'engine')} MiB, without Django")


def wait_for_page(server: subprocess.Popen[bytes], address: Path) -> str:
    """Return the login page, with its style sheet read, once the server answers."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            base = address.read_text(encoding="utf-8").strip()
            page = read(f"{base}/login/")
        except OSError:
            time.sleep(0.1)
            continue
        for file in re.findall(r'"(/static/[^"]+)"', page):
            read(base + file)
        return page
    sys.exit(f"the server did not answer: exit code {server.poll()}")


def read(address: str) -> str:
    """Return what a web address answers; any error of HTTP is raised."""
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - our own server
        return str(answer.read().decode("utf-8", "replace"))


def environment(folder: Path) -> str:
    """Make an empty environment; return its Python."""
    venv.create(folder, with_pip=True)
    return str(next(folder.glob("[bS]*/python*")).parent / "python")


def pip(python: str, *words: str) -> None:
    """Run pip; what it says is shown if it fails."""
    command = [python, "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def tree_size(folder: Path) -> int:
    """Return how many MiB the files below a folder have."""
    files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return round(sum(file.stat().st_size for file in files) / _MIB)


def largest_packages(folder: Path) -> list[tuple[int, str]]:
    """Return size and name of the eight largest folders of the installed packages."""
    parts = (part for part in next(folder.rglob("site-packages")).iterdir() if part.is_dir())
    return sorted(((tree_size(part), part.name) for part in parts), reverse=True)[:8]


if __name__ == "__main__":
    main()
