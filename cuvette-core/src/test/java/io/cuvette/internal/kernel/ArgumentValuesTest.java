package io.cuvette.internal.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.KernelParameter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Every type of Java that kernels take, against parameters of every size. */
class ArgumentValuesTest {
  private static final int MOST = 24;
  private static final KernelParameter PLACE = new KernelParameter(0, 4);

  /** What a value is called, and its bytes. */
  @SuppressWarnings("ArrayRecordComponent") // nobody compares them
  private record Passed(String text, byte[] bytes) {}

  private static byte[] bytes(int count, long bits) {
    byte[] all = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(bits).array();
    return Arrays.copyOf(all, count);
  }

  private static Map<Object, Passed> values(Arena arena) {
    byte[] small = new byte[MOST / 2];
    byte[] large = new byte[MOST];
    Arrays.fill(small, (byte) 0x5A);
    Arrays.fill(large, (byte) 0x5A);
    Map<Object, Passed> values = new LinkedHashMap<>();
    values.put(-7L, new Passed("long -7", bytes(8, -7)));
    values.put(-1.5, new Passed("double -1.5", bytes(8, Double.doubleToRawLongBits(-1.5))));
    values.put(-7, new Passed("int -7", bytes(4, -7)));
    values.put(-1.5f, new Passed("float -1.5", bytes(4, Float.floatToRawIntBits(-1.5f))));
    values.put((short) -7, new Passed("short -7", bytes(2, -7)));
    values.put('\u8001', new Passed("char \u8001", bytes(2, 0x8001)));
    values.put((byte) -7, new Passed("byte -7", bytes(1, -7)));
    values.put(true, new Passed("boolean true", bytes(1, 1)));
    values.put(false, new Passed("boolean false", bytes(1, 0)));
    String text = "MemorySegment, passed as a structure by value,";
    values.put(MemorySegment.ofArray(small), new Passed("heap " + text, small));
    values.put(arena.allocate(MOST).fill((byte) 0x5A), new Passed(text, large));
    return values;
  }

  /** More bytes than a parameter has would be those of the next one. */
  @Test
  void value_isWrittenWhereAParameterHasItsSize_andRefusedElsewhere() {
    try (Arena arena = Arena.ofConfined()) {
      values(arena)
          .forEach((value, passed) -> {
            for (int size = 1; size <= MOST; size++) {
              byte[] room = new byte[MOST + 9];
              Arrays.fill(room, (byte) 0x33);
              byte[] expected = room.clone();
              MemorySegment into = MemorySegment.ofArray(room);
              KernelParameter place = new KernelParameter(5, size);
              if (size == passed.bytes.length) {
                System.arraycopy(passed.bytes, 0, expected, 5, size);
                ArgumentValues.put(into, place, 3, value);
              } else {
                assertThatThrownBy(() -> ArgumentValues.put(into, place, 3, value))
                    .as("%s for %d bytes", passed.text, size)
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageStartingWith(
                        "argument 3: %s of %d bytes (expected: %d byte"
                            .formatted(passed.text, passed.bytes.length, size))
                    .satisfies(e ->
                        assertThat(e.getMessage().contains("; data of the host is passed as"))
                            .isEqualTo(place.size() == 8 && value instanceof MemorySegment));
              }
              assertThat(room).as("%s for %d bytes", passed.text, size).isEqualTo(expected);
            }
          });
    }
    for (Object other : new Object[] {"text", new int[1], new StringBuilder("x"), List.of(1)}) {
      assertThatThrownBy(() -> ArgumentValues.put(MemorySegment.NULL, PLACE, 2, other))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("argument 2: " + other.getClass().getTypeName() + " (expected: ");
    }
    assertThatThrownBy(() -> ArgumentValues.put(MemorySegment.NULL, PLACE, 2, null))
        .isInstanceOf(NullPointerException.class)
        .hasMessage("argument 2: null");
  }

  /** Where the driver does not tell the parameters, each lies where C would have it. */
  @Test
  void placeOfAValue_isTheNextThatItsSizeDivides() {
    try (Arena arena = Arena.ofConfined()) {
      Object[] all = values(arena).keySet().toArray();
      for (Object first : all) {
        for (Object second : all) {
          Object[] given = {first, second, (byte) 1, second};
          List<KernelParameter> places = ArgumentValues.places(given, each -> each);
          assertThat(places).hasSize(4);
          long end = 0;
          for (int i = 0; i < 4; i++) {
            KernelParameter place = places.get(i);
            long size = sizeOf(given[i]);
            long alignment = size > 8 ? 16 : size;
            assertThat(place.size()).isEqualTo(size);
            assertThat(place.offset()).isEqualTo(Math.ceilDiv(end, alignment) * alignment);
            end = place.offset() + size;
          }
        }
      }
    }
  }

  private static long sizeOf(Object value) {
    return switch (value) {
      case Long _, Double _ -> 8;
      case Integer _, Float _ -> 4;
      case Short _, Character _ -> 2;
      case MemorySegment segment -> segment.byteSize();
      default -> 1;
    };
  }

  @Test
  void typesOfJava_haveTheirSizes_andOthersNone() {
    Map<Class<?>, Integer> sizes =
        Map.of(
            long.class, 8,
            double.class, 8,
            int.class, 4,
            float.class, 4,
            short.class, 2,
            char.class, 2,
            byte.class, 1,
            boolean.class, 1,
            MemorySegment.class, 0);
    sizes.forEach((type, size) ->
        assertThat(ArgumentValues.sizeOf(type)).as("%s", type).isEqualTo((long) size));
    for (Class<?> other :
        List.of(void.class, Integer.class, Byte.class, Object.class, int[].class, String.class)) {
      assertThat(ArgumentValues.sizeOf(other)).as("%s", other).isEqualTo(-1);
    }
  }
}
