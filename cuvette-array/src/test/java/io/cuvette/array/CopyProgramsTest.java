package io.cuvette.array;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cuvette.Cuda;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;

/** Copies between random views against a model that copies index by index. */
class CopyProgramsTest {
  /** A million by hand: {@code -Dcuvette.programs=1000000}. */
  private static final int PROGRAMS = Integer.getInteger("cuvette.programs", 20_000);

  private static final int ON_A_DEVICE = Integer.getInteger("cuvette.programs.device", 600);
  private static final ElementType[] TYPES = ElementType.values();
  private static final int ELEMENTS = 700;

  @CudaTest
  void hostToHost_isThatOfTheModel(Cuda cuda) {
    HostArrays host = HostArrays.of(cuda);
    run(cuda, PROGRAMS, host, host);
  }

  @CudaTest(seeds = 2)
  void deviceToDevice_isThatOfTheModel(Cuda cuda) {
    run(cuda, ON_A_DEVICE, CudaArrays.of(cuda), CudaArrays.of(cuda));
  }

  @CudaTest(devices = 2)
  void deviceToAnotherDevice_isThatOfTheModel(Cuda cuda) {
    run(cuda, ON_A_DEVICE / 2, CudaArrays.of(cuda.device(0)), CudaArrays.of(cuda.device(1)));
  }

  @CudaTest
  void hostToDevice_isThatOfTheModel(Cuda cuda) {
    run(cuda, ON_A_DEVICE, CudaArrays.of(cuda), HostArrays.of(cuda));
  }

  @CudaTest
  void deviceToHost_isThatOfTheModel(Cuda cuda) {
    run(cuda, ON_A_DEVICE, HostArrays.of(cuda), CudaArrays.of(cuda));
  }

  private static void run(Cuda cuda, int programs, ArrayModule<?> to, ArrayModule<?> from) {
    long first = Long.getLong("cuvette.seed", 1) * 1_000_003;
    for (int i = 0; i < programs; i++) {
      try {
        new Program(new Random(first + i), cuda).run(to, from);
      } catch (RuntimeException | AssertionError e) {
        throw new AssertionError("program %d of seed %d".formatted(i, first), e);
      }
    }
  }

  /** A target that is part of one memory, and a source of its shape in another. */
  private static final class Program {
    private final Random random;
    private final HostArrays host;
    private final ElementType targetType;
    private final ElementType sourceType;
    private final RandomView target;
    private final RandomView source;
    private final byte[] targetBits;
    private final byte[] sourceBits;

    Program(Random random, Cuda cuda) {
      this.random = random;
      this.host = HostArrays.of(cuda);
      this.targetType = TYPES[random.nextInt(TYPES.length)];
      this.sourceType = random.nextInt(3) == 0 ? TYPES[random.nextInt(TYPES.length)] : targetType;
      this.target = RandomView.whole(random).distinctSteps(3);
      this.source = target.sourceFor();
      this.targetBits = bits(targetType);
      this.sourceBits = bits(sourceType);
    }

    private byte[] bits(ElementType type) {
      byte[] bits = new byte[ELEMENTS * type.bytes()];
      random.nextBytes(bits);
      for (int i = 0; type == ElementType.BOOLEAN && i < bits.length; i++) {
        bits[i] &= 1;
      }
      return bits;
    }

    void run(ArrayModule<?> to, ArrayModule<?> from) {
      Layout all = Layout.of(ELEMENTS);
      HostArray targetMemory = host.wrap(MemorySegment.ofArray(targetBits), targetType, all);
      HostArray sourceMemory = host.wrap(MemorySegment.ofArray(sourceBits), sourceType, all);
      byte[] expected = expected();
      try (NdArray t = to.array(targetMemory);
          NdArray s = from.array(sourceMemory)) {
        view(t, target.layout).copyFrom(view(s, source.layout));
        try (HostArray found = t.toHost()) {
          byte[] bytes = found.segment().toArray(ValueLayout.JAVA_BYTE);
          if (sourceType != targetType) {
            forgetBitsOfNan(bytes);
            forgetBitsOfNan(expected);
          }
          assertThat(bytes)
              .as("%s of %s to %s of %s", source, sourceType, target, targetType)
              .isEqualTo(expected);
        }
      }
    }

