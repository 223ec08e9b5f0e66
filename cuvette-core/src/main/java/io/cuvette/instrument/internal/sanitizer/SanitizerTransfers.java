package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.TransferCalls;
import io.cuvette.instrument.internal.memory.Work;
import io.cuvette.instrument.internal.report.CallTrace;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** The part of the sanitizer that watches copies and fills. Thread-safe. */
public final class SanitizerTransfers implements TransferCalls {
  private final TransferCalls calls;
  private final SanitizerCore core;

  public SanitizerTransfers(CudaDriver driver, SanitizerCore core) {
    this.calls = driver.transfers();
    this.core = core;
  }

  @Override
  public void memcpyAsync(int device, long target, long source, long bytes, long stream) {
    CallTrace site = copy("memcpyAsync", target, source, bytes, stream);
    core.queue(
        new Work(site, device, stream).reads(source, bytes).writes(target, bytes),
        () -> calls.memcpyAsync(device, target, source, bytes, stream));
  }

  @Override
  public void memcpyHtoDAsync(int device, long target, MemorySegment source, long stream) {
    CallTrace site =
        CallTrace.often("memcpyHtoDAsync", "target", target, "source", source, "stream", stream);
    core.queue(
        new Work(site, device, stream).reads(source).writes(target, source.byteSize()),
        () -> calls.memcpyHtoDAsync(device, target, source, stream));
  }

  @Override
  public void memcpyDtoHAsync(int device, MemorySegment target, long source, long stream) {
    CallTrace site =
        CallTrace.often("memcpyDtoHAsync", "target", target, "source", source, "stream", stream);
    core.queue(
        new Work(site, device, stream).reads(source, target.byteSize()).writes(target),
        () -> calls.memcpyDtoHAsync(device, target, source, stream));
  }

  @Override
  public void memcpyPeerAsync(
      int streamDevice,
      long target,
      int targetDevice,
      long source,
      int sourceDevice,
      long bytes,
      long stream) {
    CallTrace site = copy("memcpyPeerAsync", target, source, bytes, stream);
    Work work = new Work(site, streamDevice, stream).betweenDevices();
    core.queue(
        work.reads(source, bytes).writes(target, bytes),
        () ->
            calls.memcpyPeerAsync(
                streamDevice, target, targetDevice, source, sourceDevice, bytes, stream));
  }

  @Override
  public void memcpy3DAsync(int device, BoxCopy copy, long stream) {
    long target = copy.target().address();
    CallTrace site =
        copy("memcpy3DAsync", target, copy.source().address(), copy.byteSize(), stream);
    List<Work> rows = new ArrayList<>();
    for (long row = 0; row < copy.allRows(); row++) {
      rows.add(
          new Work(site, device, stream)
              .reads(copy.source().addressOf(row, copy.height()), copy.width())
              .writes(copy.target().addressOf(row, copy.height()), copy.width()));
    }
    core.queueAll(rows, () -> calls.memcpy3DAsync(device, copy, stream));
  }

  @Override
  public void memcpyBatchAsync(
      int device, long[] targets, long[] sources, long[] bytes, long stream) {
    CallTrace site =
        CallTrace.often("memcpyBatchAsync", "copies", targets.length, "stream", stream);
    List<Work> copies = new ArrayList<>();
    for (int i = 0; i < targets.length; i++) {
      copies.add(
          new Work(site, device, stream).reads(sources[i], bytes[i]).writes(targets[i], bytes[i]));
    }
    core.queueAll(copies, () -> calls.memcpyBatchAsync(device, targets, sources, bytes, stream));
  }

  @Override
  public void memsetD8Async(int device, long target, byte value, long count, long stream) {
    core.queue(
        fill("memsetD8Async", device, target, count, stream),
        () -> calls.memsetD8Async(device, target, value, count, stream));
  }

  @Override
  public void memsetD16Async(int device, long target, short value, long count, long stream) {
    core.queue(
        fill("memsetD16Async", device, target, count * Short.BYTES, stream),
        () -> calls.memsetD16Async(device, target, value, count, stream));
  }

  @Override
  public void memsetD32Async(int device, long target, int value, long count, long stream) {
    core.queue(
        fill("memsetD32Async", device, target, count * Integer.BYTES, stream),
        () -> calls.memsetD32Async(device, target, value, count, stream));
  }

  private static CallTrace copy(String method, long target, long source, long bytes, long stream) {
    return CallTrace.often(
        method, "target", target, "source", source, "bytes", bytes, "stream", stream);
  }

  private static Work fill(String method, int device, long target, long bytes, long stream) {
    CallTrace site = CallTrace.often(method, "target", target, "bytes", bytes, "stream", stream);
    return new Work(site, device, stream).writes(target, bytes);
  }
}
