package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.instrument.TracingDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * All ways to copy and to fill, each with what it must not be used with: nothing of it comes to the
 * driver. A copy without bytes is refused as any other, for the program is wrong all the same.
 */
@Timeout(60)
class RefusedTransfersTest {
  private static final int BYTES = 1200;
  private static final int ROW = BYTES / 4;
  private static final CopyBox ROWS =
      CopyBox.of(ROW, 2).withSource(0, 2 * ROW).withTarget(ROW, ROW);

  private final List<String> calls = new CopyOnWriteArrayList<>();
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.DEFAULTS
              .withDriver(SimulatedDriver.open(SimulatedOptions.DEFAULTS))
              .withDecorator(driver -> TracingDriver.of(driver, call -> calls.add(call.call()))));
  private final Cuda another = Cuda.open(CudaOptions.simulated());
  private final CudaStream stream = cuda.device(0).createStream();
  private final CudaStream foreign = another.device(0).createStream();
  private final Scope scope = stream.use();
  private final Buffer target = cuda.allocate(BYTES, stream);
  private final Buffer source = cuda.allocate(BYTES, stream);
  private final PinnedBuffer pinned = cuda.allocatePinned(BYTES);
  private final MemorySegment pageable = Arena.ofAuto().allocate(BYTES);

  @BeforeEach
  void fill() {
    target.fill((byte) 1);
    source.fill((byte) 2);
  }

  @AfterEach
  void close() {
    scope.close();
    another.close();
    cuda.close();
  }

  private interface Call {
    void run();
  }

  /** Calls by their names. */
  private static final class Calls extends LinkedHashMap<String, Call> {
    private static final long serialVersionUID = 1;

    Calls with(String name, Call call) {
      assertThat(put(name, call)).isNull();
      return this;
    }

    Calls with(Calls others) {
      others.forEach(this::with);
      return this;
    }
  }

  private static CopyBox box(long bytes) {
    return bytes == 0 ? CopyBox.of(0, 2) : ROWS;
  }

  /** The copies of so many bytes between buffers that are queued. */
  private Calls between(Buffer to, Buffer from, long bytes, CudaStream on) {
    List<Buffer> targets = List.of(target, to);
    List<Buffer> sources = List.of(source, from);
    return new Calls()
        .with("copyFrom(Buffer, CudaStream)", () -> to.copyFrom(from, on))
        .with("copyTo(Buffer, CudaStream)", () -> from.copyTo(to, on))
        .with(
            "copyFromAsync(Buffer)",
            () -> {
              var _ = to.copyFromAsync(from, on);
            })
        .with("copyFrom(Buffer, CopyBox, CudaStream)", () -> to.copyFrom(from, box(bytes), on))
        .with("CopyBatch.copy(CudaStream)", () -> CopyBatch.of(targets, sources).copy(on))
        .with(
            "CopyBatch.copyAsync",
            () -> {
              var _ = CopyBatch.of(targets, sources).copyAsync(on);
            });
  }

  /** Those that are waited for. */
  private Calls between(Buffer to, Buffer from, long bytes) {
    return new Calls()
        .with("copyFrom(Buffer)", () -> to.copyFrom(from))
        .with("copyTo(Buffer)", () -> from.copyTo(to))
        .with("copyFrom(Buffer, CopyBox)", () -> to.copyFrom(from, box(bytes)))
        .with("CopyBatch.copy", () -> CopyBatch.of(List.of(to), List.of(from)).copy());
  }

  private List<MemorySegment> hosts(long bytes) {
    return List.of(pinned.segment().asSlice(0, bytes), pageable.asSlice(0, bytes));
  }

  private Calls in(Buffer to, long bytes, CudaStream on) {
    Calls calls = new Calls();
    for (MemorySegment host : hosts(bytes)) {
      calls
          .with("copyFrom(stream) of " + host, () -> to.copyFrom(host, on))
          .with("copyFrom(box, stream) of " + host, () -> to.copyFrom(host, box(bytes), on))
          .with("gatherFrom(stream) of " + host, () -> to.gatherFrom(List.of(host), on));
    }
    return calls;
  }

  private Calls in(Buffer to, long bytes) {
    Calls calls = new Calls();
    for (MemorySegment host : hosts(bytes)) {
      calls
          .with("copyFrom of " + host, () -> to.copyFrom(host))
          .with("copyFrom(box) of " + host, () -> to.copyFrom(host, box(bytes)))
          .with("gatherFrom of " + host, () -> to.gatherFrom(List.of(host)));
    }
    return calls;
  }

  private Calls out(Buffer from, long bytes, CudaStream on) {
    Calls calls = new Calls();
    for (MemorySegment host : hosts(bytes)) {
      calls
          .with("copyTo(stream) of " + host, () -> from.copyTo(host, on))
          .with("copyTo(box, stream) of " + host, () -> from.copyTo(host, box(bytes), on))
          .with("scatterTo(stream) of " + host, () -> from.scatterTo(List.of(host), on));
    }
    return calls;
  }

  private Calls out(Buffer from, long bytes) {
    Calls calls = new Calls();
    for (MemorySegment host : hosts(bytes)) {
      calls
          .with("copyTo of " + host, () -> from.copyTo(host))
          .with("copyTo(box) of " + host, () -> from.copyTo(host, box(bytes)))
          .with("scatterTo of " + host, () -> from.scatterTo(List.of(host)));
    }
    return calls;
  }

  private static Calls fills(Buffer to, CudaStream on) {
    return new Calls()
        .with("fill(byte, stream)", () -> to.fill((byte) 3, on))
        .with("fillShorts(stream)", () -> to.fillShorts((short) 3, on))
        .with("fillInts(stream)", () -> to.fillInts(3, on));
  }

  private static Calls fills(Buffer to) {
    return new Calls()
        .with("fill(byte)", () -> to.fill((byte) 3))
        .with("fillShorts", () -> to.fillShorts((short) 3))
        .with("fillInts", () -> to.fillInts(3));
  }

  private static void refused(Class<?> as, String text, Call call, String name) {
    assertThatThrownBy(call::run).as(name).isInstanceOf(as).hasMessageContaining(text);
  }

  /** Nothing of them is queued. */
  private void refused(Class<?> as, String text, Calls each) {
    for (Map.Entry<String, Call> call : each.entrySet()) {
      calls.clear();
      refused(as, text, call.getValue(), call.getKey());
      List<String> queued = new ArrayList<>(calls);
      queued.removeIf(made -> !made.startsWith("memcpy") && !made.startsWith("memset"));
      assertThat(queued).as(call.getKey()).isEmpty();
    }
  }

  private Buffer closed(long bytes) {
    Buffer closed = cuda.allocate(bytes, stream);
    closed.close();
    return closed;
  }

  private Buffer from(long bytes) {
    return source.slice(0, bytes);
  }

  @ParameterizedTest
  @ValueSource(longs = {0, BYTES})
  void closedTarget_isRefused(long bytes) {
    for (Buffer closed : List.of(closed(BYTES), closed(bytes))) {
      refused(
          IllegalStateException.class,
          "is closed",
          between(closed, from(bytes), bytes, stream)
              .with(between(closed, from(bytes), bytes))
              .with(in(closed, bytes, stream))
              .with(in(closed, bytes))
              .with(fills(closed, stream))
              .with(fills(closed)));
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {0, BYTES})
  void closedSource_isRefused(long bytes) {
    Buffer closed = closed(bytes);
    refused(
        IllegalStateException.class,
        "is closed",
        between(target, closed, bytes, stream)
            .with(between(target, closed, bytes))
            .with(out(closed, bytes, stream))
            .with(out(closed, bytes)));
  }

  @ParameterizedTest
  @ValueSource(longs = {0, BYTES})
  void targetThatIsReadOnly_isRefused(long bytes) {
    Buffer fixed = cuda.registerHost(pageable.asReadOnly());
    Calls copies = in(fixed, 0, stream).with(in(fixed, 0)); // others would be of its own memory
    refused(
        IllegalArgumentException.class,
        "read-only",
        between(fixed, from(bytes), bytes, stream)
            .with(between(fixed, from(bytes), bytes))
            .with(copies)
            .with(fills(fixed, stream))
            .with(fills(fixed)));
  }

  @ParameterizedTest
  @ValueSource(longs = {0, BYTES})
  void streamOfAnotherCuda_isRefused(long bytes) {
    refused(
        IllegalArgumentException.class,
        "another Cuda",
        between(target, from(bytes), bytes, foreign)
            .with(in(target, bytes, foreign))
            .with(out(source, bytes, foreign))
            .with(fills(target, foreign)));
  }

  @ParameterizedTest
  @ValueSource(longs = {0, BYTES})
  void bufferOfAnotherCuda_isRefused(long bytes) {
    Buffer far = another.allocate(BYTES, foreign);
    refused(
        IllegalArgumentException.class,
        "another Cuda",
        between(far, from(bytes), bytes, stream)
            .with(between(far, from(bytes), bytes))
            .with(in(far, bytes, stream))
            .with(out(far, bytes, stream))
            .with(fills(far, stream)));
    refused(
        IllegalArgumentException.class,
        "another Cuda",
        between(target, far.slice(0, bytes), bytes, stream)
            .with(between(target, far.slice(0, bytes), bytes)));
  }

  @ParameterizedTest
  @ValueSource(longs = {0, BYTES})
  void closedStream_isRefused(long bytes) {
    CudaStream closed = cuda.device(0).createStream();
    closed.close();
    refused(
        IllegalStateException.class,
        "is closed",
        between(target, from(bytes), bytes, closed)
            .with(in(target, bytes, closed))
            .with(out(source, bytes, closed))
            .with(fills(target, closed)));
  }

  /** What waits would wait for ever there. */
  @ParameterizedTest
  @ValueSource(longs = {0, BYTES})
  void whatWaits_isRefusedInACapture_whichGoesOn(long bytes) {
    Calls waiting =
        between(target, from(bytes), bytes)
            .with(in(target, bytes))
            .with(out(source, bytes))
            .with(fills(target));
    try (CudaGraph graph =
        stream.capture(() -> refused(IllegalStateException.class, "captur", waiting))) {
      assertThat(graph.nodes().nodes()).isEmpty();
    }
  }

  @Test
  void whatWaits_isNamedWhereACaptureRefusesIt() {
    MemorySegment host = MemorySegment.ofArray(new byte[BYTES]);
    MemorySegment unlocked = Arena.ofAuto().allocate(BYTES);
    CudaGraph graph =
        stream.capture(() -> {
          refused(
              IllegalStateException.class,
              "gatherFrom",
              new Calls()
                  .with("gatherFrom", () -> target.gatherFrom(List.of(host)))
                  .with("gatherFrom(stream)", () -> target.gatherFrom(List.of(unlocked), stream)));
          refused(
              IllegalStateException.class,
              "copyFrom",
              new Calls()
                  .with("copyFrom(box)", () -> target.copyFrom(host, ROWS))
                  .with("copyFrom(box, stream)", () -> target.copyFrom(unlocked, ROWS, stream)));
          refused(
              IllegalStateException.class,
              "copyTo",
              new Calls()
                  .with("copyTo(box)", () -> source.copyTo(host, ROWS))
                  .with("copyTo(box, stream)", () -> source.copyTo(unlocked, ROWS, stream)));
          refused(
              IllegalStateException.class,
              "scatterTo",
              new Calls()
                  .with("scatterTo", () -> source.scatterTo(List.of(host)))
                  .with("scatterTo(stream)", () -> source.scatterTo(List.of(unlocked), stream)));
        });
    graph.close();
  }

  @Test
  void hostMemoryThatIsReadOnly_isReadAndNotWritten() {
    for (MemorySegment host : hosts(BYTES)) {
      MemorySegment fixed = host.asReadOnly();
      host.fill((byte) 4);
      target.gatherFrom(List.of(fixed.asSlice(0, 1), fixed.asSlice(1)));
      target.copyFrom(fixed);
      target.copyFrom(fixed, ROWS);
      target.gatherFrom(List.of(fixed), stream);
      stream.synchronize();
      try (PinnedBuffer other = cuda.allocatePinned(BYTES)) {
        other.fill((byte) 0);
        other.copyFrom(fixed, ROWS);
        assertThat(other.segment().asSlice(ROW, 2L * ROW).toArray(ValueLayout.JAVA_BYTE))
            .containsOnly(4);
      }
      refused(
          IllegalArgumentException.class,
          "read-only",
          new Calls()
              .with("copyTo", () -> source.copyTo(fixed))
              .with("copyTo(box)", () -> source.copyTo(fixed, ROWS))
              .with("scatterTo", () -> source.scatterTo(List.of(host.asSlice(0, 0), fixed)))
              .with("copyTo(stream)", () -> source.copyTo(fixed, stream))
              .with("copyTo(box, stream)", () -> source.copyTo(fixed, ROWS, stream))
              .with("scatterTo(stream)", () -> source.scatterTo(List.of(fixed), stream)));
      assertThat(host.toArray(ValueLayout.JAVA_BYTE)).containsOnly(4);
    }
  }

  /** It cannot be written, and nothing of it is. */
  @Test
  void sourceThatIsReadOnly_isRead() {
    MemorySegment memory = Arena.ofAuto().allocate(BYTES);
    memory.fill((byte) 5);
    Buffer fixed = cuda.registerHost(memory.asReadOnly());
    Calls copies =
        between(target, fixed, BYTES)
            .with(out(fixed, BYTES, stream))
            .with(out(fixed, BYTES))
            .with("copyFrom(Buffer, CudaStream)", () -> target.copyFrom(fixed, stream))
            .with(
                "copyFrom(Buffer, CopyBox, CudaStream)",
                () -> target.copyFrom(fixed, ROWS, stream));
    byte[] seen = new byte[BYTES];
    for (Map.Entry<String, Call> copy : copies.entrySet()) {
      target.fill((byte) 0);
      pinned.segment().fill((byte) 0);
      pageable.fill((byte) 0);
      copy.getValue().run();
      stream.synchronize();
      target.copyTo(MemorySegment.ofArray(seen));
      long fives = 0;
      for (int at = ROW; at < 2 * ROW; at++) {
        fives += seen[at] + pinned.segment().get(ValueLayout.JAVA_BYTE, at);
        fives += pageable.get(ValueLayout.JAVA_BYTE, at);
      }
      assertThat(fives).as(copy.getKey()).isEqualTo(5L * ROW);
    }
  }

  /** Of each side, whether it is a buffer or a segment. */
  @Test
  void boxWithoutBytes_isInsideOfBothSides() {
    CopyBox empty = CopyBox.of(1, 0);
    CopyBox last = empty.withSource(BYTES, 1).withTarget(BYTES, 1);
    target.copyFrom(source, last);
    for (MemorySegment host : hosts(BYTES)) {
      target.copyFrom(host, last);
      source.copyTo(host, last);
      for (CopyBox beyond :
          List.of(empty.withSource(BYTES + 1, 1), empty.withTarget(BYTES + 1, 1))) {
        refused(
            IndexOutOfBoundsException.class, "ends at byte " + (BYTES + 1), boxes(host, beyond));
      }
    }
  }

  private Calls boxes(MemorySegment host, CopyBox box) {
    return new Calls()
        .with("copyFrom(Buffer)", () -> target.copyFrom(source, box))
        .with("copyFrom(Buffer, stream)", () -> target.copyFrom(source, box, stream))
        .with("copyFrom", () -> target.copyFrom(host, box))
        .with("copyFrom(stream)", () -> target.copyFrom(host, box, stream))
        .with("copyTo", () -> source.copyTo(host, box))
        .with("copyTo(stream)", () -> source.copyTo(host, box, stream));
  }

  /** Whatever lies between their rows and layers. */
  @Test
  void boxes_mayEndWithTheMemory_andNotAByteLater_onBothSides() {
    for (int i = 0; i < 2 * 3 * 3 * 2 * 2; i++) {
      CopyBox packed = CopyBox.of(5, 1 + i / 2 % 3, 1 + i / 6 % 3);
      long pitch = packed.width() + i / 18 % 2 * 3;
      long rows = packed.height() + i / 36 * 2;
      long last = (packed.depth() - 1) * rows + packed.height() - 1;
      long at = BYTES - last * pitch - packed.width();
      boolean isSource = i % 2 == 0;
      CopyBox fits =
          isSource ? packed.withSource(at, pitch, rows) : packed.withTarget(at, pitch, rows);
      CopyBox beyond =
          isSource
              ? packed.withSource(at + 1, pitch, rows)
              : packed.withTarget(at + 1, pitch, rows);
      for (MemorySegment host : hosts(BYTES)) {
        boxes(host, fits).values().forEach(Call::run);
        Calls calls = boxes(host, beyond);
        refused(IndexOutOfBoundsException.class, "ends at byte " + (BYTES + 1), calls);
        refused(IndexOutOfBoundsException.class, isSource ? "source" : "target", calls);
      }
    }
    stream.synchronize();
  }
}
