package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.SweepReport;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Copies of two and three dimensions: {@link CopyBox}. */
@Timeout(120)
class BoxCopyTest {
  private static final int MIB = 1 << 20;

  /** Byte by byte. */
  private static byte[] expected(byte[] before, byte[] source, CopyBox box) {
    byte[] after = before.clone();
    for (long layer = 0; layer < box.depth(); layer++) {
      for (long row = 0; row < box.height(); row++) {
        System.arraycopy(
            source,
            at(box.source(), layer, row),
            after,
            at(box.target(), layer, row),
            (int) box.width());
      }
    }
    return after;
  }

  private static int at(CopyBox.Side side, long layer, long row) {
    return (int) (side.offset() + (layer * side.rows() + row) * side.pitch());
  }

  private static CopyBox random(SplittableRandom random, int size) {
    long width = random.nextLong(1, size);
    long height = random.nextLong(1, 6);
    long depth = random.nextLong(1, 5);
    CopyBox box = CopyBox.of(width, height, depth);
    if (random.nextBoolean()) {
      box =
          box.withSource(
              random.nextLong(20), width + random.nextLong(9), height + random.nextLong(3));
    }
    if (random.nextBoolean()) {
      box =
          box.withTarget(
              random.nextLong(20), width + random.nextLong(9), height + random.nextLong(3));
    }
    return box;
  }

  private static int bytes(CopyBox box, CopyBox.Side side) {
    return at(side, box.depth() - 1, box.height() - 1) + (int) box.width() + 5;
  }

  private static byte[] read(Buffer buffer) {
    byte[] all = new byte[(int) buffer.byteSize()];
    buffer.copyTo(MemorySegment.ofArray(all));
    return all;
  }

  @CudaTest(seeds = 3)
  void boxesBetweenBuffers_areWhatCopyingRowsGives(Cuda cuda, CudaStream stream) {
    SplittableRandom random = new SplittableRandom(5);
    for (int i = 0; i < 60; i++) {
      CopyBox box = random(random, 40);
      byte[] from = Bytes.random(i, bytes(box, box.source()));
      byte[] to = Bytes.random(i + 1, bytes(box, box.target()));
      try (Buffer source = buffer(cuda, stream, from.length, i % 3);
          Buffer target = buffer(cuda, stream, to.length, i / 3 % 3)) {
        source.copyFrom(MemorySegment.ofArray(from));
        target.copyFrom(MemorySegment.ofArray(to));
        if (i % 2 == 0) {
          target.copyFrom(source, box);
        } else {
          target.copyFrom(source, box, stream);
          stream.synchronize();
        }
        assertThat(read(target)).as("%s", box).isEqualTo(expected(to, from, box));
      }
    }
  }

  /** The transfer's parts begin inside of layers, and the rows of two layers are apart. */
  @CudaTest
  void largeBoxesOfTheHost_areWhatCopyingRowsGives(Cuda cuda) {
    CopyBox in = CopyBox.of(MIB / 2, 3, 4).withTarget(7, MIB / 2 + 9, 4);
    byte[] host = Bytes.random(1, bytes(in, in.source()));
    byte[] device = Bytes.random(2, bytes(in, in.target()));
    try (Buffer buffer = cuda.allocate(device.length)) {
      buffer.copyFrom(MemorySegment.ofArray(device));
      buffer.copyFrom(MemorySegment.ofArray(host), in);
      byte[] after = expected(device, host, in);
      assertThat(read(buffer)).isEqualTo(after);
      CopyBox out = CopyBox.of(MIB / 2, 3, 4).withSource(7, MIB / 2 + 9, 4);
      byte[] back = new byte[host.length];
      buffer.copyTo(MemorySegment.ofArray(back), out);
      assertThat(back).isEqualTo(expected(new byte[host.length], after, out));
    }
  }

  private static Buffer buffer(Cuda cuda, CudaStream stream, long bytes, int kind) {
    return switch (kind) {
      case 0 -> cuda.allocate(bytes, stream);
      case 1 -> cuda.allocatePinned(bytes);
      default -> MemoryResource.managed().allocate(bytes, stream);
    };
  }

  @CudaTest(seeds = 3)
  void boxesOfTheHost_areWhatCopyingRowsGives(Cuda cuda, CudaStream stream) {
    SplittableRandom random = new SplittableRandom(6);
    for (int i = 0; i < 60; i++) {
      checkHost(cuda, stream, random(random, i % 10 == 0 ? 300_000 : 40), i);
    }
  }

