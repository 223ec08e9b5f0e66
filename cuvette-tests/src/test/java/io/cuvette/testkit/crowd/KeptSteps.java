package io.cuvette.testkit.crowd;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.CudaStream;
import io.cuvette.HostRows;
import io.cuvette.LaunchConfig;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;

/** What threads do with a {@link KeptBlock}: each keeps its order, and its content is known. */
final class KeptSteps {
  private static final int MOST_BYTES = 1 << 14;
  private static final int MOST_FLOATS = 300;
  private static final int THREADS = 64;

  private KeptSteps() {}

  /** The steps, each as often as it is to be done. */
  static List<CrowdStep> all() {
    return List.of(
        KeptSteps::make,
        KeptSteps::make,
        KeptSteps::end,
        KeptSteps::end,
        on(KeptSteps::fill),
        on(KeptSteps::copyHeap),
        on(KeptSteps::copyPinned),
        on(KeptSteps::gather),
        on(KeptSteps::scale),
        on(KeptSteps::checkHeap),
        on(KeptSteps::checkPinned),
        on(KeptSteps::checkRows),
        KeptSteps::copy,
        KeptSteps::copy);
  }

  /** Work with a block, on a stream which the work of before precedes. */
  @FunctionalInterface
  private interface Work {
    void run(CrowdMember by, KeptBlock block, CudaStream stream) throws Exception;
  }

  private static CrowdStep on(Work work) {
    return by -> {
      KeptBlock block = by.take(by.crowd.kept);
      if (block != null) {
        run(by, block, work);
      }
    };
  }

  /** A block about which a failure leaves doubts is not looked into any more. */
  private static void run(CrowdMember by, KeptBlock block, Work work) throws Exception {
    CudaStream stream = by.quietStream();
    try {
      block.before(stream);
      work.run(by, block, stream);
      block.after(stream);
    } catch (Throwable e) {
      block.close();
      throw e;
    }
    by.crowd.kept.add(block);
  }

  private static void make(CrowdMember by) throws Exception {
    if (by.crowd.kept.isFull()) {
      return;
    }
    CudaStream stream = by.quietStream();
    Buffer buffer =
        by.crowd.resource(by.random).allocate(1 + by.random.nextInt(MOST_BYTES), stream);
    KeptBlock block;
    try {
      block = new KeptBlock(buffer, stream);
    } catch (Throwable e) {
      buffer.close();
      throw e;
    }
    run(by, block, by.random.nextBoolean() ? KeptSteps::fill : KeptSteps::copyHeap);
  }

  /** The last look, and the end. */
  private static void end(CrowdMember by) {
    KeptBlock block = by.take(by.crowd.kept);
    if (block != null) {
      end(by, block);
    }
  }

  /** Looks at a block that is taken, and ends it. */
  static void end(CrowdMember by, KeptBlock block) {
    try {
      CudaStream stream = by.quietStream();
      block.before(stream);
      checkHeap(by, block, stream);
    } finally {
      block.close();
    }
  }

  private static void fill(CrowdMember by, KeptBlock block, CudaStream stream) {
    byte value = (byte) by.random.nextInt();
    block.buffer.fill(value, stream);
    Arrays.fill(block.content, value);
  }

  private static byte[] random(CrowdMember by, int bytes) {
    byte[] content = new byte[bytes];
    by.random.nextBytes(content);
    return content;
  }

  private static void copyHeap(CrowdMember by, KeptBlock block, CudaStream stream) {
    byte[] content = random(by, block.size());
    try (Scope _ = stream.use()) {
      block.buffer.copyFrom(MemorySegment.ofArray(content));
    }
    block.content = content;
  }

  private static void copyPinned(CrowdMember by, KeptBlock block, CudaStream stream) {
    byte[] content = random(by, block.size());
    try (PinnedBuffer host = by.crowd.pinned.allocate(content.length)) {
      host.segment().copyFrom(MemorySegment.ofArray(content));
      if (by.random.nextBoolean()) {
        block.buffer.copyFrom(host, stream);
      } else {
        by.crowd.futures.add(block.buffer.copyFromAsync(host, stream));
      }
    }
    block.content = content;
  }

