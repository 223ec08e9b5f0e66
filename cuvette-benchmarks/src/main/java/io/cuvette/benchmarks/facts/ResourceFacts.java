package io.cuvette.benchmarks.facts;

import io.cuvette.DriverPoolResource;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.benchmarks.facts.Ways.How;
import io.cuvette.benchmarks.facts.Ways.Kind;

/** What each resource reports of itself, and its pool's attributes at birth. Not thread-safe. */
final class ResourceFacts {
  private static final int PINNED = 1;
  private static final int MANAGED = 2;
  private static final int AT_NONE = 0;
  private static final int AT_HOST = 2;

  private final Ways ways;
  private final Recorder recorder;

  ResourceFacts(Ways ways, Recorder recorder) {
    this.ways = ways;
    this.recorder = recorder;
  }

  void members() {
    for (Kind kind : Kind.values()) {
      for (How how : How.values()) {
        if (how.fits(kind)) {
          members(kind, how);
        }
      }
    }
  }

  private void members(Kind kind, How how) {
    String prefix = kind + "." + how;
    DriverPoolResource resource = recorder.made(prefix + ".made", () -> ways.make(kind, how));
    if (resource == null) {
      return;
    }
    open(prefix, resource);
    recorder.fact(prefix + ".handle_is_current_pool", () -> resource.handle() == currentPool(kind));
    recorder.fact(
        prefix + ".allocation_handle", () -> resource.allocationHandle().descriptor() >= 0);
    recorder.outcome(prefix + ".close", resource::close);
    recorder.fact(prefix + ".closed.is_handle_owned", resource::isHandleOwned);
    recorder.outcome(prefix + ".close_again", resource::close);
  }

  private void open(String prefix, DriverPoolResource resource) {
    recorder.fact(prefix + ".is_device_accessible", resource::isDeviceAccessible);
    recorder.fact(prefix + ".is_host_accessible", resource::isHostAccessible);
    recorder.fact(prefix + ".device_id", resource::deviceId);
    recorder.fact(prefix + ".is_handle_owned", resource::isHandleOwned);
    recorder.fact(prefix + ".is_ipc_enabled", resource::isIpcEnabled);
    recorder.fact(prefix + ".is_mapped", resource::isMapped);
    if (resource instanceof PinnedMemoryResource pinned) {
      recorder.fact(prefix + ".numa_id", pinned::numaId);
    }
    recorder.fact(prefix + ".has_uuid", () -> resource.uuid().isPresent());
    recorder.fact(prefix + ".handle_is_set", () -> resource.handle() != 0);
  }

  private long currentPool(Kind kind) {
    return switch (kind) {
      case DEVICE -> ways.cuda().driver().pools().deviceGetMemPool(0);
      case PINNED -> ways.cuda().driver().pools().memGetMemPool(AT_HOST, 0, PINNED);
      case MANAGED -> ways.cuda().driver().pools().memGetMemPool(AT_NONE, 0, MANAGED);
    };
  }

  void birth() {
    for (Kind kind : Kind.values()) {
      for (How how : How.values()) {
        if (how.fits(kind) && isPossible(kind, how)) {
          try (DriverPoolResource resource = ways.make(kind, how)) {
            SequenceFacts.birth(recorder, kind + "." + how + ".birth", resource.attributes());
          }
        }
      }
    }
  }

  /** The section of the members says why not. */
  private boolean isPossible(Kind kind, How how) {
    try {
      ways.make(kind, how).close();
      return true;
    } catch (RuntimeException e) {
      return false;
    }
  }
}
