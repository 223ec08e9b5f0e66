package io.cuvette.sim.internal.memory;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.Addresses;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.Gaps;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Addresses that a program reserves, and what it has mapped there. A range that was given back is
 * reserved again only when no other is left. Guarded by the driver's lock.
 */
public final class VirtualSpace {
  /** What addresses and sizes are multiples of. */
  public static final long GRANULARITY = DevicePages.PAGE;

  private final int devices;

  /** When the operation that runs was queued. */
  private final LongSupplier queuedNanos;

  private final Gaps free = new Gaps(Gaps.UNBOUNDED);
  private long next = Addresses.VIRTUAL_START;

  /** Sizes of what is reserved, by address. */
  private final TreeMap<Long, Long> reserved = new TreeMap<>();

  private final TreeMap<Long, MappedPiece> pieces = new TreeMap<>();

  /** Blocks of what is mapped now; null if it changed since they were found. */
  private @Nullable NavigableMap<Long, VirtualBlock> blocks;

  public VirtualSpace(int devices, LongSupplier queuedNanos) {
    this.devices = devices;
    this.queuedNanos = queuedNanos;
    free.add(new Extent(Addresses.VIRTUAL_START, Addresses.VIRTUAL_BYTES));
  }

  /** Reserves a range, where the caller wants it if that is free. */
  public long reserve(long bytes, long alignment, long wanted) {
    checkMultiple("bytes", bytes, GRANULARITY);
    long step = Math.max(alignment, GRANULARITY);
    if (alignment < 0 || Long.bitCount(alignment) > 1) {
      throw SimRefusal.invalidValue(
          "alignment: %d (expected: 0 or a power of 2)".formatted(alignment));
    }
    if (wanted % step != 0) {
      throw SimRefusal.invalidValue(
          "address: 0x%x (expected: a multiple of %d)".formatted(wanted, step));
    }
    long address = place(bytes, step, wanted);
    free.remove(new Extent(address, bytes));
    reserved.put(address, bytes);
    return address;
  }

  private long place(long bytes, long step, long wanted) {
    if (wanted != 0 && isFree(wanted, bytes)) {
      return wanted;
    }
    long fresh = up(next, step);
    if (isFree(fresh, bytes)) {
      next = fresh + bytes;
      return fresh;
    }
    Extent gap =
        bytes > Addresses.VIRTUAL_BYTES
            ? null
            : free.smallest(bytes, found -> up(found.offset(), step) <= found.end() - bytes);
    if (gap == null) {
      throw new SimRefusal(
          CudaStatus.OUT_OF_MEMORY,
          "%d bytes of addresses (expected: at most %d, the largest free range)"
              .formatted(bytes, free.largest()));
    }
    return up(gap.offset(), step);
  }

  private boolean isFree(long address, long bytes) {
    return Addresses.isVirtual(address)
        && bytes <= Addresses.VIRTUAL_BYTES
        && free.in(new Extent(address, bytes)).stream().anyMatch(e -> e.byteSize() == bytes);
  }

  private static long up(long address, long step) {
    return (address + step - 1) / step * step;
  }

  /** Gives exactly one range back, in which nothing is mapped. */
  public void free(long address, long bytes) {
    Long size = reserved.get(address);
    if (size == null || size != bytes) {
      throw SimRefusal.invalidValue(
          "0x%x: %d bytes (expected: exactly one reserved range%s)"
              .formatted(address, bytes, size == null ? "" : ", which has " + size));
    }
    List<MappedPiece> inside = inside(address, bytes);
    if (!inside.isEmpty()) {
      throw SimRefusal.invalidValue(
          "0x%x: %d mappings are in the range (expected: none)".formatted(address, inside.size()));
    }
    reserved.remove(address);
    free.add(new Extent(address, bytes));
  }

  /** Maps all of a memory. */
  public void map(PhysicalMemory memory, long address, long bytes, long nanos) {
    checkMultiple("address", address, GRANULARITY);
    if (bytes != memory.byteSize()) {
      throw SimRefusal.invalidValue(
          "bytes: %d (expected: %d, all of the memory)".formatted(bytes, memory.byteSize()));
    }
    Map.Entry<Long, Long> range = reserved.floorEntry(address);
    if (range == null || address + bytes > range.getKey() + range.getValue()) {
      throw SimRefusal.invalidValue(
          "0x%x: %d bytes (expected: in one reserved range)".formatted(address, bytes));
    }
    if (!inside(address, bytes).isEmpty()) {
      throw SimRefusal.invalidValue(
          "0x%x: %d bytes, of which some are mapped already".formatted(address, bytes));
    }
    pieces.put(address, new MappedPiece(memory, address, devices, nanos));
    memory.mapped(1);
    blocks = null;
  }

