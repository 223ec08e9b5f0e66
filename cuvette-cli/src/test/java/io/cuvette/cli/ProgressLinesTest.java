package io.cuvette.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class ProgressLinesTest {
  @Test
  void line_comesAfterTenSeconds_andThenNotBeforeTenMore() {
    ByteArrayOutputStream shown = new ByteArrayOutputStream();
    PrintStream out = new PrintStream(shown, true, StandardCharsets.UTF_8);
    AtomicLong seconds = new AtomicLong(5);
    try (Progress progress =
        new ProgressLines("replay", 5, out, () -> TimeUnit.SECONDS.toNanos(seconds.get()))) {
      for (long at : new long[] {14, 15, 24, 25, 26}) {
        seconds.set(at);
        progress.step();
      }
    }
    assertThat(shown.toString(StandardCharsets.UTF_8).lines())
        .containsExactly("cuvette: replay: 2 of 5 done", "cuvette: replay: 4 of 5 done");
  }
}