  private static void checkHost(Cuda cuda, CudaStream stream, CopyBox box, int i) {
    byte[] from = Bytes.random(i, bytes(box, box.source()));
    byte[] to = Bytes.random(i + 1, bytes(box, box.target()));
    try (Arena arena = Arena.ofConfined();
        Buffer source = buffer(cuda, stream, from.length, i % 3);
        Buffer target = buffer(cuda, stream, to.length, i % 3);
        PinnedBuffer pinnedIn = cuda.allocatePinned(from.length);
        PinnedBuffer pinnedOut = cuda.allocatePinned(to.length)) {
      List<MemorySegment> ins =
          List.of(
              MemorySegment.ofArray(from),
              arena.allocateFrom(ValueLayout.JAVA_BYTE, from),
              pinnedIn.segment().copyFrom(MemorySegment.ofArray(from)));
      for (MemorySegment in : ins) {
        target.copyFrom(MemorySegment.ofArray(to));
        if (in.isNative() && i % 2 == 0) {
          target.copyFrom(in, box, stream);
          stream.synchronize();
        } else {
          target.copyFrom(in, box);
        }
        assertThat(read(target)).as("%s from %s", box, in).isEqualTo(expected(to, from, box));
      }
      source.copyFrom(MemorySegment.ofArray(from));
      for (MemorySegment out :
          List.of(
              MemorySegment.ofArray(to.clone()), arena.allocate(to.length), pinnedOut.segment())) {
        out.copyFrom(MemorySegment.ofArray(to));
        if (out.isNative() && i % 2 == 0) {
          source.copyTo(out, box, stream);
          stream.synchronize();
        } else {
          source.copyTo(out, box);
        }
        assertThat(out.toArray(ValueLayout.JAVA_BYTE))
            .as("%s to %s", box, out)
            .isEqualTo(expected(to, from, box));
      }
    }
  }

  @CudaTest
  void boxesOfPageLockedMemory_areOneCall_andOthersAFewOfEachChunk(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    CopyBox box = CopyBox.of(1024, 4096).withTarget(0, 2048);
    try (Buffer target = cuda.allocate(8L * MIB, stream);
        Buffer source = cuda.allocate(4L * MIB, stream);
        PinnedBuffer pinned = cuda.allocatePinned(4L * MIB)) {
      source.fill((byte) 1);
      pinned.segment().fill((byte) 2);
      long before = driver.count("memcpy3DAsync");
      target.copyFrom(source, box, stream);
      assertThat(driver.count("memcpy3DAsync") - before).isOne();
      target.copyFrom(pinned.segment(), box, stream);
      target.copyFrom(pinned.segment(), box);
      assertThat(driver.count("memcpy3DAsync") - before).isEqualTo(3);
      target.copyFrom(MemorySegment.ofArray(new byte[4 * MIB]), box);
      assertThat(driver.count("memcpy3DAsync") - before).isBetween(4L, 8L);
      long single = driver.count("memcpyAsync");
      target.copyFrom(source, CopyBox.of(MIB, 4), stream);
      assertThat(driver.count("memcpyAsync") - single).as("without gaps: one row").isOne();
    }
  }

  @CudaTest
  void rowsOfOneBuffer_mayLieBetweenEachOther_andNotOverlap(Cuda cuda, CudaStream stream) {
    byte[] content = Bytes.random(3, 1000);
    try (Buffer image = cuda.allocate(1000, stream)) {
      image.copyFrom(MemorySegment.ofArray(content));
      CopyBox halves = CopyBox.of(50, 10).withSource(0, 100).withTarget(50, 100);
      image.copyFrom(image, halves);
      assertThat(read(image)).isEqualTo(expected(content, content, halves));
      CopyBox shared = CopyBox.of(50, 10).withSource(0, 100).withTarget(49, 100);
      assertThatThrownBy(() -> image.copyFrom(image, shared, stream))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("1 bytes are in a row of the source and in one of the target");
    }
  }

  /** The host may see the memory of a buffer at an address that is not the buffer's. */
  @CudaTest
  void rowsOfABuffersOwnSegment_doNotOverlap(Cuda cuda) {
    CopyBox shared = CopyBox.of(50, 10).withSource(0, 100).withTarget(49, 100);
    try (PinnedBuffer pinned = cuda.allocatePinned(1000)) {
      MemorySegment segment = pinned.segment();
      List<ThrowingCallable> ways =
          List.of(() -> pinned.copyFrom(segment, shared), () -> pinned.copyTo(segment, shared));
      for (ThrowingCallable way : ways) {
        assertThatThrownBy(way)
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("1 bytes are in a row of the source and in one of the target");
      }
    }
  }

