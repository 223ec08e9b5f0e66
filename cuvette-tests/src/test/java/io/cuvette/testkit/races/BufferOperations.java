package io.cuvette.testkit.races;

import static io.cuvette.testkit.races.StreamOperations.finish;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;
import io.cuvette.PinnedBuffer;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * Operations of {@code Buffer} with each kind of memory, and of {@code PinnedBuffer}. Stateless.
 */
final class BufferOperations {
  private static final CopyBox BOX = CopyBox.of(16, 8).withSource(0, 32).withTarget(0, 24);

  private BufferOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    for (Memory memory : Memory.values()) {
      addCopies(all, memory);
      addSegmentCopies(all, memory);
      addBoxesOfTheHost(all, memory);
      addCompletions(all, memory);
      addRowCompletions(all, memory);
      addFills(all, memory);
      addViews(all, memory);
    }
    addPinned(all);
    all.add(
        Operation.simulated(
            "Buffer.descriptor()",
            stage -> {
              Buffer buffer = stage.buffer();
              return buffer::descriptor;
            }));
    return all;
  }

  private static void addCopies(List<Operation> all, Memory memory) {
    all.add(two("Buffer.copyFrom(Buffer)", memory, (buffer, other, _) -> buffer.copyFrom(other)));
    all.add(two("Buffer.copyFrom(Buffer, CudaStream)", memory, Buffer::copyFrom));
    all.add(two("Buffer.copyTo(Buffer)", memory, (buffer, other, _) -> buffer.copyTo(other)));
    all.add(two("Buffer.copyTo(Buffer, CudaStream)", memory, Buffer::copyTo));
    all.add(
        two(
            "RowTransfers.copyFrom(Buffer, CopyBox)",
            memory,
            (buffer, other, _) -> buffer.copyFrom(other, BOX)));
    all.add(
        two(
            "RowTransfers.copyFrom(Buffer, CopyBox, CudaStream)",
            memory,
            (buffer, other, stream) -> buffer.copyFrom(other, BOX, stream)));
    all.add(
        two(
            "CopyBatch.copy()",
            memory,
            (buffer, other, _) -> CopyBatch.of(halves(buffer), halves(other)).copy()));
    all.add(
        two(
            "CopyBatch.copy(CudaStream)",
            memory,
            (buffer, other, stream) -> CopyBatch.of(halves(buffer), halves(other)).copy(stream)));
  }

  private static void addSegmentCopies(List<Operation> all, Memory memory) {
    for (boolean heap : new boolean[] {true, false}) {
      String variant = memory + (heap ? ", heap" : ", native");
      all.add(
          Operation.of(
              "Buffer.copyFrom(MemorySegment)",
              variant,
              stage -> {
                Buffer buffer = stage.buffer(memory);
                MemorySegment host = heap ? stage.heap() : stage.nativeMemory();
                return () -> buffer.copyFrom(host);
              }));
      all.add(
          Operation.of(
              "Buffer.copyTo(MemorySegment)",
              variant,
              stage -> {
                Buffer buffer = stage.buffer(memory);
                MemorySegment host = heap ? stage.heap() : stage.nativeMemory();
                return () -> buffer.copyTo(host);
              }));
    }
    all.add(
        Operation.of(
            "RowTransfers.gatherFrom(List)",
            memory.toString(),
            stage -> {
              Buffer buffer = stage.buffer(memory);
              List<MemorySegment> rows = List.of(stage.heap());
              return () -> buffer.gatherFrom(rows);
            }));
    all.add(
        Operation.of(
            "RowTransfers.scatterTo(List)",
            memory.toString(),
            stage -> {
              Buffer buffer = stage.buffer(memory);
              List<MemorySegment> rows = List.of(stage.heap());
              return () -> buffer.scatterTo(rows);
            }));
    all.add(
        queued(
            "Buffer.copyFrom(MemorySegment, CudaStream)",
            memory,
            (buffer, host, stream) -> buffer.copyFrom(host, stream)));
    all.add(
        queued(
            "Buffer.copyTo(MemorySegment, CudaStream)",
            memory,
            (buffer, host, stream) -> buffer.copyTo(host, stream)));
  }

  /** With the completion. */
  private static void addCompletions(List<Operation> all, Memory memory) {
    all.add(
        two(
            "Buffer.copyFromAsync(Buffer, CudaStream)",
            memory,
            (buffer, other, stream) -> finish(buffer.copyFromAsync(other, stream))));
    all.add(
        two(
            "Buffer.copyToAsync(Buffer, CudaStream)",
            memory,
            (buffer, other, stream) -> finish(buffer.copyToAsync(other, stream))));
    all.add(
        queued(
            "Buffer.copyFromAsync(MemorySegment, CudaStream)",
            memory,
            (buffer, host, stream) -> finish(buffer.copyFromAsync(host, stream))));
    all.add(
        queued(
            "Buffer.copyToAsync(MemorySegment, CudaStream)",
            memory,
            (buffer, host, stream) -> finish(buffer.copyToAsync(host, stream))));
  }

  /** Boxes, rows and batches in order of a stream, and with the completion. */
  private static void addRowCompletions(List<Operation> all, Memory memory) {
    all.add(
        two(
            "CopyBatch.copyAsync(CudaStream)",
            memory,
            (buffer, other, stream) ->
                finish(CopyBatch.of(halves(buffer), halves(other)).copyAsync(stream))));
    all.add(
        two(
            "RowTransfers.copyFromAsync(Buffer, CopyBox, CudaStream)",
            memory,
            (buffer, other, stream) -> finish(buffer.copyFromAsync(other, BOX, stream))));
    all.add(
        queued(
            "RowTransfers.copyFromAsync(MemorySegment, CopyBox, CudaStream)",
            memory,
            (buffer, host, stream) -> finish(buffer.copyFromAsync(host, BOX, stream))));
    all.add(
        queued(
            "RowTransfers.copyToAsync(MemorySegment, CopyBox, CudaStream)",
            memory,
            (buffer, host, stream) -> finish(buffer.copyToAsync(host, BOX, stream))));
    all.add(
        queued(
            "RowTransfers.gatherFrom(List, CudaStream)",
            memory,
            (buffer, host, stream) -> buffer.gatherFrom(List.of(host), stream)));
    all.add(
        queued(
            "RowTransfers.scatterTo(List, CudaStream)",
            memory,
            (buffer, host, stream) -> buffer.scatterTo(List.of(host), stream)));
    all.add(
        queued(
            "RowTransfers.gatherFromAsync(List, CudaStream)",
            memory,
            (buffer, host, stream) -> finish(buffer.gatherFromAsync(List.of(host), stream))));
    all.add(
        queued(
            "RowTransfers.scatterToAsync(List, CudaStream)",
            memory,
            (buffer, host, stream) -> finish(buffer.scatterToAsync(List.of(host), stream))));
  }

  private static void addBoxesOfTheHost(List<Operation> all, Memory memory) {
    all.add(
        Operation.of(
            "RowTransfers.copyFrom(MemorySegment, CopyBox)",
            memory.toString(),
            stage -> {
              Buffer buffer = stage.buffer(memory);
              MemorySegment host = stage.heap();
              return () -> buffer.copyFrom(host, BOX);
            }));
    all.add(
        Operation.of(
            "RowTransfers.copyTo(MemorySegment, CopyBox)",
            memory.toString(),
            stage -> {
              Buffer buffer = stage.buffer(memory);
              MemorySegment host = stage.heap();
              return () -> buffer.copyTo(host, BOX);
            }));
    all.add(
        queued(
            "RowTransfers.copyFrom(MemorySegment, CopyBox, CudaStream)",
            memory,
            (buffer, host, stream) -> buffer.copyFrom(host, BOX, stream)));
    all.add(
        queued(
            "RowTransfers.copyTo(MemorySegment, CopyBox, CudaStream)",
            memory,
            (buffer, host, stream) -> buffer.copyTo(host, BOX, stream)));
  }

  private static List<Buffer> halves(Buffer buffer) {
    return List.of(buffer.slice(0, 256), buffer.slice(256, 256));
  }

  private static void addFills(List<Operation> all, Memory memory) {
    all.add(one("Buffer.fill(byte)", memory, buffer -> buffer.fill((byte) 1)));
    all.add(one("Buffer.fill(int)", memory, buffer -> buffer.fill(1)));
    all.add(one("Buffer.fillShorts(short)", memory, buffer -> buffer.fillShorts((short) 1)));
    all.add(one("Buffer.fillInts(int)", memory, buffer -> buffer.fillInts(1)));
    all.add(
        queued(
            "Buffer.fill(byte, CudaStream)",
            memory,
            (buffer, _, stream) -> buffer.fill((byte) 1, stream)));
    all.add(
        queued(
            "Buffer.fill(int, CudaStream)", memory, (buffer, _, stream) -> buffer.fill(1, stream)));
    all.add(
        queued(
            "Buffer.fillShorts(short, CudaStream)",
            memory,
            (buffer, _, stream) -> buffer.fillShorts((short) 1, stream)));
    all.add(
        queued(
            "Buffer.fillInts(int, CudaStream)",
            memory,
            (buffer, _, stream) -> buffer.fillInts(1, stream)));
  }

  private static void addViews(List<Operation> all, Memory memory) {
    all.add(one("Buffer.slice(long)", memory, buffer -> buffer.slice(8)));
    all.add(one("Buffer.slice(long, long)", memory, buffer -> buffer.slice(0, 512).fill((byte) 1)));
    all.add(
        queued(
            "Buffer.recordUse(CudaStream)",
            memory,
            (buffer, _, stream) -> buffer.recordUse(stream)));
    all.add(one("Buffer.close()", memory, Buffer::close));
  }

  private static void addPinned(List<Operation> all) {
    all.add(pinned("PinnedBuffer.segment()", buffer -> buffer.segment().fill((byte) 1)));
    all.add(pinned("PinnedBuffer.byteBuffer()", buffer -> buffer.byteBuffer().put(0, (byte) 1)));
    all.add(pinned("PinnedBuffer.devicePointer()", PinnedBuffer::devicePointer));
    all.add(pinned("PinnedBuffer.slice(long)", buffer -> buffer.slice(8)));
    all.add(pinned("PinnedBuffer.slice(long, long)", buffer -> buffer.slice(0, 8)));
  }

  private static Operation pinned(String method, Consumer<PinnedBuffer> body) {
    return Operation.of(
        method,
        stage -> {
          PinnedBuffer buffer = stage.pinned();
          return () -> body.accept(buffer);
        });
  }

  static Operation one(String method, Memory memory, Consumer<Buffer> body) {
    return Operation.of(
        method,
        memory,
        stage -> {
          Buffer buffer = stage.buffer(memory);
          return () -> body.accept(buffer);
        });
  }

  /** What is done with two things on a stream. */
  interface OnStream<T> {
    void run(Buffer buffer, T other, CudaStream stream);
  }

  private static Operation two(String method, Memory memory, OnStream<Buffer> body) {
    boolean queues = method.contains("CudaStream");
    return Operation.of(
        method,
        memory,
        stage -> {
          Buffer buffer = stage.buffer(memory);
          Buffer other = stage.other();
          CudaStream stream = queues ? stage.stream() : stage.device.nullStream();
          return () -> body.run(buffer, other, stream);
        });
  }

  private static Operation queued(String method, Memory memory, OnStream<MemorySegment> body) {
    return Operation.of(
        method,
        memory,
        stage -> {
          Buffer buffer = stage.buffer(memory);
          CudaStream stream = stage.stream();
          MemorySegment host = stage.nativeMemory();
          return () -> body.run(buffer, host, stream);
        });
  }

  /** Options of an event that other processes can import. */
  static EventOptions interprocess() {
    return EventOptions.ORDER_ONLY.withInterprocess(true);
  }
}
