package io.cuvette.mutations;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;

/** Which tests reach which lines. Threads may add at once; nobody may ask before that is done. */
final class Coverage {
  /** How much nearer a test is whose class is named after the changed one. */
  private static final double NAMESAKE = 0.5;

  /** How much farther each further test of the same class is: others may look at other things. */
  private static final double SAME_CLASS = 0.6;

  private static final int LEAST_TESTS = 3;

  private final Map<String, List<Unit>> byLine = new HashMap<>();
  private final Lock lock = new ReentrantLock();
  private int units;

  /**
   * A method of a test class.
   *
   * @param id its name for the launcher of the tests
   * @param testClass the name of its class
   * @param millis what it takes
   * @param lines how many lines it reaches
   * @param linesOf how many of each class
   */
  record Unit(String id, String testClass, long millis, int lines, Map<String, Integer> linesOf) {
    /**
     * How soon to run it for a change in a class: what is quick and about little else comes first.
     */
    double distance(String type) {
      String simple = type.replaceAll(".*/", "").replaceAll("\\$.*", "");
      boolean isNamesake = testClass.substring(testClass.lastIndexOf('.') + 1).startsWith(simple);
      double share = linesOf.getOrDefault(type, 0) / (double) lines;
      return (millis + 4) / (0.02 + share + (isNamesake ? NAMESAKE : 0));
    }
  }

  /** Takes what a {@link Worker} says of a method. */
  void add(String id, String testClass, long millis, String ran) {
    Map<String, List<String>> linesOf = new LinkedHashMap<>();
    for (String each : ran.split(" ", -1)) {
      List<String> parts = List.of(each.split(":", -1));
      linesOf.merge(parts.getFirst(), parts.subList(1, parts.size()), Coverage::joined);
    }
    Map<String, Integer> counts = new HashMap<>();
    linesOf.forEach((type, lines) -> counts.put(type, lines.size()));
    int all = counts.values().stream().mapToInt(Integer::intValue).sum();
    Unit unit = new Unit(id, testClass, millis, all, counts);
    lock.lock();
    try {
      linesOf.forEach((type, lines) -> lines.forEach(line -> tests(type, line).add(unit)));
      units++;
    } finally {
      lock.unlock();
    }
  }

  private List<Unit> tests(String type, String line) {
    return byLine.computeIfAbsent(type + ":" + line, _ -> new ArrayList<>());
  }

  private static List<String> joined(List<String> some, List<String> more) {
    List<String> all = new ArrayList<>(some);
    all.addAll(more);
    return all;
  }

  /**
   * The tests to run for a change in a line, the nearest first.
   *
   * @param type the changed class, with slashes
   * @param millis what they may take together, but for three of them
   */
  List<Unit> nearest(String type, int line, long millis) {
    Map<String, Integer> ofClass = new HashMap<>();
    Map<Unit, Double> distances = new LinkedHashMap<>();
    byLine.getOrDefault(type + ":" + line, List.of()).stream()
        .sorted(Comparator.comparingDouble(unit -> unit.distance(type)))
        .forEach(unit -> {
          int before = ofClass.merge(unit.testClass(), 1, Integer::sum) - 1;
          distances.put(unit, unit.distance(type) * (1 + SAME_CLASS * before));
        });
    List<Unit> chosen = new ArrayList<>();
    long spent = 0;
    for (Unit unit :
        distances.keySet().stream().sorted(Comparator.comparingDouble(distances::get)).toList()) {
      spent += unit.millis() + 2;
      if (spent > millis && chosen.size() >= LEAST_TESTS) {
        break;
      }
      chosen.add(unit);
    }
    return chosen;
  }

  @Override
  public String toString() {
    return units + " test methods reach " + byLine.size() + " lines";
  }
}