  @CudaTest
  void whatDoesNotFit_isRefused_beforeAnythingIsQueued(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    try (Arena arena = Arena.ofConfined();
        Buffer buffer = cuda.allocate(1000, stream);
        Buffer small = cuda.allocate(100, stream)) {
      MemorySegment heap = MemorySegment.ofArray(new byte[1000]);
      CopyBox box = CopyBox.of(10, 10).withSource(0, 100);
      long before = driver.count("memcpyAsync") + driver.count("memcpy3DAsync");
      refused(
          IndexOutOfBoundsException.class,
          () -> buffer.copyFrom(small, box),
          () -> small.copyFrom(buffer, box.withTarget(1, 10)),
          () -> small.copyTo(heap, box),
          () -> buffer.copyFrom(heap.asSlice(0, 909), box));
      assertThatThrownBy(() -> small.copyTo(heap, box)).hasMessageStartingWith("source: ");
      assertThatThrownBy(() -> small.copyFrom(heap, box.withTarget(1, 10)))
          .hasMessageStartingWith("target: ");
      refused(
          IllegalArgumentException.class,
          () -> buffer.copyFrom(heap, box, stream),
          () -> buffer.copyTo(heap, box, stream),
          () -> buffer.copyTo(heap.asReadOnly(), box),
          () -> CopyBox.of(-1, 2),
          () -> CopyBox.of(10, 2).withSource(0, 9),
          () -> CopyBox.of(10, 2).withTarget(-1, 10),
          () -> CopyBox.of(10, 2, 2).withTarget(0, 10, 1),
          () -> CopyBox.of(10, 2, 2).withTarget(0, Long.MAX_VALUE / 2, 2));
      MemorySegment gone;
      try (Arena closed = Arena.ofConfined()) {
        gone = closed.allocate(1000);
      }
      refused(
          IllegalStateException.class,
          () -> buffer.copyFrom(gone, box),
          () -> buffer.copyTo(gone, box, stream));
      Buffer closed = cuda.allocate(1000, stream);
      closed.close();
      refused(
          IllegalStateException.class,
          () -> closed.copyFrom(heap, box),
          () -> buffer.copyFrom(closed, box, stream),
          () -> closed.copyTo(arena.allocate(1000), box, stream));
      buffer.copyFrom(buffer, CopyBox.of(0, 10), stream);
      assertThat(driver.count("memcpyAsync") + driver.count("memcpy3DAsync")).isEqualTo(before);
    }
  }

  private static void refused(Class<?> as, ThrowingCallable... calls) {
    for (ThrowingCallable call : calls) {
      assertThatThrownBy(call).isInstanceOf(as);
    }
  }

  @CudaTest
  void capturedBoxes_keepBothEnds_andRunWithEachLaunch(Cuda cuda, CudaStream stream) {
    CopyBox box = CopyBox.of(10, 3).withSource(0, 20);
    PinnedBuffer source = cuda.allocatePinned(60);
    Buffer target = cuda.allocate(30, stream);
    try (CudaGraph captured = stream.capture(() -> target.copyFrom(source.segment(), box, stream));
        CudaGraphExec graph = captured.instantiate();
        Arena arena = Arena.ofShared()) {
      MemorySegment pageable = arena.allocate(60);
      assertThatThrownBy(() -> stream.capture(() -> target.copyFrom(pageable, box, stream)))
          .isInstanceOf(IllegalStateException.class);
      for (byte value : new byte[] {3, 4}) {
        source.segment().fill(value);
        graph.launch(stream);
        stream.synchronize();
        assertThat(read(target)).containsOnly(value);
      }
      source.close();
      graph.launch(stream);
      stream.synchronize();
      assertThat(read(target)).containsOnly(4);
    }
    target.close();
  }

  @CudaTest(devices = 2)
  void boxesBetweenDevices_areCopiedRowByRow(Cuda cuda, ScriptedDriver driver) {
    byte[] from = Bytes.random(8, 100);
    try (CudaStream near = cuda.device(0).createStream();
        CudaStream far = cuda.device(1).createStream();
        Buffer source = cuda.allocate(100, near);
        Buffer target = cuda.allocate(100, far)) {
      source.copyFrom(MemorySegment.ofArray(from));
      target.fill((byte) 0);
      CopyBox box = CopyBox.of(5, 4).withSource(3, 20).withTarget(1, 10);
      target.copyFrom(source, box, far);
      far.synchronize();
      assertThat(read(target)).isEqualTo(expected(new byte[100], from, box));
      assertThat(driver.count("memcpyPeerAsync")).isEqualTo(4);
    }
  }

  @Tag("simulated")
  @Test
  void whateverCallFails_nothingIsLostOrLeft() throws Exception {
    SweepReport report =
        FaultSweeps.onSimulator("seed=1")
            .recoveringFrom(CudaStatus.INVALID_VALUE, "deviceGetAttribute", "pointerGetAttribute")
            .run(FaultSweeps.usingTidily(BoxCopyTest::use))
            .orThrow();
    assertThat(report.faults()).isGreaterThan(20);
  }

  /** Two pieces of the host; not more rows than that needs, for each is watched. */
  private static void use(Cuda cuda) {
    CopyBox box = CopyBox.of(2000, 150).withTarget(0, 3000);
    List<MemorySegment> hosts = new ArrayList<>();
    hosts.add(MemorySegment.ofArray(new byte[450_000]));
    hosts.add(Arena.ofAuto().allocate(450_000));
    try (Buffer buffer = cuda.allocate(450_000);
        PinnedBuffer pinned = cuda.allocatePinned(450_000)) {
      pinned.segment().fill((byte) 1);
      buffer.fill((byte) 1);
      hosts.add(pinned.segment());
      for (MemorySegment host : hosts) {
        buffer.copyFrom(host, box);
        buffer.copyTo(host, CopyBox.of(2000, 150).withSource(0, 3000));
      }
      buffer.copyFrom(pinned, box);
    }
  }
}