  /** Ends whole mappings that fill a range; returns what was mapped. */
  public List<MappedPiece> unmap(long address, long bytes) {
    List<MappedPiece> all = exactly(address, bytes);
    for (MappedPiece piece : all) {
      pieces.remove(piece.address);
      piece.memory.mapped(-1);
    }
    blocks = null;
    return all;
  }

  /** The mappings that fill a range, none of them in part. */
  public List<MappedPiece> exactly(long address, long bytes) {
    List<MappedPiece> all = inside(address, bytes);
    long end = address;
    for (MappedPiece piece : all) {
      if (piece.address != end) {
        break;
      }
      end = piece.end();
    }
    if (all.isEmpty() || bytes <= 0 || end != address + bytes) {
      throw SimRefusal.invalidValue(
          "0x%x: %d bytes (expected: whole mappings without a gap)".formatted(address, bytes));
    }
    return all;
  }

  /** Mappings with a byte in a range. */
  private List<MappedPiece> inside(long address, long bytes) {
    List<MappedPiece> found = new ArrayList<>();
    MappedPiece first = at(address);
    if (first != null && first.address < address) {
      found.add(first);
    }
    found.addAll(pieces.subMap(address, address + Math.max(bytes, 0)).values());
    return found;
  }

  /** The reserved range of an address at which memory is mapped. */
  Extent reserved(long address) {
    Map.Entry<Long, Long> range = reserved.floorEntry(address);
    return new Extent(range.getKey(), range.getValue());
  }

  /** The mapping that an address is in; null if there is none. */
  public @Nullable MappedPiece at(long address) {
    Map.Entry<Long, MappedPiece> entry = pieces.floorEntry(address);
    return entry == null || address >= entry.getValue().end() ? null : entry.getValue();
  }

  /** The mapping of an address that the program names. */
  public MappedPiece mapped(long address) {
    MappedPiece piece = at(address);
    if (piece == null) {
      throw SimRefusal.invalidValue(
          "address: 0x%x (expected: one at which memory is mapped)".formatted(address));
    }
    return piece;
  }

  /** The mapping that the operation finds that runs. */
  MappedPiece touched(long address) {
    MappedPiece piece = at(address);
    if (piece == null || piece.mappedNanos >= queuedNanos.getAsLong()) {
      throw new SimRefusal(
          CudaStatus.ILLEGAL_ADDRESS,
          "0x%x: %s"
              .formatted(
                  address,
                  piece == null
                      ? "unmapped before the queued operation ran"
                      : "mapped anew before the queued operation ran"));
    }
    return piece;
  }

  /** What a device may do with all bytes of a range. */
  int access(SimDevice device, long address, long bytes) {
    int all = -1;
    for (MappedPiece piece : inside(address, bytes)) {
      all &= piece.access(device);
    }
    return Math.max(all, 0);
  }

  /** The block of mappings that an address is in, or at the end of. */
  public @Nullable VirtualBlock find(long address) {
    if (blocks == null) {
      blocks = blocks();
    }
    Map.Entry<Long, VirtualBlock> entry = blocks.floorEntry(address);
    return entry == null || address - entry.getKey() > entry.getValue().byteSize
        ? null
        : entry.getValue();
  }

  private NavigableMap<Long, VirtualBlock> blocks() {
    NavigableMap<Long, VirtualBlock> found = new TreeMap<>();
    MappedPiece first = null;
    MappedPiece last = null;
    int count = 0;
    for (MappedPiece piece : pieces.values()) {
      if (first == null || last == null || !continues(last, piece)) {
        if (first != null && last != null) {
          found.put(first.address, new VirtualBlock(this, first, last, count));
        }
        first = piece;
        count = 0;
      }
      last = piece;
      count++;
    }
    if (first != null && last != null) {
      found.put(first.address, new VirtualBlock(this, first, last, count));
    }
    return found;
  }

  private static boolean continues(MappedPiece last, MappedPiece piece) {
    return last.end() == piece.address
        && last.memory.isOnDevice() == piece.memory.isOnDevice()
        && last.memory.content.device == piece.memory.content.device;
  }

  public static void checkMultiple(String name, long value, long unit) {
    if (value <= 0 || value % unit != 0) {
      throw SimRefusal.invalidValue(
          "%s: %d (expected: a multiple of %d, > 0)".formatted(name, value, unit));
    }
  }

  public int mappings() {
    return pieces.size();
  }

  public int reservations() {
    return reserved.size();
  }
}