    /** A conversion keeps that an element is not a number, and not which one. */
    private void forgetBitsOfNan(byte[] bytes) {
      ElementType part = targetType.realType();
      if (!part.isFloating()) {
        return;
      }
      MemorySegment all = MemorySegment.ofArray(bytes);
      for (long at = 0; at < bytes.length; at += part.bytes()) {
        boolean isNan =
            switch (part) {
              case FLOAT16 ->
                  Float.isNaN(Float.float16ToFloat(all.get(ValueLayout.JAVA_SHORT_UNALIGNED, at)));
              case BFLOAT16 ->
                  Float.isNaN(
                      Float.intBitsToFloat(
                          all.get(ValueLayout.JAVA_SHORT_UNALIGNED, at) << Short.SIZE));
              case FLOAT32 -> Float.isNaN(all.get(ValueLayout.JAVA_FLOAT_UNALIGNED, at));
              default -> Double.isNaN(all.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, at));
            };
        if (isNan) {
          all.asSlice(at, part.bytes()).fill((byte) -1);
        }
      }
    }

    private static NdArray view(NdArray whole, Layout layout) {
      return switch (whole) {
        case CudaArray device -> device.view(layout);
        case HostArray array -> array.view(layout);
      };
    }

    private byte[] expected() {
      byte[] expected = targetBits.clone();
      MemorySegment out = MemorySegment.ofArray(expected);
      MemorySegment in = MemorySegment.ofArray(sourceBits);
      ModelView read = source.model.broadcast(target.model.shape());
      for (int i = 0; i < target.model.places().length; i++) {
        long at = read.places()[i] * sourceType.bytes();
        long place = target.model.places()[i] * targetType.bytes();
        if (sourceType == targetType) {
          MemorySegment.copy(in, at, out, place, sourceType.bytes());
        } else {
          Elements.convert(sourceType, in, at, targetType, out, place);
        }
      }
      return expected;
    }
  }

  /** Within one memory: refused if a byte is in both, and right if not. */
  @CudaTest
  void copyWithinOneMemory_isRefusedIfItOverlaps(Cuda cuda) {
    int apart = 0;
    for (int i = 0; i < PROGRAMS / 10; i++) {
      Random random = new Random(i);
      RandomView target = RandomView.whole(random).distinctSteps(2);
      RandomView source = target.sourceFor();
      int shift = random.nextInt(ELEMENTS / 2);
      float[] values = new float[2 * ELEMENTS];
      for (int k = 0; k < values.length; k++) {
        values[k] = k;
      }
      HostArray all =
          HostArrays.of(cuda)
              .wrap(MemorySegment.ofArray(values), ElementType.FLOAT32, Layout.of(values.length));
      Layout s = source.layout;
      HostArray from = all.view(Layout.strided(s.shape(), s.strides(), s.offset() + shift));
      HostArray to = all.view(target.layout);
      if (target.model.shares(
          new ModelView(
              s.shape(),
              java.util.Arrays.stream(source.model.places()).map(p -> p + shift).toArray()))) {
        assertThatIllegalArgumentException()
            .isThrownBy(() -> to.copyFrom(from))
            .withMessageContaining("overlaps the target");
        assertThat(values[5]).isEqualTo(5);
      } else {
        apart++;
        long[] read = source.model.broadcast(target.model.shape()).places();
        to.copyFrom(from);
        for (int k = 0; k < read.length; k++) {
          assertThat(values[(int) target.model.places()[k]]).isEqualTo(read[k] + shift);
        }
      }
    }
    assertThat(apart).isBetween(PROGRAMS / 200, PROGRAMS / 10);
  }
}
