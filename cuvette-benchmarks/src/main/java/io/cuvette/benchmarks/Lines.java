package io.cuvette.benchmarks;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/**
 * Writes what a side-by-side program measured, one JSON object a line on standard output, as the
 * anchors' programs do. Not thread-safe.
 */
final class Lines {
  private final String anchor;
  private final PrintStream out;

  /** On standard output. */
  Lines(String anchor) {
    this(anchor, new FileOutputStream(FileDescriptor.out));
  }

  Lines(String anchor, OutputStream out) {
    this.anchor = anchor;
    this.out = new PrintStream(out, true, StandardCharsets.UTF_8);
  }

  /** Writes one figure, for example {@code nsPerPair}. */
  void figure(String work, String metric, double value, int threads) {
    print(text("work", work) + "," + number(metric, value) + ",\"threads\":" + threads);
  }

  /** Writes a figure of one thread. */
  void figure(String work, String metric, double value) {
    figure(work, metric, value, 1);
  }

  /**
   * Writes the time of an operation of a replay, and the bytes held over the bytes live at peak.
   */
  void replay(String trace, double nanosPerOperation, double ratio) {
    String figures = number("nsPerOperation", nanosPerOperation) + "," + number("ratio", ratio);
    print(text("work", "replay-" + trace) + "," + figures + ",\"threads\":1");
  }

  /** Writes what was measured: versions, the device. */
  void about(String text) {
    print(text("about", text));
  }

  /** Writes why nothing can be measured here. */
  void missing(String reason) {
    print(text("missing", reason));
  }

  private void print(String fields) {
    out.println("{" + text("anchor", anchor) + "," + fields + "}");
  }

  private static String number(String name, double value) {
    return "\"" + name + "\":" + String.format(Locale.ROOT, "%.4f", value);
  }

  private static String text(String name, String value) {
    return "\"" + name + "\":\"" + value.replaceAll("[\\p{Cntrl}\"\\\\]+", " ") + "\"";
  }
}
