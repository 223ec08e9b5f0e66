package io.cuvette;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * An object that was forgotten: collected before it was closed. Its memory or handle was taken
 * back.
 *
 * @param what the object, with its size and address
 * @param bytes the bytes released, 0 for streams and events
 * @param site where it was made, if the {@link LeakLevel} recorded that
 */
public record LeakReport(String what, long bytes, @Nullable Throwable site) {
  /** Creates a report. */
  public LeakReport {
    Objects.requireNonNull(what, "what");
  }

  static void log(LeakReport report) {
    System.Logger logger = System.getLogger("io.cuvette.leaks");
    String text = "forgotten, now taken back: " + report.what();
    if (report.site() == null) {
      logger.log(
          System.Logger.Level.WARNING, text + "; -Dcuvette.leaks=FULL tells where it was made");
    } else {
      logger.log(System.Logger.Level.WARNING, text, report.site());
    }
  }
}
