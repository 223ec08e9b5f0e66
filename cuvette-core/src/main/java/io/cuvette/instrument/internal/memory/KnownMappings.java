package io.cuvette.instrument.internal.memory;

import io.cuvette.driver.MemAccessFlags;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.HappensBefore;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * What is mapped into reserved addresses, and what was unmapped not long ago. Memory that is mapped
 * at two places is not known to be one. Not thread-safe.
 */
public final class KnownMappings {
  /** The method that gives reserved addresses back. */
  private static final String FREE = "memAddressFree";

  private static final int REMEMBERED = 4096;

  private final BlockLedger blocks;
  private final HappensBefore order;

  private final NavigableMap<Long, Mapping> live = new TreeMap<>(Long::compareUnsigned);
  private final RangeMap<CallTrace> unmapped = new RangeMap<>();
  private int remembered;

  /** Handles of memory in which something may be written already. */
  private final Set<Long> used = new HashSet<>();

  /** Handles of memory that other processes may write. */
  private final Set<Long> shared = new HashSet<>();

  KnownMappings(BlockLedger blocks, HappensBefore order) {
    this.blocks = blocks;
    this.order = order;
  }

  /** One mapping. Not thread-safe. */
  public static final class Mapping {
    final long address;
    final long bytes;
    final CallTrace site;
    private final Map<Integer, Integer> access = new HashMap<>();

    /** The last one that is known of the memory. */
    private long handle;

    Mapping(long address, long bytes, long handle, CallTrace site) {
      this.address = address;
      this.bytes = bytes;
      this.handle = handle;
      this.site = site;
    }
  }

  /** Notes addresses at which memory can be mapped. */
  public void reserved(long address, long bytes, CallTrace here) {
    blocks.add(new KnownBlock(address, bytes, FREE, here).ofDevice());
  }

  static boolean isReserved(@Nullable KnownBlock block) {
    return block != null && block.freedBy.equals(FREE);
  }

  /** Notes memory that is new: nothing is in it yet. */
  public void created(long handle) {
    used.remove(handle);
    shared.remove(handle);
  }

  /** Notes memory that is mapped. */
  public void mapped(long address, long bytes, long handle, CallTrace here) {
    Mapping mapping = new Mapping(address, bytes, handle, here);
    unmapped.clear(address, bytes);
    live.put(address, mapping);
    if (!used.add(handle)) {
      writtenWhereMapped(handle);
    }
  }

  private void written(Mapping mapping) {
    KnownBlock block = blocks.liveAround(mapping.address);
    if (block == null) {
      return;
    }
    if (shared.contains(mapping.handle)) {
      block.share(mapping.address, mapping.bytes);
    } else {
      block.written(mapping.address, mapping.bytes);
    }
  }

  /** Notes one more handle of the memory that is mapped at an address. */
  public void retained(long address, long handle) {
    used.add(handle);
    Mapping mapping = around(address);
    if (mapping != null) {
      mapping.handle = handle;
    }
  }

  /** Notes memory that other processes may write from now on, wherever it is mapped. */
  public void shared(long handle) {
    used.add(handle);
    shared.add(handle);
    writtenWhereMapped(handle);
  }

  /** What is written at one of its places is written at all. */
  private void writtenWhereMapped(long handle) {
    live.values().stream().filter(mapping -> mapping.handle == handle).forEach(this::written);
  }

  /** Whether a range may be unmapped: something is there, which no work uses. */
  public void checkUnmap(long address, long bytes, CallTrace here, Findings findings) {
    KnownBlock block = blocks.liveAround(address);
    if (block == null || inside(address, bytes).isEmpty()) {
      CallTrace gone = goneFrom(address);
      String rule = "nothing is mapped at 0x%x".formatted(address);
      if (gone == null) {
        findings.add(Misuse.INVALID_FREE, here, rule);
      } else {
        findings.add(Misuse.DOUBLE_FREE, here, rule, gone);
      }
      return;
    }
    Access use = block.uses.unfinished(new Range(address, bytes, Kind.HOLD, false), order);
    if (use != null) {
      KnownMemory.inUse(block, use, here, findings);
    }
  }

