package io.cuvette.ffm.call;

import io.cuvette.driver.LaunchShape;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * How a CUlaunchConfig lies in memory, followed by its attributes: written for each launch, so
 * without any object. Stateless.
 */
public final class LaunchMemory {
  public static final long SHARED = 24;
  public static final long STREAM = 32;
  public static final long ATTRIBUTES = 40;
  public static final long COUNT = 48;
  public static final long CONFIG_BYTES = 56;
  public static final long VALUE = 8;
  public static final long ATTRIBUTE_BYTES = 72;

  /** CU_LAUNCH_ATTRIBUTE_COOPERATIVE. */
  public static final int COOPERATIVE = 2;

  /** CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION. */
  public static final int CLUSTER_DIMENSION = 4;

  /** CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION. */
  public static final int PROGRAMMATIC_STREAM_SERIALIZATION = 6;

  /** A configuration with all attributes. */
  static final long BYTES = CONFIG_BYTES + 3 * ATTRIBUTE_BYTES;

  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

  private LaunchMemory() {}

  static void write(MemorySegment memory, long at, LaunchShape shape, long stream) {
    memory.set(INT, at, shape.gridX());
    memory.set(INT, at + 4, shape.gridY());
    memory.set(INT, at + 8, shape.gridZ());
    memory.set(INT, at + 12, shape.blockX());
    memory.set(INT, at + 16, shape.blockY());
    memory.set(INT, at + 20, shape.blockZ());
    memory.set(INT, at + SHARED, shape.dynamicSharedBytes());
    memory.set(LONG, at + STREAM, stream);
    memory.set(LONG, at + ATTRIBUTES, at + CONFIG_BYTES);
    int count = 0;
    if (shape.hasClusters()) {
      long value = attribute(memory, at, count++, CLUSTER_DIMENSION);
      memory.set(INT, value, shape.clusterX());
      memory.set(INT, value + 4, shape.clusterY());
      memory.set(INT, value + 8, shape.clusterZ());
    }
    if (shape.cooperative()) {
      memory.set(INT, attribute(memory, at, count++, COOPERATIVE), 1);
    }
    if (shape.programmaticStreamSerialization()) {
      memory.set(INT, attribute(memory, at, count++, PROGRAMMATIC_STREAM_SERIALIZATION), 1);
    }
    memory.set(INT, at + COUNT, count);
  }

  /** Where the value of an attribute is to be written. */
  private static long attribute(MemorySegment memory, long at, int index, int id) {
    long attribute = at + CONFIG_BYTES + index * ATTRIBUTE_BYTES;
    memory.set(LONG, attribute, id); // the id and its padding
    return attribute + VALUE;
  }
}
