package io.cuvette.internal.elastic;

import io.cuvette.internal.block.Memory;
import io.cuvette.internal.space.HeapCensus;
import io.cuvette.internal.space.Pieces;
import io.cuvette.internal.space.Space;
import io.cuvette.internal.space.Victim;
import io.cuvette.internal.streamcache.FrontCache;
import java.util.BitSet;
import java.util.OptionalLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** The addresses of small blocks, and those of the others. Not thread-safe. */
final class Spaces {
  /** Blocks below this size have addresses of their own, so that no large one lies among them. */
  static final long SMALL_BYTES = FrontCache.SMALL_BYTES;

  private final Space[] all;
  private final BitSet tags = new BitSet();
  private long sequence;

  /** The first so many addresses are for small blocks. */
  Spaces(Memory memory, long smallBytes, Pieces pieces, LongSupplier clock) {
    long base = memory.address();
    all =
        new Space[] {
          new Space(base, smallBytes, pieces, clock),
          new Space(base + smallBytes, memory.byteSize() - smallBytes, pieces, clock)
        };
    tags.set(Space.DONE);
  }

  /** Where blocks of a size are. */
  static int kind(long rounded) {
    return rounded < SMALL_BYTES ? 0 : 1;
  }

  static long units(long rounded) {
    return rounded >>> Space.UNIT_SHIFT;
  }

  Space of(int kind) {
    return all[kind];
  }

  /** How often a block was freed; what {@link #done} is called with. */
  long sequence() {
    return sequence;
  }

  /** Frees what a cache has in use. Changes nothing if the Java heap is full. */
  void give(ElasticCache cache, int kind, int run, long time) {
    all[kind].give(run, cache.tagOfFree(), sequence + 1, time);
    sequence++;
    cache.live--;
    cache.freedAt = cache.stream.clock.now();
  }

  /** A tag that nobody has. */
  int newTag() {
    int tag = tags.nextClearBit(0);
    for (Space space : all) {
      space.addTag(tag);
    }
    tags.set(tag);
    return tag;
  }

  /** A tag that has nothing may be another's. */
  void endTag(int tag) {
    tags.clear(tag);
  }

  long freeBytes(int tag) {
    return (all[0].freeUnits(tag) + all[1].freeUnits(tag)) << Space.UNIT_SHIFT;
  }

  long mappedBytes() {
    return (all[0].mappedUnits() + all[1].mappedUnits()) << Space.UNIT_SHIFT;
  }

  /** What was freed with a tag up to a sequence is done. */
  void done(int tag, long until) {
    for (Space space : all) {
      space.done(tag, until);
    }
  }

  /** See {@link Victim#carve}. */
  @Nullable Victim carve(long wantedBytes, OptionalLong idleNanos) {
    return Victim.carve(all, wantedBytes, idleNanos);
  }

  void count(HeapCensus census) {
    for (Space space : all) {
      census.add(space);
    }
  }

  void assertValid() {
    for (Space space : all) {
      space.assertValid();
    }
  }
}
