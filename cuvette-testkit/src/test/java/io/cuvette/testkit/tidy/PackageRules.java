package io.cuvette.testkit.tidy;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Rules over several files of the repository at once. Stateless. */
final class PackageRules {
  private static final Pattern PROVIDES =
      Pattern.compile("provides\\s+([\\w.]+)\\s+with\\s+([\\w.,\\s]+);");
  private static final String SERVICES = "/src/main/resources/META-INF/services/";

  private PackageRules() {}

  /** Each package of delivered code has a package-info with {@code @NullMarked}. */
  static List<Finding> nullMarked(List<SourceFile> files) {
    Map<String, Boolean> marked = new TreeMap<>();
    for (SourceFile file : files) {
      if (file.isMainJava() && !file.packageName().isEmpty()) {
        boolean marks =
            file.fileName().equals("package-info.java") && file.code().contains("@NullMarked");
        marked.merge(
            file.path().substring(0, file.path().lastIndexOf('/')), marks, Boolean::logicalOr);
      }
    }
    List<Finding> findings = new ArrayList<>();
    marked.forEach((folder, marks) -> {
      if (!marks) {
        findings.add(new Finding(folder, 1, "no package-info.java with @NullMarked"));
      }
    });
    return findings;
  }

  /**
   * What a module provides is found on a class path too: {@code META-INF/services} says the same.
   */
  static List<Finding> services(List<SourceFile> files) {
    TreeSet<String> modules = new TreeSet<>();
    TreeSet<String> resources = new TreeSet<>();
    for (SourceFile file : files) {
      if (file.path().endsWith("/src/main/java/module-info.java")) {
        Matcher provides = PROVIDES.matcher(file.code());
        while (provides.find()) {
          for (String provider : provides.group(2).split(",", -1)) {
            modules.add(file.module() + ": " + provides.group(1) + " by " + provider.strip());
          }
        }
      } else if (file.path().contains(SERVICES) && !file.module().equals("build")) {
        file.lines().stream()
            .filter(line -> !line.isBlank() && !line.startsWith("#"))
            .forEach(line ->
                resources.add(file.module() + ": " + file.fileName() + " by " + line.strip()));
      }
    }
    List<Finding> findings = new ArrayList<>();
    modules.stream()
        .filter(provider -> !resources.contains(provider))
        .forEach(provider -> findings.add(new Finding(provider, 1, "not in META-INF/services")));
    resources.stream()
        .filter(provider -> !modules.contains(provider))
        .forEach(provider -> findings.add(new Finding(provider, 1, "not in module-info")));
    return findings;
  }
}
