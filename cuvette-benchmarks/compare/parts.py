"""What runs: the anchors' programs and Cuvette's own, each a command that prints one JSON object a line."""
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
ANCHORS = os.path.join(os.path.dirname(HERE), "anchors")
ROOT = os.path.dirname(os.path.dirname(HERE))
C_PROGRAMS = ("driver_calls", "async_pool", "transfers", "launches", "graphs", "arrays", "replay")


@dataclass
class Part:
    """One program. `missing` says why it cannot run here; it is then reported, not run."""

    name: str
    command: list
    timeout_s: int
    environment: dict = field(default_factory=dict)
    missing: str = ""
    anchor: str = ""  # the name of its figures, if not the one that it prints


def c_compiler():
    """The command that compiles a C file against cuda.h, or None."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    nvcc = shutil.which("nvcc") or (home and shutil.which(os.path.join(home, "bin", "nvcc")))
    if nvcc:
        return [nvcc, "-O2", "-cudart", "none"]
    compiler = shutil.which(os.environ.get("CC", "cc"))
    for folder in (home, "/usr/local/cuda"):
        if compiler and folder and os.path.exists(os.path.join(folder, "include", "cuda.h")):
            return [compiler, "-O2", "-I", os.path.join(folder, "include")]
    return None


def compile_c(build, names=C_PROGRAMS):
    """Builds C programs; returns for each why it is missing, or an empty string."""
    compiler = c_compiler()
    reasons = {}
    for name in names:
        if not compiler:
            reasons[name] = "no nvcc, and no C compiler with cuda.h (set CUDA_HOME)"
            continue
        source = os.path.join(ANCHORS, "c", name + ".c")
        command = compiler + [source, "-o", os.path.join(build, name), "-ldl", "-lpthread"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        reasons[name] = "" if done.returncode == 0 else "does not compile: " + done.stderr.strip()[-300:]
    return reasons


def cublas():
    """Where Python has cuBLAS, for a system that does not find it by its name; empty if it has none."""
    for package in ("nvidia.cu13", "nvidia.cublas"):
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in found.submodule_search_locations if found else ():
            if os.path.isdir(os.path.join(folder, "lib")):
                return {"CUVETTE_CUBLAS": os.path.join(folder, "lib")}
    return {}


def binary_traces(traces, build):
    """Writes the form of the traces that all programs but Python's read; returns the paths."""
    script = os.path.join(ANCHORS, "python", "traces.py")
    subprocess.run([sys.executable, "-B", script, build, *traces], check=True, timeout=120)
    return binary_paths(traces, build)


def binary_paths(traces, build):
    return [os.path.join(build, os.path.basename(each).split(".")[0] + ".bin") for each in traces]


def everything(_):
    return True


def anchor_parts(build, traces, wanted=everything):
    """The anchors' programs; `wanted` says of which names, since building them takes its time."""
    binaries = binary_traces(traces, build) if wanted("replay") else []
    programs = [name for name in C_PROGRAMS if wanted("c " + name)]
    reasons = compile_c(build, programs)
    python = [sys.executable, "-B"]
    script = lambda *names: python + [os.path.join(ANCHORS, *names)]  # noqa: E731
    torch = {"CUVETTE_TORCH_BUILD": os.path.join(build, "torch")}
    expandable = {**torch, "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    ptx = [os.path.join(ANCHORS, "nothing_of_four.ptx")]
    settings = {"arrays": cublas()}
    arguments = {"replay": binaries, "launches": ptx, "graphs": ptx}
    command = lambda name: [os.path.join(build, name), *arguments.get(name, [])]  # noqa: E731
    c_parts = [
        Part("c " + name, command(name), 60, settings.get(name, {}), reasons[name])
        for name in programs
    ]
    all_parts = c_parts + [
        Part("cupy pools", script("python", "cupy_pools.py"), 60),
        Part("cupy replay", script("python", "cupy_replay.py") + traces, 90),
        Part("cupy transfers", script("python", "cupy_transfers.py"), 90),
        Part("cupy launches", script("python", "cupy_launches.py"), 40),
        Part("cupy graphs", script("python", "cupy_graphs.py"), 40),
        Part("cuda.core", script("python", "cuda_core_pools.py"), 40),
        Part("cuda.core launches", script("python", "cuda_core_launches.py"), 40),
        Part("cuda.core graphs", script("python", "cuda_core_graphs.py"), 40),
        Part("torch pools", script("pytorch", "torch_pools.py") + ["pools"], 150, torch),
        Part("torch replay", script("pytorch", "torch_pools.py") + ["replay"] + binaries, 90, torch),
        Part("torch-expandable replay", script("pytorch", "torch_pools.py") + ["replay"] + binaries, 90, expandable),
    ]
    return [part for part in all_parts if wanted(part.name)]


def jvm_parts(bundle_run, build, traces, before_run=None, wanted=everything):
    """Cuvette and LWJGL run from the self-contained bundle, whose `run` script is given; these files may lie in it.
    `before_run` is that of an earlier bundle, whose launches are measured beside."""
    binaries = binary_paths(traces, build)
    bundle_run = bundle_run or os.path.join(ROOT, "run")
    missing = "" if os.access(bundle_run, os.X_OK) else "no bundle: set BUNDLE_RUN to its run script"
    run = [bundle_run]
    replay = run + ["cuvette", "replay", "--json", "--timeline", "300", "--pool"]
    all_parts = [
        Part("cuvette pools", run + ["bench", "side-by-side", "pools"], 120, {}, missing),
        Part("cuvette driver", run + ["bench", "side-by-side", "driver"], 60, {}, missing),
        Part("cuvette launches", run + ["bench", "side-by-side", "launches"], 60, {}, missing),
        Part("cuvette graphs", run + ["bench", "side-by-side", "graphs"], 60, {}, missing),
        Part("cuvette transfers", run + ["cuvette", "bench", "transfers", "--json"], 150, {}, missing),
        Part("cuvette arrays", run + ["cuvette", "bench", "arrays", "--json"], 60, {}, missing),
        Part("cuvette replay", run + ["bench", "side-by-side", "replay", *binaries], 120, {}, missing),
        Part("cuvette pools replay", replay + ["memory,elastic,async", *traces], 150, {}, missing),
        Part("cuvette direct replay", replay + ["direct", "--repeat", "1", *traces], 150, {}, missing),
        Part("lwjgl", run + ["bench", "lwjgl"], 60, {}, missing),
    ]
    if before_run:
        command = [before_run, "bench", "side-by-side", "launches"]
        all_parts.append(Part("cuvette-before launches", command, 60, {}, "", "cuvette-before"))
    return [part for part in all_parts if wanted(part.name)]


def interleaved(first, second):
    """The two lists merged evenly, so that Cuvette's parts run between the anchors' and not after them."""
    placed = [((i + 0.5) / len(each), part) for each in (first, second) for i, part in enumerate(each)]
    return [part for _, part in sorted(placed, key=lambda entry: entry[0])]
