package io.cuvette.array.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.array.ArrayModule;
import io.cuvette.array.ArrayRandom;
import io.cuvette.array.CudaArray;
import io.cuvette.array.CudaArrays;
import io.cuvette.array.HostArray;
import io.cuvette.array.HostArrays;
import io.cuvette.array.Layout;
import io.cuvette.array.NdArray;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** What docs/migration.md says of arrays is public and takes so many arguments. */
class ArrayMigrationTest {
  private static final Pattern CALL = Pattern.compile("`(\\w+)\\.(\\w+)\\(([^)`]*)\\)`");
  private static final Map<String, Class<?>> TYPES =
      Stream.of(
              ArrayModule.class,
              ArrayRandom.class,
              CudaArray.class,
              CudaArrays.class,
              HostArray.class,
              HostArrays.class,
              Layout.class,
              NdArray.class)
          .collect(Collectors.toMap(Class::getSimpleName, Function.identity()));

  @Test
  void everyCallOfArrays_isPublic_andTakesSoManyArguments() throws IOException {
    Path page = Path.of(System.getProperty("cuvette.root", ""), "docs/migration.md");
    assumeTrue(Files.exists(page), "the sources are not here");
    List<String> unknown = new ArrayList<>();
    int known = 0;
    Matcher call = CALL.matcher(Files.readString(page));
    while (call.find()) {
      Class<?> type = TYPES.get(call.group(1));
      if (type != null) {
        String name = call.group(2);
        int count = call.group(3).isEmpty() ? 0 : call.group(3).split(",").length;
        boolean found =
            Arrays.stream(type.getMethods())
                .anyMatch(
                    method -> method.getName().equals(name) && method.getParameterCount() == count);
        known += found ? 1 : 0;
        if (!found) {
          unknown.add(call.group());
        }
      }
    }
    assertThat(unknown).isEmpty();
    assertThat(known).isGreaterThan(30);
  }
}