  /** From rows in the heap, in native memory, or in memory of the program that is page-locked. */
  private static void gather(CrowdMember by, KeptBlock block, CudaStream stream) {
    byte[] content = random(by, block.size());
    int middle = by.random.nextInt(content.length + 1);
    byte[][] halves = {
      Arrays.copyOf(content, middle), Arrays.copyOfRange(content, middle, content.length)
    };
    switch (by.random.nextInt(3)) {
      case 0 -> {
        try (Scope _ = stream.use()) {
          block.buffer.gatherFrom(HostRows.of(halves));
        }
      }
      case 1 -> {
        MemorySegment host = Arena.ofAuto().allocate(content.length);
        host.copyFrom(MemorySegment.ofArray(content));
        List<MemorySegment> rows = List.of(host.asSlice(0, middle), host.asSlice(middle));
        block.buffer.gatherFromAsync(rows, stream).join();
      }
      default -> {
        try (Arena arena = Arena.ofShared()) {
          MemorySegment host = arena.allocate(content.length);
          host.copyFrom(MemorySegment.ofArray(content));
          try (PinnedBuffer registered = by.crowd.cuda.registerHost(host)) {
            block.buffer.copyFrom(registered, stream);
          }
        }
      }
    }
    block.content = content;
  }

  /** Some of the block becomes a number, of which a kernel makes the double. */
  private static void scale(CrowdMember by, KeptBlock block, CudaStream stream) {
    int count = Math.min(block.size() / Float.BYTES, MOST_FLOATS);
    if (count > 0) {
      float number = by.random.nextInt(1, 1000);
      Buffer floats = block.buffer.slice(0, (long) count * Float.BYTES);
      floats.fillInts(Float.floatToRawIntBits(number), stream);
      stream.launch(by.crowd.scale, LaunchConfig.forElements(count, THREADS), floats, 2f, count);
      MemorySegment content = MemorySegment.ofArray(block.content);
      for (int i = 0; i < count; i++) {
        content.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i, 2 * number);
      }
    }
  }

  private static void checkHeap(CrowdMember by, KeptBlock block, CudaStream stream) {
    byte[] found = new byte[block.size()];
    try (Scope _ = stream.use()) {
      block.buffer.copyTo(MemorySegment.ofArray(found));
    }
    block.assertHolds(found);
  }

  private static void checkPinned(CrowdMember by, KeptBlock block, CudaStream stream)
      throws Exception {
    try (PinnedBuffer host = by.crowd.pinned.allocate(block.size())) {
      if (by.random.nextBoolean()) {
        block.buffer.copyTo(host, stream);
        stream.synchronize();
      } else {
        CrowdMember.get(block.buffer.copyToAsync(host.segment(), stream));
      }
      block.assertHolds(host.segment().toArray(ValueLayout.JAVA_BYTE));
    }
  }

  private static void checkRows(CrowdMember by, KeptBlock block, CudaStream stream)
      throws Exception {
    int middle = by.random.nextInt(block.size() + 1);
    MemorySegment host = Arena.ofAuto().allocate(block.size());
    List<MemorySegment> rows = List.of(host.asSlice(0, middle), host.asSlice(middle));
    CrowdMember.get(block.buffer.scatterToAsync(rows, stream));
    block.assertHolds(host.toArray(ValueLayout.JAVA_BYTE));
  }

  /** From one block to another, in one of the forms there are. */
  private static void copy(CrowdMember by) throws Exception {
    KeptBlock source = by.take(by.crowd.kept);
    if (source != null) {
      run(
          by,
          source,
          (_, from, stream) -> {
            KeptBlock target = by.take(by.crowd.kept);
            if (target != null) {
              run(
                  by,
                  target,
                  (_, to, other) -> {
                    from.before(other);
                    copy(by, from, to, other);
                    stream.waitFor(other);
                  });
            }
          });
    }
  }

  private static void copy(CrowdMember by, KeptBlock from, KeptBlock to, CudaStream stream) {
    int bytes = Math.min(from.size(), to.size());
    byte[] content = to.content.clone();
    System.arraycopy(from.content, 0, content, 0, bytes);
    switch (by.random.nextInt(3)) {
      case 0 -> to.buffer.slice(0, bytes).copyFrom(from.buffer.slice(0, bytes), stream);
      case 1 -> {
        Buffer head = from.buffer.slice(0, bytes);
        CopyBatch.of(List.of(to.buffer), List.of(head)).copy(stream);
      }
      default -> {
        System.arraycopy(to.content, 0, content, 0, bytes);
        int rows = Math.min(bytes, 1 + by.random.nextInt(5));
        int pitch = bytes / rows;
        int width = 1 + by.random.nextInt(pitch);
        for (int row = 0; row < rows; row++) {
          System.arraycopy(from.content, row * pitch, content, row * pitch, width);
        }
        CopyBox box = CopyBox.of(width, rows).withSource(0, pitch).withTarget(0, pitch);
        by.crowd.futures.add(to.buffer.copyFromAsync(from.buffer, box, stream));
      }
    }
    to.content = content;
  }
}
