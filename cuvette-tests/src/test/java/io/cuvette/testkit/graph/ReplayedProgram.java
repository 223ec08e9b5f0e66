package io.cuvette.testkit.graph;

import io.cuvette.Buffer;
import io.cuvette.CudaKernel;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryPool;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.BiConsumer;

/**
 * Random work on a few slots of memory, each run of which goes on with what the one before has
 * left; and a model, which does the same in one order on arrays. Immutable.
 */
final class ReplayedProgram {
  static final int SLOTS = 6;
  static final int BYTES = 4096;

  /** How many bytes of a slot the kernel counts, in the first 256 numbers of another. */
  private static final int COUNTED = 96;

  private static final int THREADS = 32;
  private static final int MOST_STEPS = 10;

  private enum Kind {
    FILL,
    MOVE,
    EXCHANGE,
    ROTATE,
    COUNT
  }

  private record Step(Kind kind, int target, int source, int offset, int value, int stream) {}

  private final List<Step> steps;

  private ReplayedProgram(List<Step> steps) {
    this.steps = steps;
  }

  static ReplayedProgram random(SplittableRandom random) {
    List<Step> steps = new ArrayList<>();
    int count = random.nextInt(2, MOST_STEPS + 1);
    boolean counts = random.nextInt(4) == 0; // a simulated kernel takes its time
    for (int i = 0; i < count; i++) {
      Kind kind = Kind.values()[random.nextInt(Kind.values().length)];
      int target = random.nextInt(SLOTS);
      steps.add(
          new Step(
              kind == Kind.COUNT && (!counts || i > 0) ? Kind.ROTATE : kind,
              target,
              (target + random.nextInt(1, SLOTS)) % SLOTS,
              anyOffset(random),
              random.nextInt(256),
              random.nextInt(2)));
    }
    return new ReplayedProgram(List.copyOf(steps));
  }

  /** The same steps on the same slots, with other numbers of bytes and other values. */
  ReplayedProgram withOtherNumbers(SplittableRandom random) {
    return new ReplayedProgram(
        steps.stream()
            .map(step ->
                new Step(
                    step.kind(),
                    step.target(),
                    step.source(),
                    anyOffset(random),
                    random.nextInt(256),
                    step.stream()))
            .toList());
  }

  private static int anyOffset(SplittableRandom random) {
    return random.nextInt(1, BYTES / 8) * 4;
  }

  /** Whether it allocates memory in the capture. */
  boolean takesMemory() {
    return steps.stream()
        .anyMatch(step -> step.kind() == Kind.EXCHANGE || step.kind() == Kind.ROTATE);
  }

  /** One run of the model. */
  void run(byte[][] slots) {
    for (Step step : steps) {
      byte[] target = slots[step.target()];
      byte[] source = slots[step.source()];
      switch (step.kind()) {
        case FILL -> Arrays.fill(target, 0, step.offset(), (byte) step.value());
        case MOVE -> System.arraycopy(source, 0, target, step.offset(), BYTES - step.offset());
        case EXCHANGE -> {
          slots[step.target()] = source;
          slots[step.source()] = target;
        }
        case ROTATE -> {
          byte[] before = target.clone();
          System.arraycopy(before, step.offset(), target, 0, BYTES - step.offset());
          System.arraycopy(before, 0, target, BYTES - step.offset(), step.offset());
        }
        case COUNT -> count(source, ByteBuffer.wrap(target).order(ByteOrder.nativeOrder()));
      }
    }
  }

  private static void count(byte[] counted, ByteBuffer bins) {
    for (int i = 0; i < COUNTED; i++) {
      int place = Byte.toUnsignedInt(counted[i]) * Integer.BYTES;
      bins.putInt(place, bins.getInt(place) + 1);
    }
  }

  /**
   * Queues one run in two streams, which use the same slot one after the other, and copies all
   * slots to the result at its end. The first stream is behind everything then.
   *
   * @param wait has one stream wait for another
   */
  void queue(
      Buffer[] slots,
      Buffer result,
      CudaStream[] streams,
      MemoryPool pool,
      CudaKernel kernel,
      BiConsumer<CudaStream, CudaStream> wait) {
    int[] user = new int[SLOTS];
    wait.accept(streams[1], streams[0]);
    for (Step step : steps) {
      CudaStream stream = streams[step.stream()];
      if (user[step.target()] != step.stream() || user[step.source()] != step.stream()) {
        wait.accept(stream, streams[1 - step.stream()]);
      }
      queue(step, slots[step.target()], slots[step.source()], stream, pool, kernel);
      user[step.target()] = step.stream();
      user[step.source()] = step.stream();
    }
    wait.accept(streams[0], streams[1]);
    for (int i = 0; i < SLOTS; i++) {
      slots[i].copyTo(result.slice((long) i * BYTES, BYTES), streams[0]);
    }
  }

  private static void queue(
      Step step,
      Buffer target,
      Buffer source,
      CudaStream stream,
      MemoryPool pool,
      CudaKernel kernel) {
    int rest = BYTES - step.offset();
    switch (step.kind()) {
      case FILL -> target.slice(0, step.offset()).fill((byte) step.value(), stream);
      case MOVE -> source.slice(0, rest).copyTo(target.slice(step.offset(), rest), stream);
      case EXCHANGE -> {
        try (Buffer before = pool.allocate(BYTES, stream)) {
          target.copyTo(before, stream);
          source.copyTo(target, stream);
          before.copyTo(source, stream);
        }
      }
      case ROTATE -> {
        try (Buffer before = pool.allocate(BYTES, stream)) {
          target.copyTo(before, stream);
          before.slice(step.offset(), rest).copyTo(target.slice(0, rest), stream);
          before.slice(0, step.offset()).copyTo(target.slice(rest, step.offset()), stream);
        }
      }
      case COUNT -> stream.launch(kernel, LaunchConfig.of(1, THREADS), source, target, COUNTED);
    }
  }

  @Override
  public String toString() {
    return steps.toString();
  }
}
