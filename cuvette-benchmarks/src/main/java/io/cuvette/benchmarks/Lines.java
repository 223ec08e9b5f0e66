package io.cuvette.benchmarks;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/**
 * Writes what a side-by-side program measured, one JSON object a line on standard output, as the
 * anchors' programs do. Not thread-safe.
 */
final class Lines {
  private final PrintStream out =
      new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
  private final String anchor;

  Lines(String anchor) {
    this.anchor = anchor;
  }

  /** Writes one figure, for example {@code nsPerPair}. */
  void figure(String work, String metric, double value, int threads) {
    print("\"work\":\"%s\",\"%s\":%.4f,\"threads\":%d", work, metric, value, threads);
  }

  /** Writes a figure of one thread. */
  void figure(String work, String metric, double value) {
    figure(work, metric, value, 1);
  }

  /** Writes the time of an operation of a replay, and the bytes held over the bytes live at peak. */
  void replay(String trace, double nanosPerOperation, double ratio) {
    print(
        "\"work\":\"replay-%s\",\"nsPerOperation\":%.4f,\"ratio\":%.4f,\"threads\":1",
        trace, nanosPerOperation, ratio);
  }

  /** Writes what was measured: versions, the device. */
  void about(String text) {
    print("\"about\":\"%s\"", escape(text));
  }

  /** Writes why nothing can be measured here. */
  void missing(String reason) {
    print("\"missing\":\"%s\"", escape(reason));
  }

  private void print(String format, Object... values) {
    String rest = String.format(Locale.ROOT, format, values);
    out.println("{\"anchor\":\"" + anchor + "\"," + rest + "}");
  }

  private static String escape(String text) {
    return text.replaceAll("[\\p{Cntrl}\"\\\\]+", " ");
  }
}
