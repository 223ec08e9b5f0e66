"""What Cuvette is held to, beside the anchors of the same run and in figures."""
from dataclasses import dataclass


BEFORE = "cuvette-before"  # an earlier Cuvette, of another bundle


@dataclass(frozen=True)
class Target:
    """Cuvette's figure must be at most (less is better) or at least `factor` times the anchor's, plus `offset`.
    Without an anchor `offset` alone is the bound."""

    work: str  # a work's name, or the start of it when it ends in *
    metric: str
    anchor: str
    factor: float
    offset: float
    at_most: bool
    text: str

    def applies(self, work, metric):
        same = work.startswith(self.work[:-1]) if self.work.endswith("*") else work == self.work
        return same and metric == self.metric

    def bound(self, anchor_value):
        return self.factor * (anchor_value or 0) + self.offset

    def met(self, value, anchor_value):
        bound = self.bound(anchor_value)
        return value <= bound if self.at_most else value >= bound


def faster(work, times, anchor, metric="nsPerPair"):
    return Target(work, metric, anchor, 1 / times, 0, True, f"{times} × as fast as {anchor}")


def below(work, metric, bound, text):
    return Target(work, metric, "", 0, bound, True, text)


def pageable(kind):
    """Copies of memory that is not page-locked, from 64 MiB on."""
    for size in ("64MiB", "256MiB", "1GiB", "4GiB"):
        for way, times in (("h2d", 4), ("d2h", 2)):
            work = f"transfer-{kind}-{way}-{size}"
            yield Target(work, "gigabytesPerSecond", "", 0, 40, False, "≥ 40 GB/s")
            yield Target(work, "gigabytesPerSecond", "c", times, 0, False, f"{times} × c")
    for way in ("h2d", "d2h"):
        yield Target(f"transfer-{kind}-{way}-4KiB", "gigabytesPerSecond", "c", 1, 0, False, "≥ c")


TARGETS = (
    faster("same-size-512", 5, "torch"),
    faster("same-size-1MiB", 5, "torch"),
    faster("random-live-1024-4MiB", 4, "torch"),
    Target("async-1MiB", "nsPerPair", "c", 1.3, 0, True, "≤ 1.3 × c"),
    faster("async-1MiB", 2, "cupy"),
    faster("pinned-resource-1MiB", 2, "cuda.core"),
    faster("pinned-resource-numa-1MiB", 2, "cuda.core"),
    Target("threads-8-own-stream", "pairsPerSecond", "cupy", 20, 0, False, "20 × cupy"),
    Target("replay-*", "ratio", "cupy", 1.01, 0, True, "≤ 1.01 × cupy"),
    Target("call-*", "nsPerCall", "c", 1, 20, True, "c + 20 ns"),
    Target("launch", "nsPerLaunch", "c", 1, 200, True, "c + 200 ns"),
    faster("launch", 2, "cuda.core", "nsPerLaunch"),
    Target("launch-packed", "nsPerLaunch", "c", 1, 50, True, "c + 50 ns"),
    below("launch-packed", "heapBytesPerLaunch", 0, "0 bytes"),
    Target("graph-launch", "nsPerGraph", "c", 1.1, 0, True, "≤ 1.1 × c"),
    Target("graph-launch+synchronize", "nsPerGraph", "c", 1.1, 0, True, "≤ 1.1 × c"),
    Target("graph-capture+instantiate", "nsPerGraph", "c", 1.3, 0, True, "≤ 1.3 × c"),
    Target("graph-update", "nsPerGraph", "c", 1.2, 0, True, "≤ 1.2 × c"),
    Target("launch*", "nsPerLaunch", BEFORE, 1.05, 0, True, "≤ 1.05 × before"),
    Target("transfer-pinned-*", "gigabytesPerSecond", "c", 0.99, 0, False, "99 % of c"),
    *(each for kind in ("heap", "direct", "mapped") for each in pageable(kind)),
    Target("transfer-rows-h2d-1000000x768", "gigabytesPerSecond", "", 0, 25, False, "≥ 25 GB/s"),
    Target("transfer-rows-d2h-1000000x768", "gigabytesPerSecond", "", 0, 25, False, "≥ 25 GB/s"),
    Target("product-*", "teraflops", "c", 0.97, 0, False, "97 % of c"),
    *(Target(f"array-{each}-256MiB", "gigabytesPerSecond", "c", 0.85, 0, False, "85 % of a copy in c")
      for each in ("sqrt", "add", "less", "sum")),
    below("same-size-512", "nsPerPair", 45, "≤ 45 ns"),
    below("same-size-1MiB", "nsPerPair", 45, "≤ 45 ns"),
    below("random-live-1024-4MiB", "nsPerPair", 120, "≤ 120 ns"),
    below("replay-*", "nsPerOperation", 60, "≤ 60 ns"),
    Target("threads-8-own-stream", "pairsPerSecond", "", 0, 80e6, False, "≥ 80 M"),
)
