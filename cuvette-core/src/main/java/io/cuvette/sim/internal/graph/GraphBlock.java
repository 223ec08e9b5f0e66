package io.cuvette.sim.internal.graph;

import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.memory.BlockUse;
import io.cuvette.sim.internal.memory.DeviceBlock;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.queue.SimDevice;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The memory of an allocation node: its address is there as long as the graph, its executables or
 * what a launch left allocated; its bytes are there from a launch until the free behind it. Guarded
 * by the driver's lock.
 */
public final class GraphBlock implements BlockUse {
  private final DeviceBlock block;
  private final GraphMemory memory;
  private final List<Integer> peers;
  private @Nullable SimGraph owner;

  /** The graphs with a node that frees it. */
  private @Nullable SimGraph freer;

  /** Whether the program has launched an allocation that it has not freed yet. */
  private boolean isOpen;

  /** Launches and what they left allocated, as far as the device did not get to their end. */
  private int uses;

  /** Whether the device allocated it, and did not free it yet. */
  private boolean isAllocated;

  private boolean ended;

  GraphBlock(DeviceBlock block, GraphMemory memory, List<Integer> peers) {
    this.block = block;
    this.memory = memory;
    this.peers = peers;
    block.use(this);
  }

  /** What a graph knows about a block; null if it is no memory of a graph. */
  public static @Nullable GraphBlock of(SimBlock block) {
    return block.use() instanceof GraphBlock ofGraph ? ofGraph : null;
  }

  public DeviceBlock block() {
    return block;
  }

  /** Ends one for which there is no node. */
  public void neverUsed() {
    ended = true;
    memory.device.endOfGraph(block);
  }

  public long address() {
    return block.address;
  }

  public GraphNodeParams.Allocation params() {
    return new GraphNodeParams.Allocation(block.device.index, block.byteSize, peers, block.address);
  }

  GraphMemory memory() {
    return memory;
  }

  void allocatedBy(SimGraph graph) {
    owner = graph;
  }

  void freedBy(SimGraph graph) {
    freer = graph;
  }

  void notFreedBy(SimGraph graph) {
    if (freer == graph) {
      freer = null;
    }
  }

  /** Whether its own graph frees it. */
  public boolean isFreedInside() {
    return freer != null && freer == owner;
  }

  /** Refuses a second node that frees it, in a graph of its own or in several. */
  public void checkFreeNode(SimGraph graph) {
    boolean twice = freer == graph;
    boolean elsewhere = freer != null && (freer == owner || graph == owner);
    if (ended || twice || elsewhere) {
      throw SimRefusal.invalidValue(
          "address: 0x%x is freed by a node of graph 0x%x already"
              .formatted(block.address, Objects.requireNonNull(freer).handle));
    }
  }

  /** Whether a launch has allocated it, and nothing that was queued since frees it. */
  public boolean isOpen() {
    return isOpen;
  }

  /** Refuses to free what is not allocated. */
  public void checkOpen() {
    if (!isOpen) {
      throw SimRefusal.invalidValue(
          "address: 0x%x of a graph is not allocated (expected: by a launch, and not freed since)"
              .formatted(block.address));
    }
  }

  /** Refuses questions about memory that no launch has needed yet, or needs still. */
  public void checkMapped() {
    if (uses == 0) {
      throw SimRefusal.invalidValue(
          "address: 0x%x of a graph is not known before a launch".formatted(block.address));
    }
  }

  /** A launch that allocates it is queued. */
  public void launched() {
    if (uses++ == 0) {
      memory.used.add(rounded());
    }
    open(!isFreedInside());
  }

  /** Whether a launch needs bytes for it that it does not have. */
  boolean isIdle() {
    return uses == 0;
  }

  private void open(boolean open) {
    if (open != isOpen) {
      memory.device.countOfGraph(block, open);
      isOpen = open;
    }
  }

  /** A free is queued. */
  public void freeing() {
    open(false);
  }

  /** The device allocates. */
  public void allocate() {
    block.forget();
    isAllocated = true;
  }

  /** The device frees. */
  public void free() {
    block.checkLive();
    isAllocated = false;
    uses--;
    if (uses == 0) {
      memory.used.add(-rounded());
      endIfUnused();
    }
  }

  long rounded() {
    return GraphMemory.rounded(block.byteSize);
  }

  void endIfUnused() {
    if (!ended && uses == 0 && !isOpen && owner != null && owner.isGone()) {
      ended = true;
      owner.blocks().remove(this);
      memory.device.endOfGraph(block);
    }
  }

  @Override
  public boolean isAllocated() {
    return isAllocated;
  }

  @Override
  public String kind() {
    return "graph";
  }

  @Override
  public int access(SimDevice by, long offset, long bytes) {
    return by == block.device || peers.contains(by.index)
        ? MemAccessFlags.READ_WRITE
        : MemAccessFlags.NONE;
  }
}
