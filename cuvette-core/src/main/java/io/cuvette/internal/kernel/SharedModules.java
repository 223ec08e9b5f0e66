package io.cuvette.internal.kernel;

import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/** Modules by name, which are kept until the session ends. Thread-safe. */
public final class SharedModules {
  private final Modules modules;
  private final Map<String, OpenModule> loaded = new ConcurrentHashMap<>();

  SharedModules(Modules modules) {
    this.modules = modules;
  }

  /** The module of a name, loaded if it is not yet. */
  public OpenModule get(String name, Supplier<byte[]> image) {
    modules.session.checkOpen();
    OpenModule known = loaded.get(name);
    if (known != null) {
      return known;
    }
    byte[] code = Objects.requireNonNull(image.get(), "image");
    OpenModule made = OpenModule.load(modules, code, true);
    OpenModule before = loaded.putIfAbsent(name, made);
    if (before != null) {
      made.ending.close(made);
    }
    return before == null ? made : before;
  }
}
