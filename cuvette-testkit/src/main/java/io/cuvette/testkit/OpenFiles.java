package io.cuvette.testkit;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** The open files of this process, looked at again and again. Confined to one thread. */
final class OpenFiles {
  private Set<String> listed = Set.of();
  private Map<String, String> last = Map.of();

  OpenFiles() {
    var _ = sinceLast();
  }

  /** Those that were not open when they were looked at last, by descriptor. */
  Map<String, String> sinceLast() {
    Set<String> numbers = ProcessWatch.descriptors(); // with that of the list itself
    if (numbers.equals(listed)) {
      return Map.of();
    }
    Map<String, String> now = new HashMap<>();
    for (String number : numbers) {
      String file = ProcessWatch.target(number);
      if (!file.isEmpty() && !isOfJdk(file)) {
        now.put(number, file);
      }
    }
    Map<String, String> opened = new HashMap<>(now);
    opened.entrySet().removeAll(last.entrySet());
    listed = numbers;
    last = now;
    return opened;
  }

  /** What it opens once and keeps: code, sources of random numbers. */
  private static boolean isOfJdk(String file) {
    return file.endsWith(".jar") || (file.startsWith("/dev/") && !file.startsWith("/dev/shm/"));
  }
}
