package io.cuvette.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonTest {
  @Test
  void fieldsKeepTheirOrderAndTypes() {
    Json json =
        new Json()
            .with("text", "a")
            .with("whole", 1L << 60)
            .with("fraction", 0.5)
            .with("truth", true)
            .with("nothing", null)
            .with("list", List.of(1, "b", List.of()))
            .with("map", Map.of("c", 2))
            .with("object", new Json().with("d", -3))
            .with("empty", new Json());
    assertThat(json)
        .hasToString(
            "{\"text\":\"a\",\"whole\":1152921504606846976,\"fraction\":0.5,\"truth\":true,"
                + "\"nothing\":null,\"list\":[1,\"b\",[]],\"map\":{\"c\":2},\"object\":{\"d\":-3},"
                + "\"empty\":{}}");
  }

  @Test
  void everyCharacterComesBack() {
    StringBuilder all = new StringBuilder();
    for (char c = 0; c < Character.MAX_VALUE; c++) {
      all.append(c);
    }
    String line = new Json().with("text", all).toString();
    assertThat(line).doesNotContain("\n", "\r");
    assertThat(JsonReader.object(line)).containsEntry("text", all.toString());
  }

  @Test
  void numbersThatJsonHasNot_areNull() {
    List<Double> numbers = List.of(Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY);
    assertThat(new Json().with("n", numbers)).hasToString("{\"n\":[null,null,null]}");
  }

  @Test
  void veryLargeAndSmallNumbers_areReadBackTheSame() {
    List<Object> numbers =
        new ArrayList<>(List.of(1e300, -1e-300, Double.MIN_VALUE, Long.MIN_VALUE));
    assertThat(JsonReader.object(new Json().with("n", numbers).toString()))
        .containsEntry("n", numbers);
  }
}
