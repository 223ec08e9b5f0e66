package io.cuvette.sim.internal.memory;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.BlockFile;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.HostFile;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The pinned and managed memory of a driver by address, that of its views included. Guarded by the
 * driver's lock.
 */
public final class HostMemory {
  private final HostFile file = new HostFile();
  private final TreeMap<Long, Mapping> mappings = new TreeMap<>();
  private final ArrayDeque<HostBlock> stillMapped = new ArrayDeque<>();
  private long usedBytes;
  private int liveBlocks;

  /** A block as seen at one address: its own, or that of a view. */
  private record Mapping(HostBlock block, long offset, MemorySegment segment) {
    boolean isAlive() {
      return block.isLive() && segment.scope().isAlive();
    }
  }

  public HostBlock allocate(HostBlock.Kind kind, SimDevice device, long bytes, long id, int flags) {
    retryOne();
    Extent extent = file.reserve(Math.max(1, bytes));
    HostBlock block = HostBlock.of(kind, device, file, extent, bytes, id, flags);
    return add(block);
  }

  /**
   * Memory of the program.
   *
   * @throws SimRefusal if some of it is a block already
   */
  public HostBlock register(SimDevice device, MemorySegment memory, long id, int flags) {
    retryOne();
    long end = memory.address() + memory.byteSize();
    mappings
        .headMap(end)
        .forEach((address, mapping) -> {
          if (mapping.isAlive() && address + mapping.segment.byteSize() > memory.address()) {
            throw new SimRefusal(
                CudaStatus.HOST_MEMORY_ALREADY_REGISTERED,
                "0x%x: %d bytes, in part %s"
                    .formatted(memory.address(), end - memory.address(), mapping.block));
          }
        });
    return add(HostBlock.registered(device, memory, id, flags));
  }

  /** A block in a file that other processes can map. */
  public HostBlock placeShared(
      SimDevice device, BlockFile file, Extent extent, long bytes, long id) {
    retryOne();
    return add(HostBlock.of(HostBlock.Kind.PINNED, device, file, extent, bytes, id, 0));
  }

  /** A block of another process, which is not counted here. */
  public HostBlock placeImported(
      SimDevice device, BlockFile file, Extent extent, long bytes, long id) {
    retryOne();
    HostBlock block = HostBlock.of(HostBlock.Kind.PINNED, device, file, extent, bytes, id, 0);
    block.markImported();
    return add(block);
  }

  private HostBlock add(HostBlock block) {
    mappings.put(block.address, new Mapping(block, 0, block.segment));
    usedBytes += block.isImported() ? 0 : block.byteSize;
    liveBlocks++;
    return block;
  }

  /** Counts a block no longer; its bytes stay until {@link #free}. */
  public void retire(HostBlock block) {
    if (block.retire()) {
      usedBytes -= block.isImported() ? 0 : block.byteSize;
      liveBlocks--;
    }
  }

  public void free(HostBlock block) {
    retire(block);
    block.pages.leave();
    mappings.remove(block.address);
    if (!block.unmap()) {
      stillMapped.add(block);
    }
  }

  /** One a call, so that a call never gets long. */
  private void retryOne() {
    HostBlock block = stillMapped.poll();
    if (block != null && !block.unmap()) {
      stillMapped.add(block);
    }
  }

  public MemorySegment view(SimPlace place, long bytes, Arena arena) {
    HostBlock block = (HostBlock) place.block();
    MemorySegment view = block.view(place.offset(), bytes, arena);
    if (bytes > 0 && block.kind != HostBlock.Kind.REGISTERED) {
      mappings.put(view.address(), new Mapping(block, place.offset(), view));
    }
    return view;
  }

  /** Where in which block an address is, at its end at most. */
  public @Nullable SimPlace find(long address) {
    while (true) {
      Map.Entry<Long, Mapping> entry = mappings.floorEntry(address);
      if (entry == null) {
        return null;
      }
      Mapping mapping = entry.getValue();
      if (mapping.isAlive()) {
        long offset = address - entry.getKey();
        return offset <= mapping.segment.byteSize()
            ? new SimPlace(mapping.block, mapping.offset + offset)
            : null;
      }
      // A view whose arena was closed, or whose block is gone; an older one may be behind it.
      mappings.remove(entry.getKey());
    }
  }

  public long usedBytes() {
    return usedBytes;
  }

  public int liveBlocks() {
    return liveBlocks;
  }

  /** The length of the file behind the memory. */
  public long fileBytes() throws IOException {
    return file.byteSize();
  }

  public void forEach(Consumer<SimBlock> action) {
    mappings.forEach((address, mapping) -> {
      if (address == mapping.block.address && mapping.block.isLive()) {
        action.accept(mapping.block);
      }
    });
  }

  public void close() {
    for (Mapping mapping : java.util.List.copyOf(mappings.values())) {
      if (mapping.block.isLive()) {
        free(mapping.block);
      }
    }
    file.close();
  }
}
