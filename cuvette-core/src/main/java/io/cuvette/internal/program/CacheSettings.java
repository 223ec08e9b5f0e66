package io.cuvette.internal.program;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Where compiled code is kept unless the program says so. Stateless. */
public final class CacheSettings {
  private static final String PROPERTY = "cuvette.cache";
  private static final String HOME = "user.home";
  private static final String NONE = "none";

  private CacheSettings() {}

  /** The folder; null if nothing is kept. */
  public static @Nullable Path folder() {
    Map<String, String> properties = new HashMap<>();
    for (String name : new String[] {PROPERTY, HOME}) {
      properties.put(name, System.getProperty(name, ""));
    }
    return folder(properties, System.getenv());
  }

  /** The same for other settings. By the rules of XDG a path that is not absolute is as none. */
  static @Nullable Path folder(Map<String, String> properties, Map<String, String> variables) {
    String property = properties.getOrDefault(PROPERTY, "");
    if (!property.isBlank()) {
      return property.equals(NONE) ? null : path("-D" + PROPERTY, property);
    }
    String variable = variables.getOrDefault("CUVETTE_CACHE", "");
    if (!variable.isBlank()) {
      return variable.equals(NONE) ? null : path("CUVETTE_CACHE", variable);
    }
    String caches = variables.getOrDefault("XDG_CACHE_HOME", "");
    if (caches.startsWith("/")) {
      return path("XDG_CACHE_HOME", caches).resolve("cuvette");
    }
    String home = properties.getOrDefault(HOME, "");
    return home.isBlank() || home.equals("?") ? null : Path.of(home, ".cache", "cuvette");
  }

  private static Path path(String setting, String text) {
    try {
      return Path.of(text);
    } catch (InvalidPathException e) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: a folder, or %s)".formatted(setting, text, NONE), e);
    }
  }
}
