package io.cuvette.sim.internal.share;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A process, and not a later one that was given the same number. Immutable.
 *
 * @param pid its number
 * @param startTicks when it started, in clock ticks since the machine did
 */
public record ProcessId(int pid, long startTicks) {
  private static final ProcessId CURRENT = of((int) ProcessHandle.current().pid());
  private static final long GONE = -1;

  /** Not known, for lack of a descriptor for example. */
  private static final long UNKNOWN = -2;

  // Fields of /proc/PID/stat behind the name, which ends with the last parenthesis.
  private static final int STATE = 0;
  private static final int START = 19;

  public static ProcessId current() {
    return CURRENT;
  }

  private static ProcessId of(int pid) {
    return new ProcessId(pid, startOf(pid));
  }

  /**
   * Whether the process runs; not if it has ended and was not reaped yet. Where that cannot be told
   * it counts as running: who waits for it asks again.
   */
  public boolean isAlive() {
    long start = startOf(pid);
    return start != GONE && (start == startTicks || start == UNKNOWN || startTicks == UNKNOWN);
  }

  /** What a descriptor of the process refers to. */
  public Path descriptor(int number) {
    return Path.of("/proc/%d/fd/%d".formatted(pid, number));
  }

  private static long startOf(int pid) {
    Path stat = Path.of("/proc/%d/stat".formatted(pid));
    try {
      byte[] bytes = Files.readAllBytes(stat);
      String text = new String(bytes, StandardCharsets.ISO_8859_1);
      String[] fields = text.substring(text.lastIndexOf(')') + 2).split(" ", -1);
      boolean ended = fields[STATE].equals("Z") || fields[STATE].equals("X");
      return ended ? GONE : Long.parseLong(fields[START]);
    } catch (IOException e) {
      return Files.exists(stat) ? UNKNOWN : GONE;
    }
  }
}
