package io.cuvette;

import io.cuvette.internal.base.BargingLock;
import io.cuvette.internal.base.Checks;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/**
 * Adds up, for each frame of the callers' stacks, the bytes taken from a {@link MemoryPool} (used)
 * and those the pool had to take from upstream (acquired). What is freed is not subtracted: the
 * report shows who allocates, not who holds. Thread-safe.
 */
public final class LineProfileHook implements MemoryHook {
  private static final String LIBRARY = LineProfileHook.class.getPackageName();
  private static final String ENGINE = LIBRARY + ".internal.";
  private static final String[] UNITS = {"", "K", "M", "G", "T", "P", "E"};

  private final int maxDepth;
  private final Frame root = new Frame();
  private final BargingLock lock = new BargingLock();

  /** A hook that reports all frames. */
  public LineProfileHook() {
    this(0);
  }

  /**
   * A hook that reports some levels.
   *
   * @param maxDepth the levels to report, the root counted; 0 for all
   */
  public LineProfileHook(int maxDepth) {
    this.maxDepth = (int) Checks.notNegative("maxDepth", maxDepth);
  }

  private static final class Frame {
    private final Map<String, Frame> callees = new LinkedHashMap<>();
    private long usedBytes;
    private long acquiredBytes;
  }

  @Override
  public void allocPreprocess(Growth growth) {
    Objects.requireNonNull(growth, "growth");
    add(0, growth.blockBytes());
  }

  @Override
  public void mallocPreprocess(Block block) {
    Objects.requireNonNull(block, "block");
    add(block.blockBytes(), 0);
  }

  /**
   * Writes a line for each frame, callers before callees, two blanks of indent for each level:
   * {@code File.java:line:method (used, acquired)}.
   *
   * @param out the destination of the report
   */
  public void printReport(Appendable out) {
    Objects.requireNonNull(out, "out");
    lock.lock();
    try {
      print(out, "_root", root, 0);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } finally {
      lock.unlock();
    }
  }

  private void add(long usedBytes, long acquiredBytes) {
    Deque<String> callers = new ArrayDeque<>();
    StackWalker.getInstance()
        .forEach(frame -> {
          if (isOutside(frame)) {
            callers.push(
                frame.getFileName() + ":" + frame.getLineNumber() + ":" + frame.getMethodName());
          }
        });
    lock.lock();
    try {
      Frame frame = root;
      count(frame, usedBytes, acquiredBytes);
      for (String caller : callers) {
        frame = frame.callees.computeIfAbsent(caller, c -> new Frame());
        count(frame, usedBytes, acquiredBytes);
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * A program may live in a package below this library's name: only the library's own packages are
   * left out.
   */
  private static boolean isOutside(StackWalker.StackFrame frame) {
    String name = frame.getClassName();
    int end = name.lastIndexOf('.');
    return !name.startsWith(ENGINE) && (end < 0 || !name.substring(0, end).equals(LIBRARY));
  }

  private static void count(Frame frame, long usedBytes, long acquiredBytes) {
    frame.usedBytes += usedBytes;
    frame.acquiredBytes += acquiredBytes;
  }

  private void print(Appendable out, String name, Frame frame, int level) throws IOException {
    if (maxDepth != 0 && level >= maxDepth) {
      return;
    }
    out.append("  ".repeat(level))
        .append("%s (%s, %s)\n".formatted(name, size(frame.usedBytes), size(frame.acquiredBytes)));
    for (Map.Entry<String, Frame> callee : frame.callees.entrySet()) {
      print(out, callee.getKey(), callee.getValue(), level + 1);
    }
  }

  private static String size(long bytes) {
    double value = bytes;
    int unit = 0;
    while (value >= 1024 && unit < UNITS.length - 1) {
      value /= 1024;
      unit++;
    }
    return String.format(Locale.ROOT, "%.2f%sB", value, UNITS[unit]);
  }
}
