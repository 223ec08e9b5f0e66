package io.cuvette.sim.internal.share;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.memory.SimBlock;
import java.io.UncheckedIOException;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/** What a driver shares with others. Guarded by the driver's lock. */
public final class SimSharing {
  /** Tells this driver from all others, of this process too. */
  public final long driverId = UUID.randomUUID().getLeastSignificantBits();

  private final Set<SharedFile> files = Collections.newSetFromMap(new IdentityHashMap<>());

  /** Those with records that are not done. */
  private final Set<SharedEvent> events = Collections.newSetFromMap(new IdentityHashMap<>());

  /** By the identity of its file, which is not what the file says. */
  private final Map<Object, OpenedMemory> memory = new HashMap<>();

  /** What an allocation of another process may have: the devices of all processes are the same. */
  public final long mostBytes;

  private @Nullable DescriptorCalls descriptors;

  public SimSharing(long mostBytes) {
    this.mostBytes = mostBytes;
  }

  /** Whether there are calls about descriptors. */
  public boolean isPossible() {
    if (descriptors == null) {
      descriptors = DescriptorCalls.find().orElse(null);
    }
    return descriptors != null;
  }

  /** The calls about descriptors, or NOT_SUPPORTED with what is missing. */
  public DescriptorCalls descriptors() {
    DescriptorCalls calls = isPossible() ? descriptors : null;
    if (calls == null) {
      throw new SimRefusal(
          CudaStatus.NOT_SUPPORTED,
          "sharing with other processes needs Linux and the module io.cuvette.ffm");
    }
    return calls;
  }

  /** A descriptor that the system gives, or OPERATING_SYSTEM with why it does not. */
  public int system(IntSupplier call) {
    try {
      return call.getAsInt();
    } catch (UncheckedIOException e) {
      throw new SimRefusal(CudaStatus.OPERATING_SYSTEM, String.valueOf(e.getMessage()));
    }
  }

  public void opened(SharedFile file) {
    files.add(file);
  }

  /** Whether a file was open until now. */
  public boolean closed(SharedFile file) {
    return files.remove(file);
  }

  /** The number of shared files that this driver has open. */
  public int files() {
    return files.size();
  }

  /** Whether a file is one of this driver, that was opened as another's. */
  public boolean isMadeHere(SharedFile opened) {
    return files.stream().anyMatch(file -> file.isMadeHere() && file.key().equals(opened.key()));
  }

  /** Says whether an event, destroyed or not, has records of this driver that are not done. */
  public void pending(SharedEvent event, boolean isAny) {
    boolean _ = isAny ? events.add(event) : events.remove(event);
  }

  /** The memory of a file that is open already; null if it is not. */
  public @Nullable OpenedMemory memory(SharedFile file) {
    return memory.get(file.key());
  }

  public void opened(SharedFile file, OpenedMemory opened) {
    memory.put(file.key(), opened);
  }

  /** What was opened as a block; null if the block was not. */
  public @Nullable OpenedMemory memory(SimBlock block) {
    return memory.values().stream().filter(o -> o.block() == block).findFirst().orElse(null);
  }

  public void closed(OpenedMemory opened) {
    memory.values().remove(opened);
  }

  /** Releases everything; what this driver recorded counts as complete. */
  public void close() {
    events.forEach(SharedEvent::abandon);
    List.copyOf(files).forEach(SharedFile::close);
  }
}
