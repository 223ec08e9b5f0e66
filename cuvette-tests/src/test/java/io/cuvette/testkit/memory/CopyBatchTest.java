package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.SweepReport;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Many copies at once: {@link CopyBatch}. */
@Timeout(120)
class CopyBatchTest {
  private static final int PART = 256;
  private static final int PARTS = 100;

  private static byte[] read(Buffer buffer) {
    byte[] all = new byte[(int) buffer.byteSize()];
    buffer.copyTo(MemorySegment.ofArray(all));
    return all;
  }

  private static List<Buffer> parts(Buffer buffer) {
    return parts(buffer, PARTS);
  }

  private static List<Buffer> parts(Buffer buffer, int count) {
    List<Buffer> parts = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      parts.add(buffer.slice((long) i * PART, PART));
    }
    return parts;
  }

  @CudaTest
  void copiesBesideEachOther_areMade(Cuda cuda, CudaStream stream) {
    try (Buffer all = cuda.allocate(4 * PART, stream)) {
      List<Buffer> parts = parts(all, 4);
      parts.get(1).fill((byte) 1, stream);
      parts.get(2).fill((byte) 2, stream);
      CopyBatch.of(List.of(parts.get(0), parts.get(3)), List.of(parts.get(1), parts.get(2)))
          .copy(stream);
      stream.synchronize();
      assertThat(Bytes.areAll(parts.get(0), 1)).isTrue();
      assertThat(Bytes.areAll(parts.get(3), 2)).isTrue();
    }
  }

  @CudaTest(seeds = 3)
  void partsInAnyOrder_areOneCall(ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    byte[] content = Bytes.random(1, PART * PARTS);
    try (PinnedBuffer source = cuda.allocatePinned(PART * PARTS);
        Buffer target = cuda.allocate(PART * PARTS, stream)) {
      source.segment().copyFrom(MemorySegment.ofArray(content));
      List<Buffer> from = parts(source);
      List<Integer> order = new ArrayList<>();
      for (int i = 0; i < PARTS; i++) {
        order.add(i);
      }
      Collections.shuffle(order, new Random(4));
      List<Buffer> to = order.stream().map(i -> target.slice((long) i * PART, PART)).toList();
      long before = driver.count("memcpyBatchAsync");
      CopyBatch batch = CopyBatch.of(to, from);
      assertThat(batch.size()).isEqualTo(to.size());
      batch.copy(stream);
      stream.synchronize();
      batch.copy();
      assertThat(driver.count("memcpyBatchAsync") - before).isPositive();
      byte[] copied = read(target);
      for (int i = 0; i < PARTS; i++) {
        MemorySegment expected = source.segment().asSlice((long) i * PART, PART);
        assertThat(
                MemorySegment.ofArray(copied)
                    .asSlice((long) order.get(i) * PART, PART)
                    .mismatch(expected))
            .as("part %d", i)
            .isEqualTo(-1);
      }
    }
  }

  @CudaTest
  void copiesThatMeet_areRefused_andNothingIsQueued(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    try (Buffer one = cuda.allocate(1000, stream);
        Buffer other = cuda.allocate(1000, stream)) {
      one.fill((byte) 1);
      other.fill((byte) 2);
      List<Buffer> sources = List.of(other.slice(0, 100), other.slice(0, 100));
      refused(
          "targets[0] and targets[1]: 1 bytes are in both",
          CopyBatch.of(List.of(one.slice(0, 100), one.slice(99, 100)), sources),
          stream);
      refused(
          "targets[1] and sources[0]: 50 bytes are in both",
          CopyBatch.of(
              List.of(one.slice(0, 100), other.slice(50, 100)),
              List.of(other.slice(0, 100), one.slice(500, 100))),
          stream);
      refused(
          "targets[0] and sources[1]: 60 bytes are in both",
          CopyBatch.of(
              List.of(one.slice(0, 100), other.slice(0, 100)),
              List.of(other.slice(500, 100), one.slice(40, 100))),
          stream);
      assertThatThrownBy(() -> CopyBatch.of(List.of(one), List.of()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("1 targets, 0 sources (expected: as many)");
      assertThatThrownBy(
              () -> CopyBatch.of(List.of(one, one.slice(0, 5)), List.of(other, other)).copy(stream))
          .isInstanceOf(IndexOutOfBoundsException.class);
      Buffer closed = cuda.allocate(100, stream);
      closed.close();
      assertThatThrownBy(
              () -> CopyBatch.of(List.of(one.slice(0, 100), closed), sources).copy(stream))
          .isInstanceOf(IllegalStateException.class);
      assertThat(read(one)).containsOnly(1);
      CopyBatch.of(List.of(), List.of()).copy();
      CopyBatch.of(List.of(one), List.of(other.slice(0, 0))).copy();
      assertThat(driver.count("memcpyBatchAsync")).isZero();
    }
  }

  /** Wherever it lies, it is in nobody's way, and the driver hears of none. */
  @CudaTest(simulatedOnly = true)
  void copiesOfNoBytes_areLeftOut(ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    try (Buffer one = cuda.allocate(1000, stream);
        Buffer other = cuda.allocate(1000, stream)) {
      one.fill((byte) 1, stream);
      other.fill((byte) 2, stream);
      Buffer none = other.slice(500, 0);
      List<Buffer> targets = List.of(one.slice(0, 0), one, one.slice(10, 0), one.slice(1000, 0));
      List<Buffer> sources = List.of(none, other, none, none);
      driver.note("memcpyBatchAsync", "memcpyAsync");
      CopyBatch.of(targets, sources).copy(stream);
      assertThat(driver.takeNotes()).containsExactly("memcpyAsync");
      CopyBatch.of(List.of(none, none), List.of(none, none)).copy(stream);
      CopyBatch.of(List.of(none), List.of(none)).copy();
      assertThat(driver.takeNotes()).isEmpty();
      stream.synchronize();
      assertThat(Bytes.areAll(one, 2)).isTrue();
    }
  }

  private static void refused(String text, CopyBatch batch, CudaStream stream) {
    assertThatThrownBy(() -> batch.copy(stream))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(text);
  }

  @CudaTest
  void capturedBatches_andThoseInTheNullStream_areSingleCopies(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    try (PinnedBuffer source = cuda.allocatePinned(PART * PARTS);
        Buffer target = cuda.allocate(PART * PARTS, stream)) {
      CopyBatch batch = CopyBatch.of(parts(target), parts(source));
      source.segment().fill((byte) 5);
      batch.copy(cuda.device(0).nullStream());
      cuda.device(0).synchronize();
      assertThat(read(target)).containsOnly(5);
      try (CudaGraph graph = stream.capture(() -> batch.copy(stream));
          CudaGraphExec launched = graph.instantiate()) {
        source.segment().fill((byte) 6);
        launched.launch(stream);
        stream.synchronize();
      }
      assertThat(read(target)).containsOnly(6);
      assertThat(driver.count("memcpyBatchAsync")).isZero();
    }
  }

  @CudaTest(devices = 2)
  void copiesBetweenDevices_areMadeBesideTheBatch(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    try (CudaStream far = cuda.device(1).createStream();
        Buffer target = cuda.allocate(PART * 3, stream);
        Buffer near = cuda.allocate(PART * 2, stream);
        Buffer other = cuda.allocate(PART, far)) {
      near.fill((byte) 1);
      other.fill((byte) 2);
      CopyBatch.of(
              List.of(target.slice(0, PART), target.slice(PART, PART), target.slice(2 * PART)),
              List.of(near.slice(0, PART), near.slice(PART), other))
          .copy(stream);
      stream.synchronize();
      byte[] all = read(target);
      assertThat(all[0] + all[PART] + all[2 * PART + PART - 1]).isEqualTo(4);
      assertThat(driver.count("memcpyBatchAsync")).isOne();
      assertThat(driver.count("memcpyPeerAsync")).isOne();
    }
  }

  /** It is any device's, as each can access it. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void pinnedMemoryOfAnotherDevice_isInTheBatch(ScriptedDriver driver, Cuda cuda) {
    try (PinnedMemoryResource elsewhere = new PinnedMemoryResource(cuda);
        CudaStream far = cuda.device(1).createStream();
        Buffer other = cuda.allocate(PART * 2, far);
        PinnedBuffer pinned = elsewhere.allocate(PART * 2)) {
      cuda.currentStream().synchronize();
      pinned.segment().fill((byte) 6);
      CopyBatch.of(parts(other, 2), parts(pinned, 2)).copy(far);
      assertThat(read(other)).containsOnly(6);
      other.fill((byte) 7, far);
      CopyBatch.of(parts(pinned, 2), parts(other, 2)).copy(far);
      far.synchronize();
      assertThat(pinned.segment().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 7);
      assertThat(driver.count("memcpyBatchAsync")).isEqualTo(2);
    }
  }

  /** An address that the driver does not know ends the process in a batch. */
  @CudaTest
  void memoryFromElsewhere_isInNoBatch(ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    try (Buffer target = cuda.allocate(PART * 4, stream);
        Buffer source = cuda.allocate(PART * 4, stream);
        Buffer wrapped = cuda.wrap(source.address(), PART * 4, null)) {
      source.fill((byte) 3);
      target.fill((byte) 0);
      CopyBatch.of(parts(target, 4), parts(wrapped, 4)).copy(stream);
      stream.synchronize();
      assertThat(read(target)).containsOnly(3);
      target.fill((byte) 4);
      CopyBatch.of(parts(wrapped, 4), parts(target, 4)).copy(stream);
      stream.synchronize();
      assertThat(read(source)).containsOnly(4);
      assertThat(driver.count("memcpyBatchAsync")).isZero();
    }
  }

  @CudaTest
  void callThatFails_saysWhichCopiesAreQueued(ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    try (Buffer target = cuda.allocate(PART * 4, stream);
        Buffer source = cuda.allocate(PART * 4, stream);
        Buffer wrapped = cuda.wrap(source.address(), PART, null)) {
      source.fill((byte) 3);
      target.fill((byte) 0);
      List<Buffer> sources = new ArrayList<>(parts(source, 4));
      sources.set(0, wrapped);
      CopyBatch batch = CopyBatch.of(parts(target, 4), sources);
      driver.fail("memcpyBatchAsync", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(() -> batch.copy(stream))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining(
              "batch of 4 copies: those before targets[1] are queued, of the next 3 some may be");
      driver.fail("memcpyAsync", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(() -> batch.copy())
          .hasMessageContaining("batch of 4 copies: those before targets[0] are queued, no other");
      stream.synchronize();
      byte[] all = read(target);
      assertThat(all[0]).isEqualTo((byte) 3);
      assertThat(all[PART]).isZero();
      batch.copy(stream);
      stream.synchronize();
      assertThat(read(target)).containsOnly(3);
    }
  }

  /** Memory that several physical pieces lie under. */
  @CudaTest
  void partsOfElasticMemory_areCopied_alsoAcrossItsPieces(Cuda cuda, CudaStream stream) {
    long bytes = 40L << 20;
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
        Buffer source = pool.allocate(bytes, stream);
        Buffer target = pool.allocate(bytes, stream)) {
      source.fill((byte) 9);
      target.fill((byte) 0);
      long half = bytes / 2;
      CopyBatch.of(
              List.of(target.slice(half), target.slice(0, half)),
              List.of(source.slice(0, half), source.slice(half)))
          .copy(stream);
      stream.synchronize();
      byte[] all = read(target);
      for (int i = 0; i < bytes; i += 4096) {
        assertThat(all[i]).isEqualTo((byte) 9);
      }
    }
  }

  /** Whatever closes one of them meanwhile, all are copied or none, and nothing is left held. */
  @CudaTest(seeds = 3)
  void buffersThatAreClosedMeanwhile_areRefusedOrCopied(Cuda cuda, CudaStream stream)
      throws Exception {
    for (int round = 0; round < 30; round++) {
      try (Buffer target = cuda.allocate(PART * 8, stream)) {
        Buffer source = cuda.allocate(PART * 8, stream);
        source.fill((byte) 1);
        target.fill((byte) 0);
        CopyBatch batch = CopyBatch.of(parts(target, 8), parts(source, 8));
        Thread closer = Thread.ofVirtual().start(source::close);
        boolean done = true;
        try {
          batch.copy(stream);
        } catch (IllegalStateException e) {
          assertThat(e).hasMessageContaining("closed");
          done = false;
        }
        closer.join();
        stream.synchronize();
        assertThat(read(target)).containsOnly(done ? 1 : 0);
      }
    }
    assertThat(cuda.defaultMemoryPool().usedBytes()).isZero();
  }

  @Tag("simulated")
  @Test
  void whateverCallFails_nothingIsLostOrLeft() throws Exception {
    SweepReport report =
        FaultSweeps.onSimulator("seed=1,devices=2")
            .recoveringFrom(CudaStatus.INVALID_VALUE, "deviceGetAttribute", "pointerGetAttribute")
            .recoveringFrom(CudaStatus.TOO_MANY_PEERS, "ctxEnablePeerAccess")
            .run(FaultSweeps.usingTidily(CopyBatchTest::use))
            .orThrow();
    assertThat(report.faults()).isGreaterThan(20);
  }

  private static void use(Cuda cuda) {
    try (CudaStream stream = cuda.device(0).createStream();
        CudaStream far = cuda.device(1).createStream();
        PinnedBuffer pinned = cuda.allocatePinned(PART * 4);
        Buffer near = cuda.allocate(PART * 4, stream);
        Buffer other = cuda.allocate(PART * 4, far)) {
      pinned.segment().fill((byte) 1);
      near.fill((byte) 1);
      other.fill((byte) 1);
      CopyBatch.of(parts(near, 4), parts(pinned, 4)).copy(stream);
      List<Buffer> sources = new ArrayList<>(parts(pinned, 2));
      sources.addAll(parts(other, 2));
      CopyBatch.of(parts(near, 4), sources).copy(stream);
      stream.synchronize();
      CopyBatch.of(parts(pinned, 4), parts(near, 4)).copy();
    }
  }
}
