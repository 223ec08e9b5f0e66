package io.cuvette.ffm.part;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.link.NativeAccess;
import io.cuvette.ffm.link.NodeLayouts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Calls about the capture of streams. Thread-safe. */
public final class FfmCaptures extends Part implements CaptureCalls {
  public static final DriverFunction BEGIN =
      optional("cuStreamBeginCapture(stream=%#x, mode=%d, device=%d)", 10010, POINTER, INT);
  public static final DriverFunction END =
      optional("cuStreamEndCapture(stream=%#x, device=%d)", 10000, POINTER, OUT);
  public static final MethodHandle IS_CAPTURING =
      Libcuda.function("cuStreamIsCapturing", 10000, POINTER, POINTER);
  public static final MethodHandle GET_INFO =
      Libcuda.function(
          "cuStreamGetCaptureInfo", 11030, POINTER, POINTER, POINTER, POINTER, POINTER, POINTER);

  /** The form that also gives the data of edges, without which some captures refuse to tell. */
  public static final MethodHandle GET_DEPENDENCIES =
      Libcuda.function(
          "cuStreamGetCaptureInfo",
          12030,
          POINTER,
          SEGMENT,
          POINTER,
          POINTER,
          SEGMENT,
          SEGMENT,
          SEGMENT);

  public static final MethodHandle BEGIN_TO_GRAPH =
      Libcuda.function(
          "cuStreamBeginCaptureToGraph", 12030, POINTER, POINTER, SEGMENT, POINTER, SIZE, INT);
  public static final MethodHandle UPDATE_DEPENDENCIES =
      Libcuda.function(
          "cuStreamUpdateCaptureDependencies", 12030, POINTER, SEGMENT, POINTER, SIZE, INT);

  /** CUstreamCaptureStatus of a capture that is going on. */
  private static final int ACTIVE = 1;

  /** The part of the driver whose calls start here. */
  public FfmCaptures(Entry entry) {
    super(entry);
  }

  @Override
  public void streamBeginCapture(int device, long stream, int mode) {
    BEGIN.call(stream, mode, device, enterAsIs(device));
  }

  @Override
  public long streamEndCapture(int device, long stream) {
    return END.call(stream, device, enterAsIs(device));
  }

  @Override
  public int streamIsCapturing(int device, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) IS_CAPTURING.invokeExact(stream, frame.out);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long result = frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuStreamIsCapturing(stream=%#x, device=%d)", stream, device).failed(status);
    }
    return (int) result;
  }

  @Override
  public CaptureInfo streamGetCaptureInfo(int device, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status =
          (int)
              GET_INFO.invokeExact(
                  stream, frame.spare(), frame.out, frame.out + Long.BYTES, 0L, 0L);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    int capture = frame.spareResult();
    long graph = frame.second();
    long id = frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuStreamGetCaptureInfo(stream=%#x, device=%d)", stream, device).failed(status);
    }
    return CaptureInfo.of(capture, id, graph);
  }

  /**
   * The graph that a stream is captured into; 0 if it is not, or if the driver refuses to tell: it
   * refuses the work as well, and says why.
   */
  long capturedGraph(int device, long stream) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status =
          (int)
              GET_INFO.invokeExact(
                  stream, frame.spare(), frame.out, frame.out + Long.BYTES, 0L, 0L);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    boolean isCaptured = status == SUCCESS && frame.spareResult() == ACTIVE;
    long graph = frame.second();
    frame.leave();
    return isCaptured ? graph : 0;
  }

  @Override
  public void streamBeginCaptureToGraph(
      int device, long stream, long graph, long[] dependencies, int mode) {
    MemorySegment after = NodeStructures.handles(dependencies);
    long count = dependencies.length;
    Call.of(
            "cuStreamBeginCaptureToGraph(stream=%#x, graph=%#x, dependencies=%d, mode=%d,"
                + " device=%d)",
            stream, graph, count, mode, device)
        .run(
            _ -> (int) BEGIN_TO_GRAPH.invokeExact(stream, graph, after, 0L, count, mode),
            enterAsIs(device));
  }

  /** The driver's list is valid until the next call about the stream, so it is read at once. */
  @Override
  public long[] streamGetCaptureDependencies(int device, long stream) {
    MemorySegment capture = Arena.ofAuto().allocate(INT);
    MemorySegment nodes = Arena.ofAuto().allocate(POINTER);
    MemorySegment edges = Arena.ofAuto().allocate(POINTER);
    MemorySegment count = Arena.ofAuto().allocate(SIZE);
    Call.of("cuStreamGetCaptureInfo(stream=%#x, device=%d)", stream, device)
        .run(
            _ -> (int) GET_DEPENDENCIES.invokeExact(stream, capture, 0L, 0L, nodes, edges, count),
            enterAsIs(device));
    if (capture.get(INT, 0) != ACTIVE) {
      return new long[0];
    }
    long bytes = count.get(SIZE, 0) * POINTER.byteSize(); // the driver's, until the stream changes
    return NativeAccess.memory(nodes.get(POINTER, 0), bytes).toArray(POINTER);
  }

  @Override
  public void streamUpdateCaptureDependencies(int device, long stream, long[] dependencies) {
    MemorySegment after = NodeStructures.handles(dependencies);
    long count = dependencies.length;
    Call.of(
            "cuStreamUpdateCaptureDependencies(stream=%#x, dependencies=%d, device=%d)",
            stream, count, device)
        .run(
            _ ->
                (int)
                    UPDATE_DEPENDENCIES.invokeExact(
                        stream, after, 0L, count, NodeLayouts.SET_DEPENDENCIES),
            enterAsIs(device));
  }
}
