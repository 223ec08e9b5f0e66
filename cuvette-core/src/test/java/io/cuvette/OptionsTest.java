package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Options are values: each setting is what was given, and changes no other one. */
class OptionsTest {
  private static final PinnedAllocator ALLOCATOR =
      _ -> {
        throw new UnsupportedOperationException();
      };

  static Stream<Record> options() {
    return Stream.of(
        AsyncPoolOptions.DEFAULTS,
        CaptureOptions.DEFAULTS,
        CudaOptions.DEFAULTS,
        DeviceMemoryResourceOptions.DEFAULTS,
        ElasticPoolOptions.DEFAULTS,
        EventOptions.ORDER_ONLY,
        GraphOptions.DEFAULTS,
        LaunchConfig.of(4, 8),
        PinnedMemoryResourceOptions.DEFAULTS,
        PinnedPoolOptions.DEFAULTS,
        PoolOptions.DEFAULTS,
        StreamOptions.DEFAULTS,
        CudaProgram.of("source"));
  }

  /** Values of a type other than the present one; none if this test makes none. */
  private static @Nullable Object other(Class<?> type, @Nullable Object now) {
    if (type.isEnum()) {
      return type.getEnumConstants()[type.getEnumConstants()[0].equals(now) ? 1 : 0];
    }
    return switch (type.getSimpleName()) {
      case "boolean" -> !Boolean.TRUE.equals(now);
      case "int" -> now instanceof Integer number ? number + 8 : 8;
      case "long" -> now instanceof Long number && number < 1 << 20 ? number + 4096 : 1L << 21;
      case "double" -> now instanceof Double number && number == 0.5 ? 0.25 : 0.5;
      case "String" -> "sim:seed=5".equals(now) ? "sim:seed=6" : "sim:seed=5";
      case "Dim3" -> now instanceof Dim3 size ? new Dim3(2 * size.x(), size.y(), size.z()) : null;
      case "MemoryLimit" -> MemoryLimit.ofBytes(now instanceof MemoryLimit.Bytes ? 4096 : 8192);
      case "MemoryResource" -> MemoryResource.managed();
      case "PinnedAllocator" -> ALLOCATOR;
      case "CompilerOptions" -> CompilerOptions.DEFAULTS.withDefine("A");
      case "ProgramCache" -> ProgramCache.in(Path.of("somewhere"));
      default -> null;
    };
  }

  private static Map<String, @Nullable Object> parts(Record options)
      throws ReflectiveOperationException {
    Map<String, @Nullable Object> parts = new LinkedHashMap<>();
    for (RecordComponent part : options.getClass().getRecordComponents()) {
      parts.put(part.getName(), part.getAccessor().invoke(options));
    }
    return parts;
  }

  private static List<Method> settings(Record options) {
    return Arrays.stream(options.getClass().getMethods())
        .filter(method -> method.getName().startsWith("with"))
        .filter(method -> method.getParameterCount() == 1)
        .sorted(Comparator.comparing(Method::toString))
        .toList();
  }

  /** Two rounds: what is refused beside the first values may be right beside the next. */
  @ParameterizedTest
  @MethodSource("options")
  void eachSetting_isWhatWasGiven_andChangesNoOther(Record defaults) throws Exception {
    Record options = defaults;
    List<String> tried = new ArrayList<>();
    for (int round = 0; round < 2; round++) {
      for (Method setting : settings(options)) {
        String name = setting.getName().substring(4);
        String part = Character.toLowerCase(name.charAt(0)) + name.substring(1);
        Map<String, @Nullable Object> before = parts(options);
        Object value = other(setting.getParameterTypes()[0], before.get(part));
        if (!before.containsKey(part) || value == null) {
          continue;
        }
        Record after = changed(options, setting, value);
        if (after != null) {
          Map<String, @Nullable Object> expected = new LinkedHashMap<>(before);
          expected.put(
              part, before.get(part) instanceof OptionalInt ? OptionalInt.of((int) value) : value);
          assertThat(parts(after)).as("%s", setting).isEqualTo(expected);
          assertThat(parts(options)).as("what it is made of").isEqualTo(before);
          assertThat(after.equals(options)).isEqualTo(expected.equals(before));
          options = after;
          tried.add(part);
        }
      }
    }
    assertThat(tried).isNotEmpty();
  }

  /** Null if the value is refused, which names the setting. */
  private static @Nullable Record changed(Record options, Method setting, Object value)
      throws ReflectiveOperationException {
    try {
      return (Record) Objects.requireNonNull(setting.invoke(options, value));
    } catch (InvocationTargetException e) {
      assertThat(e.getCause())
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining(":");
      return null;
    }
  }

  @Test
  void constructorsThatLeaveOut_takeTheDefaults() {
    assertThat(new DeviceMemoryResourceOptions(4096))
        .isEqualTo(DeviceMemoryResourceOptions.DEFAULTS.withMaxBytes(4096));
    OptionalInt node = OptionalInt.of(0);
    assertThat(new PinnedMemoryResourceOptions(4096, node))
        .isEqualTo(new PinnedMemoryResourceOptions(4096, node, false));
  }
}
