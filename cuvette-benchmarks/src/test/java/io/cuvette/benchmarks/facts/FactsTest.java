package io.cuvette.benchmarks.facts;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.benchmarks.OnSimulatedDevice;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The facts on the simulated device; what other libraries say is compared on a GPU. */
@ExtendWith(OnSimulatedDevice.class)
class FactsTest {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

  @ParameterizedTest
  @ValueSource(
      strings = {
        "resources",
        "birth",
        "sequence",
        "buffers",
        "errors",
        "descriptors",
        "register",
        "closed-device",
        "closed-pinned",
        "closed-managed",
        "peers",
        "preferred",
        "managed",
        "async-choices",
        "async-limits",
        "async-errors",
        "async-sides"
      })
  void section_saysItsFactsToTheEnd(String section) {
    assertThat(Facts.run(List.of(section), out)).isTrue();

    assertThat(lines())
        .hasSizeGreaterThan(2)
        .noneMatch(line -> line.matches(".*\\.all\",\"error.*"));
    assertThat(lines()).allMatch(line -> line.startsWith("{\"library\":\"cuvette\",\""));
    assertThat(lines()).doesNotHaveDuplicates();
  }

  @Test
  void numaIds_followTheOptions() {
    Facts.run(List.of("resources"), out);

    assertThat(lines())
        .contains(
            "{\"library\":\"cuvette\",\"fact\":\"pinned.current.numa_id\",\"value\":-1}",
            "{\"library\":\"cuvette\",\"fact\":\"pinned.own.numa_id\",\"value\":-1}",
            "{\"library\":\"cuvette\",\"fact\":\"pinned.ipc-numa0.numa_id\",\"value\":0}");
  }

  @Test
  void operationThatThrows_isALineAndNotTheEnd() {
    Recorder recorder = new Recorder("x", out);
    recorder.fact(
        "a",
        () -> {
          throw new NoSuchElementException("no \"b\"\nhere");
        });
    recorder.fact("c", () -> List.of("d", 1, true));
    recorder.outcome("e", () -> {});

    assertThat(lines())
        .containsExactly(
            "{\"library\":\"x\",\"fact\":\"a\",\"error\":\"no such element\",\"message\":"
                + "\"java.util.NoSuchElementException: no  b here\"}",
            "{\"library\":\"x\",\"fact\":\"c\",\"value\":[\"d\",1,true]}",
            "{\"library\":\"x\",\"fact\":\"e\",\"value\":\"no error\"}");
  }

  private List<String> lines() {
    return out.toString(StandardCharsets.UTF_8).lines().toList();
  }
}
