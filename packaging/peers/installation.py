"""Installs releases of Home Assistant from PyPI into bin/peers, and writes their lock files."""

import contextlib
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent

# The releases that can be installed, newest first, with the Python that each needs. The last one does not know devices by MQTT.
RELEASES = {"2026.11.0": "3.14", "2025.3.4": "3.13", "2024.3.3": "3.11"}

# What a release needs in an older version than the newest, which its own constraints do not say.
HELD_BACK = {"2024.3.3": ["josepy<2"]}

# The integrations that are used, and those that they import, as far as a release has them.
INTEGRATIONS = ("api automation backup camera cloud config conversation diagnostics frontend hassio infrared input_boolean media_source "
                "mobile_app mqtt radio_frequency recorder scene stream sun template wyoming").split()


class Missing(Exception):
    """Something that this machine cannot have: a Python, or PyPI."""


class Installation:
    """A release of Home Assistant in an environment of its own."""

    def __init__(self, release):
        self.release = release
        self.lock = here / f"homeassistant-{release}.lock"
        self.venv = root / "bin/peers" / f"homeassistant-{release}"

    def has_python(self):
        """Reports whether this machine has a Python that the release supports."""
        with contextlib.suppress(Missing):
            return self.find_python() is not None
        return False

    def ffmpeg(self):
        """Returns the path of the program that Home Assistant converts sound with."""
        return next(self.venv.glob("lib/python3.*/site-packages/imageio_ffmpeg/binaries/ffmpeg-*"))

    def find_python(self):
        """Returns the path of a Python that the release supports."""
        version = RELEASES[self.release]
        found = [shutil.which(f"python{version}"), *map(str, pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))]
        for path in filter(None, found):
            if subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
                return path
        raise Missing(f"Home Assistant {self.release} needs Python {version}, with its module venv")

    def install(self):
        """Installs the release as the lock file has it, unless that was done before."""
        stamp = hashlib.sha256(self.lock.read_bytes()).hexdigest()
        done = self.venv / "installed"
        if done.exists() and done.read_text() == stamp:
            return
        self.create()
        print(f"installing Home Assistant {self.release}; the first time takes a minute or two", flush=True)
        self.pip("--require-hashes", "--no-deps", "--requirement", self.lock)
        done.write_text(stamp)

    def create(self):
        """Creates the environment, without packages."""
        shutil.rmtree(self.venv, ignore_errors=True)
        subprocess.run([self.find_python(), "-m", "venv", self.venv], check=True)

    def pip(self, *arguments):
        """Installs packages. Most of their files are never used, so that none is compiled before it is."""
        result = subprocess.run([self.venv / "bin/pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", "--retries", "2", "--timeout", "20", *arguments], capture_output=True, text=True)
        if result.returncode != 0:
            raise Missing(f"Home Assistant {self.release} could not be installed from PyPI: {result.stderr}")

    def write_lock(self):
        """Writes the lock file: the release and what its integrations need, with the hash of the file for this machine."""
        self.create()
        self.pip("--no-deps", f"homeassistant=={self.release}")
        package = next(self.venv.glob("lib/python3.*/site-packages/homeassistant"))
        with tempfile.TemporaryDirectory() as folder:
            report, constraints = pathlib.Path(folder, "report.json"), pathlib.Path(folder, "constraints.txt")
            shutil.copy(package / "package_constraints.txt", constraints)
            needed = requirements(package / "components")
            self.pip("--dry-run", "--ignore-installed", "--report", report, "--constraint", constraints, f"homeassistant=={self.release}", "imageio-ffmpeg", *HELD_BACK.get(self.release, []), *needed)
            packages = {p["metadata"]["name"].lower(): (p["metadata"]["version"], p["download_info"]["archive_info"]["hashes"]["sha256"])
                        for p in json.loads(report.read_text())["install"]}
        text = f"# Written by homeassistant.py lock: Python {RELEASES[self.release]} on x86-64.\n"
        text += "".join(f"{name}=={version} --hash=sha256:{digest}\n" for name, (version, digest) in sorted(packages.items()))
        self.lock.write_text(text)


def requirements(components):
    """Returns what the integrations and those that they depend on need from PyPI."""
    needed, seen, left = set(), set(), list(INTEGRATIONS)
    while left:
        name = left.pop()
        if name in seen or not (components / name).exists():
            continue
        seen.add(name)
        manifest = json.loads((components / name / "manifest.json").read_text())
        needed |= set(manifest.get("requirements", []))
        left += manifest.get("dependencies", [])
    return sorted(needed)