  /**
   * Takes the mappings of a range away, before the driver may map others there; what is mapped next
   * has another content.
   */
  public List<Mapping> unmapped(long address, long bytes, CallTrace here) {
    KnownBlock block = blocks.liveAround(address);
    if (block != null) {
      block.emptied(address, bytes);
    }
    NavigableMap<Long, Mapping> inside = inside(address, bytes);
    List<Mapping> gone = new ArrayList<>(inside.values());
    inside.clear();
    remembered += gone.size();
    if (remembered > REMEMBERED) {
      unmapped.clear(0, Long.MAX_VALUE);
      remembered = 0;
    }
    gone.forEach(mapping -> unmapped.set(mapping.address, mapping.bytes, here));
    return gone;
  }

  /** Puts mappings back that the driver refused to end, with whatever is in them. */
  public void restore(List<Mapping> mappings) {
    for (Mapping mapping : mappings) {
      unmapped.clear(mapping.address, mapping.bytes);
      live.put(mapping.address, mapping);
      written(mapping);
    }
  }

  private NavigableMap<Long, Mapping> inside(long address, long bytes) {
    return live.subMap(address, true, address + Math.max(bytes, 0), false);
  }

  /** Where an address was unmapped; null if it was not. */
  private @Nullable CallTrace goneFrom(long address) {
    return unmapped.find(address, 1, _ -> true);
  }

  /** Notes what places may do with a range. */
  public void setAccess(long address, long bytes, int[] ids, int[] access) {
    for (Mapping mapping : inside(address, bytes).values()) {
      for (int i = 0; i < ids.length; i++) {
        mapping.access.put(ids[i], access[access.length == 1 ? 0 : i]);
      }
    }
  }

  /** How many bytes are mapped from an address on without a gap, up to a number. */
  long mappedFrom(long address, long most) {
    long end = address;
    for (Mapping each = around(end); each != null && end - address < most; each = around(end)) {
      end = each.address + each.bytes;
    }
    return Math.min(end - address, most);
  }

  /** Whether a range is mapped without a gap. */
  void check(Range range, CallTrace here, Findings findings) {
    long at = range.address() + mappedFrom(range.address(), range.bytes());
    if (at == range.address() + range.bytes()) {
      return;
    }
    CallTrace gone = goneFrom(at);
    if (gone != null) {
      findings.add(Misuse.USE_AFTER_FREE, here, "%s: 0x%x was unmapped".formatted(range, at), gone);
    } else {
      findings.add(
          Misuse.UNKNOWN_ADDRESS, here, "%s: nothing is mapped at 0x%x".formatted(range, at));
    }
  }

  /** Whether the device of work may do with a range what the work does there. */
  public void checkAccess(Range range, Work work, Findings findings) {
    if (!findings.isEmpty()
        || work.isBetweenDevices
        || !isReserved(blocks.liveAround(range.address()))) {
      return;
    }
    int needed = range.kind() == Kind.WRITE ? MemAccessFlags.READ_WRITE : MemAccessFlags.READ;
    long first = Objects.requireNonNullElse(live.floorKey(range.address()), range.address());
    for (Mapping mapping : inside(first, range.address() + range.bytes() - first).values()) {
      int access = mapping.access.getOrDefault(work.device, MemAccessFlags.NONE);
      if ((access & needed) != needed) {
        findings.add(
            Misuse.NO_ACCESS,
            work.site,
            "%s: device %d has access %d at 0x%x (expected: %d)"
                .formatted(
                    range, work.device, access, Math.max(range.address(), mapping.address), needed),
            mapping.site);
        return;
      }
    }
  }

  private @Nullable Mapping around(long address) {
    Map.Entry<Long, Mapping> entry = live.floorEntry(address);
    Mapping below = entry == null ? null : entry.getValue();
    return below != null && address - below.address < below.bytes ? below : null;
  }

  void leaks(Findings findings) {
    live.values()
        .forEach(mapping ->
            findings.leak(
                "mapping of %d bytes at 0x%x".formatted(mapping.bytes, mapping.address),
                mapping.site));
  }
}
