package io.cuvette.ffm.link;

import io.cuvette.driver.IpcCalls;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;

/**
 * The C types of cuda.h, as the linker needs them. Immutable.
 *
 * <p>Pointers and handles are longs: nothing is dereferenced here, and a long costs no object.
 * CUdevice, CUresult and every enum are ints. So are the {@code unsigned char} and {@code unsigned
 * short} of a fill: passed as a zero-extended int they are right for callees that widen them and
 * for those that trust their caller to.
 */
public final class Layouts {
  public static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
  public static final ValueLayout.OfLong SIZE = ValueLayout.JAVA_LONG;
  public static final ValueLayout.OfLong POINTER = ValueLayout.JAVA_LONG;

  /** A pointer whose memory the linker keeps alive, and checks, during the call. */
  public static final MemoryLayout SEGMENT = ValueLayout.ADDRESS;

  /** CUmemLocation, passed by value. */
  public static final StructLayout LOCATION =
      MemoryLayout.structLayout(INT.withName("type"), INT.withName("id"));

  /** CUmemPoolProps; what is not set must be 0. */
  public static final StructLayout POOL =
      MemoryLayout.structLayout(
          INT.withName("allocType"),
          INT.withName("handleTypes"),
          LOCATION.withName("location"),
          POINTER.withName("win32SecurityAttributes"),
          SIZE.withName("maxSize"),
          ValueLayout.JAVA_SHORT.withName("usage"),
          MemoryLayout.sequenceLayout(54, ValueLayout.JAVA_BYTE).withName("reserved"));

  /** CUmemAllocationProp; what is not set must be 0. */
  public static final StructLayout ALLOCATION =
      MemoryLayout.structLayout(
          INT.withName("type"),
          INT.withName("requestedHandleTypes"),
          LOCATION.withName("location"),
          POINTER.withName("win32HandleMetaData"),
          SIZE.withName("allocFlags"));

  /** CUmemAccessDesc. */
  public static final StructLayout ACCESS =
      MemoryLayout.structLayout(LOCATION.withName("location"), INT.withName("flags"));

  /** CUipcMemHandle and CUipcEventHandle, passed by value, and CUmemPoolPtrExportData. */
  public static final StructLayout IPC_HANDLE =
      MemoryLayout.structLayout(
          MemoryLayout.sequenceLayout(IpcCalls.HANDLE_BYTES, ValueLayout.JAVA_BYTE)
              .withName("reserved"));

  /** CUDA_GRAPH_INSTANTIATE_PARAMS. */
  public static final StructLayout GRAPH_INSTANTIATION =
      MemoryLayout.structLayout(
          SIZE.withName("flags"),
          POINTER.withName("hUploadStream"),
          POINTER.withName("hErrNode_out"),
          INT.withName("result_out"),
          MemoryLayout.paddingLayout(4));

  /** CUgraphExecUpdateResultInfo. */
  public static final StructLayout GRAPH_UPDATE =
      MemoryLayout.structLayout(
          INT.withName("result"),
          MemoryLayout.paddingLayout(4),
          POINTER.withName("errorNode"),
          POINTER.withName("errorFromNode"));

  /** CU_STREAM_CAPTURE_MODE_RELAXED. */
  public static final int CAPTURE_RELAXED = 2;

  private Layouts() {}
}
