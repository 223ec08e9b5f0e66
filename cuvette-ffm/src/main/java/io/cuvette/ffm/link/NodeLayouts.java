package io.cuvette.ffm.link;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SIZE;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.StructLayout;

/**
 * The structures of cuda.h that say what a node of a graph does. What is not set must be 0.
 * Immutable.
 */
public final class NodeLayouts {
  private static final MemoryLayout PADDING = MemoryLayout.paddingLayout(4);

  /** CUDA_KERNEL_NODE_PARAMS_v2. */
  public static final StructLayout KERNEL =
      MemoryLayout.structLayout(
          POINTER.withName("func"),
          INT.withName("gridDimX"),
          INT.withName("gridDimY"),
          INT.withName("gridDimZ"),
          INT.withName("blockDimX"),
          INT.withName("blockDimY"),
          INT.withName("blockDimZ"),
          INT.withName("sharedMemBytes"),
          PADDING,
          POINTER.withName("kernelParams"),
          POINTER.withName("extra"),
          POINTER.withName("kern"),
          POINTER.withName("ctx"));

  /** CUDA_MEMCPY3D. */
  public static final StructLayout COPY =
      MemoryLayout.structLayout(
          SIZE.withName("srcXInBytes"),
          SIZE.withName("srcY"),
          SIZE.withName("srcZ"),
          SIZE.withName("srcLOD"),
          INT.withName("srcMemoryType"),
          PADDING,
          POINTER.withName("srcHost"),
          POINTER.withName("srcDevice"),
          POINTER.withName("srcArray"),
          POINTER.withName("reserved0"),
          SIZE.withName("srcPitch"),
          SIZE.withName("srcHeight"),
          SIZE.withName("dstXInBytes"),
          SIZE.withName("dstY"),
          SIZE.withName("dstZ"),
          SIZE.withName("dstLOD"),
          INT.withName("dstMemoryType"),
          PADDING,
          POINTER.withName("dstHost"),
          POINTER.withName("dstDevice"),
          POINTER.withName("dstArray"),
          POINTER.withName("reserved1"),
          SIZE.withName("dstPitch"),
          SIZE.withName("dstHeight"),
          SIZE.withName("WidthInBytes"),
          SIZE.withName("Height"),
          SIZE.withName("Depth"));

  /** CUDA_MEMSET_NODE_PARAMS_v1. */
  public static final StructLayout FILL =
      MemoryLayout.structLayout(
          POINTER.withName("dst"),
          SIZE.withName("pitch"),
          INT.withName("value"),
          INT.withName("elementSize"),
          SIZE.withName("width"),
          SIZE.withName("height"));

  /** CUDA_HOST_NODE_PARAMS_v1. */
  public static final StructLayout HOST =
      MemoryLayout.structLayout(POINTER.withName("fn"), POINTER.withName("userData"));

  /** CUDA_MEM_ALLOC_NODE_PARAMS_v1. */
  public static final StructLayout ALLOCATION =
      MemoryLayout.structLayout(
          Layouts.POOL.withName("poolProps"),
          POINTER.withName("accessDescs"),
          SIZE.withName("accessDescCount"),
          SIZE.withName("bytesize"),
          POINTER.withName("dptr"));

  /** CUgraphNodeParams of a conditional node. */
  public static final StructLayout CONDITIONAL =
      MemoryLayout.structLayout(
          INT.withName("type"),
          MemoryLayout.sequenceLayout(3, INT).withName("reserved0"),
          SIZE.withName("conditional.handle"),
          INT.withName("conditional.type"),
          INT.withName("conditional.size"),
          POINTER.withName("conditional.phGraph_out"),
          POINTER.withName("conditional.ctx"),
          MemoryLayout.paddingLayout(200),
          SIZE.withName("reserved2"));

  /** CU_GRAPH_NODE_TYPE_CONDITIONAL. */
  public static final int CONDITIONAL_TYPE = 13;

  /** CUlaunchAttributeValue. */
  public static final long ATTRIBUTE_VALUE_BYTES = 64;

  /** CU_LAUNCH_ATTRIBUTE_PRIORITY. */
  public static final int PRIORITY = 8;

  /** CU_MEMORYTYPE_HOST. */
  public static final int HOST_MEMORY = 1;

  /** CU_MEMORYTYPE_ARRAY. */
  public static final int ARRAY_MEMORY = 3;

  /** CU_MEMORYTYPE_UNIFIED. */
  public static final int UNIFIED_MEMORY = 4;

  /** CU_STREAM_SET_CAPTURE_DEPENDENCIES. */
  public static final int SET_DEPENDENCIES = 1;

  private NodeLayouts() {}

  /** Where a member of a structure lies. */
  public static long at(StructLayout structure, String member) {
    return structure.byteOffset(PathElement.groupElement(member));
  }
}
