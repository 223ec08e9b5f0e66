package io.cuvette.testkit.tidy;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Packages depend in one direction, and never on what their module does not export. Looks at
 * imports and at qualified names alike. Stateless.
 */
final class DirectionRule implements Rule {
  private static final String ROOT = "io.cuvette";
  private static final String FFM = "io.cuvette.ffm";
  private static final String SIM = "io.cuvette.sim";

  /** The rooms of the simulated device from the ground up: each may use those before it. */
  private static final List<String> SIM_ROOMS =
      Stream.of("base", "schedule", "memory", "share", "pool", "machine", "calls", "allocation")
          .map(room -> SIM + ".internal." + room)
          .toList();

  /** What each of them may use besides; of the simulated device itself these are values. */
  private static final Set<String> SIM_ROOM_USES =
      Set.of("io.cuvette.driver", "io.cuvette.internal", SIM);

  private static final Set<String> EXPORTED =
      Set.of("io.cuvette", "io.cuvette.driver", "io.cuvette.sim", "io.cuvette.instrument");

  /** What each package of the core and of the driver may use besides itself. */
  private static final Map<String, Set<String>> ALLOWED =
      Map.ofEntries(
          entry("io.cuvette.driver"),
          entry("io.cuvette.internal"),
          entry("io.cuvette.pool", "io.cuvette.internal"),
          entry(SIM, "io.cuvette.driver", "io.cuvette.internal"), // and its rooms
          entry("io.cuvette.instrument", "io.cuvette.driver", "io.cuvette.internal"),
          entry(FFM + ".link", "io.cuvette.driver"),
          entry(FFM + ".linux", "io.cuvette.driver", FFM + ".link"),
          entry(FFM + ".library", "io.cuvette.driver", FFM + ".link"),
          entry(FFM + ".call", "io.cuvette.driver", FFM + ".link", FFM + ".library"),
          entry(FFM + ".part", "io.cuvette.driver", FFM + ".link", FFM + ".library", FFM + ".call"),
          entry(
              FFM,
              "io.cuvette.driver",
              FFM + ".library",
              FFM + ".call",
              FFM + ".part",
              FFM + ".linux"),
          // Examples are read as programs of users: they see what is exported.
          Map.entry("io.cuvette.examples", EXPORTED),
          entry(ROOT, "io.cuvette.driver", "io.cuvette.pool", "io.cuvette.internal"));

  /** What the modules that are not published or not a library may use besides what is exported. */
  private static final Map<String, String> BESIDES =
      Map.of(
          "cli", "io.cuvette.examples", // of the same module
          "benchmarks", "io.cuvette.pool"); // the engine is measured alone, on the class path

  private static final Pattern NAME = Pattern.compile("\\bio\\.cuvette(?:\\.[a-z][a-z0-9]*)*\\b");

  private static Map.Entry<String, Set<String>> entry(String own, String... allowed) {
    return Map.entry(own, Set.of(allowed));
  }

  @Override
  public List<Finding> check(SourceFile file) {
    String own = file.packageName();
    if (!file.isMainJava() || own.isEmpty()) {
      return List.of();
    }
    List<Finding> findings = new ArrayList<>();
    List<String> lines = file.codeLines();
    for (int i = 0; i < lines.size(); i++) {
      Matcher name = NAME.matcher(lines.get(i));
      while (!lines.get(i).startsWith("package ") && name.find()) {
        if (!mayUse(own, name.group())) {
          findings.add(file.finding(i + 1, own + " must not use " + name.group()));
        }
      }
    }
    return findings;
  }

  static boolean mayUse(String own, String other) {
    Set<String> allowed = ALLOWED.get(own);
    if (own.equals(other) || (own.equals(SIM) && SIM_ROOMS.contains(other))) {
      return true;
    }
    if (SIM_ROOMS.contains(own)) {
      return SIM_ROOM_USES.contains(other)
          || SIM_ROOMS.subList(0, SIM_ROOMS.indexOf(own)).contains(other);
    }
    return allowed != null
        ? allowed.contains(other)
        : EXPORTED.contains(other)
            || sameFamily(own, other)
            || other.equals(BESIDES.get(family(own)));
  }

  /** Whether both are of one module outside the core, such as the command line and its examples. */
  private static boolean sameFamily(String own, String other) {
    return family(own).equals(family(other));
  }

  private static String family(String name) {
    String[] parts = name.split("\\.", 4);
    return parts.length < 3 ? name : parts[2];
  }
}
