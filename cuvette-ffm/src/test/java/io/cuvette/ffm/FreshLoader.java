package io.cuvette.ffm;

import java.net.URL;
import java.net.URLClassLoader;
import java.util.stream.Stream;

/** Loads the classes of some packages anew, and everything else as usual. */
public final class FreshLoader extends URLClassLoader {
  private final String prefix;

  /** Loads those of the driver anew. */
  public FreshLoader() {
    this("io.cuvette.ffm.", FfmDriverProvider.class.getClassLoader(), FfmDriverProvider.class);
  }

  /**
   * Loads other classes anew.
   *
   * @param prefix what their names start with
   * @param parent loads the others
   * @param besides classes that lie where they do
   */
  public FreshLoader(String prefix, ClassLoader parent, Class<?>... besides) {
    super(
        Stream.of(besides)
            .map(type -> type.getProtectionDomain().getCodeSource().getLocation())
            .toArray(URL[]::new),
        parent);
    this.prefix = prefix;
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (!name.startsWith(prefix)) {
      return super.loadClass(name, resolve);
    }
    Class<?> loaded = findLoadedClass(name);
    return loaded != null ? loaded : findClass(name);
  }
}
