"""`make` never brings CUDA unasked: what pip would install is read before it does."""

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from scripts import install

ROOT = Path(__file__).parents[1]
REPORTS = Path(__file__).parent / "golden" / "pip-reports.json"  # of torch 2.13.0, for Linux
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_reports_of_pip_are_read() -> None:
    """As pip wrote them: PyPI's torch requires CUDA, the CPU build does not."""
    reports = json.loads(REPORTS.read_text(encoding="utf-8"))
    found = install.cuda_packages(reports["cuda"])
    assert len(found) == 19
    assert {"cuda-toolkit 13.0.3.0", "nvidia-cudnn-cu13 9.20.0.48", "triton 3.7.1"} <= {*found}
    assert install.cuda_packages(reports["cpu"]) == []
    build = {"metadata": {"name": "torch", "version": "2.13.0+cu130"}}
    assert install.cuda_packages({"install": [build]}) == ["torch 2.13.0+cu130"]


def wheel(index: Path, name: str, version: str, *requires: str) -> None:
    """Put an empty package into an index."""
    folder = index / name.replace("_", "-")
    folder.mkdir(parents=True)
    described = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    described += "".join(f"Requires-Dist: {each}\n" for each in requires)
    info = f"{name}-{version}.dist-info"
    file = f"{name}-{version}-py3-none-any.whl"
    (folder / "index.html").write_text(f'<a href="{file}">{file}</a>', encoding="utf-8")
    with zipfile.ZipFile(folder / file, "w") as archive:
        archive.writestr(f"{info}/METADATA", described)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def run_pip(indexes: Path, target: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Let the script install torch from an index like PyPI, into a folder."""
    code = f"import install; install.CPU_INDEX = {(indexes / 'cpu').as_uri()!r}; "
    code += f"install.main({[*options, '--ignore-installed', '--target', str(target), 'torch']!r})"
    own = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
    own |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": (indexes / "pypi").as_uri()}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "scripts",
        env=own,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def indexes(tmp_path: Path) -> Path:
    """PyPI, whose torch requires CUDA, and an index of CPU builds that has none yet."""
    wheel(tmp_path / "pypi", "torch", "2.13.0", "nvidia-cublas")
    wheel(tmp_path / "pypi", "nvidia_cublas", "13.1")
    return tmp_path


def test_the_cpu_build_is_taken(indexes: Path, tmp_path: Path) -> None:
    """Of PyTorch's own index, where PyPI's build would bring CUDA."""
    wheel(indexes / "cpu", "torch", "2.13.0+cpu")
    done = run_pip(indexes, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "1 packages of CUDA" in done.stdout
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["torch-2.13.0+cpu.dist-info"]


def test_nothing_is_installed_with_cuda_unasked(indexes: Path, tmp_path: Path) -> None:
    """The index of CPU builds is out of reach: said before a package is installed."""
    done = run_pip(indexes, tmp_path / "out")
    assert done.returncode == 1
    assert "Nothing was installed" in done.stderr
    assert "nvidia-cublas 13.1" in done.stderr
    assert not (tmp_path / "out").exists()
    done = run_pip(indexes, tmp_path / "out", "--cuda")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_make_installs_by_the_script_only() -> None:
    """But for pip itself, and the peers that come without what they require."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = [line for line in makefile.splitlines() if "$(PIP)" in line]
    assert len(lines) == 2
    assert all("--upgrade pip" in line or "--no-deps" in line for line in lines)
    assert install.CPU_INDEX in README


PIP = ("-m", "pip", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    making = [sys.executable, *PIP, "wheel", "-q", "--no-deps", "-w", str(folder), "."]
    subprocess.run(making, cwd=ROOT, check=True)
    (found,) = folder.glob("manyheads-*.whl")
    return found


@pytest.mark.full
def test_the_wheel_runs_without_its_sources(built: Path, tmp_path: Path) -> None:
    """In an environment with no more than what it requires; first with nothing else at all."""
    own = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MANYHEADS_DATA")}
    bin_folder = tmp_path / "empty" / "bin"

    def run(program: str, *words: str | Path) -> str:
        done = subprocess.run(
            [bin_folder / program, *words],
            cwd=tmp_path,
            env=own,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    run("python", *PIP, "install", "-q", "--no-deps", "--no-index", built)
    where = run("python", "-c", "import manyheads; print(manyheads.__file__)").strip()
    assert Path(where).is_relative_to(tmp_path)
    others = Path(where).parents[1] / "others.pth"  # on the path, but for its own .pth files
    others.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    assert run("python", "-c", "import manyheads; print(manyheads.__file__)").strip() == where
    assert run("manyheads", "--version") == run("python", "-m", "manyheads", "--version")
    assert "translate" in run("manyheads", "--help")
    assert "date-en-ko" in run("manyheads", "models")
    date = run("manyheads", "translate", "--model", "date-en-ko", "Friday, 20 November 2026")
    assert date == "2026년 11월 20일 금요일\n"
    assert "digits" in run("manyheads", "doctor", "digits")
    run("manyheads", "look", "date-en-ko", "Nov 20, 2026", "--out", "look.html")
    assert "<html" in (tmp_path / "look.html").read_text("utf-8")
    run("manyheads", "train", "date-en-ko", "train.steps=2", "train.validate_every=2")
    page = run(
        "python",
        "-c",
        "from manyheads.web.server import *; import manyheads.web as w; "
        "from pathlib import Path; print(len([*Path(w.__file__).parent.rglob('*.js')]))",
    )
    assert int(page) == len([*(ROOT / "src" / "manyheads" / "web").rglob("*.js")])


@pytest.mark.full
def test_the_line_of_the_readme_brings_no_cuda(built: Path, tmp_path: Path) -> None:
    """The wheel, into an empty environment, in a dry run of pip."""
    with zipfile.ZipFile(built) as archive:
        assert any(name.endswith("dist-info/licenses/NOTICE") for name in archive.namelist())
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    own = os.environ | {"PIP_RETRIES": "0"}
    constraints = ["-q", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([python, *PIP, "install", "--upgrade", *constraints, "pip"], check=True)
    (line,) = re.findall(r"^pip (install .*whl/cpu .*)$", README, flags=re.MULTILINE)
    words = [str(built) if word == "." else word for word in shlex.split(line, comments=True)]
    report = tmp_path / "report.json"
    subprocess.run(
        [python, *PIP, *words, "-q", "--dry-run", "--report", report],
        cwd=ROOT,
        env=own,
        check=True,
    )
    found = json.loads(report.read_text(encoding="utf-8"))
    assert any(each["metadata"]["name"] == "manyheads" for each in found["install"])
    assert install.cuda_packages(found) == []
