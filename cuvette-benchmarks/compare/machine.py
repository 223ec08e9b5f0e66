"""Says on which machine the figures were taken."""
import datetime
import importlib.metadata
import os
import platform
import shutil
import subprocess


def gpu():
    if not shutil.which("nvidia-smi"):
        return "none found (no nvidia-smi)"
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=60)
    return done.stdout.strip().replace("\n", "; ") or "none found"


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return f"{os.cpu_count()} × {names[0] if names else platform.machine()}"


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe():
    packages = {name: version(name) for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy", "cuda-core", "torch")}
    found = ", ".join(f"{name} {number}" for name, number in packages.items() if number)
    return {
        "GPU, driver, memory": gpu(),
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "anchors": found or "none installed",
        "date": datetime.date.today().isoformat(),
    }
