package io.cuvette.testkit.support;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** The public classes of a package, and what can be called on them. Stateless. */
public final class PublicApi {
  private static final String SUFFIX = ".class";

  private PublicApi() {}

  /** The public classes of the package that a class is in, nested ones too. */
  public static List<Class<?>> classesBeside(Class<?> known) {
    String folder = known.getPackageName().replace('.', '/');
    Path place = placeOf(known);
    if (Files.isDirectory(place)) {
      return classes(known, place.resolve(folder));
    }
    URI archive = URI.create("jar:" + place.toUri());
    try (FileSystem files = FileSystems.newFileSystem(archive, Map.of())) {
      return classes(known, files.getPath(folder));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Path placeOf(Class<?> known) {
    try {
      return Path.of(known.getProtectionDomain().getCodeSource().getLocation().toURI());
    } catch (URISyntaxException e) {
      throw new AssertionError(e);
    }
  }

  private static List<Class<?>> classes(Class<?> known, Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      return files
          .map(file -> file.getFileName().toString())
          .filter(file -> file.endsWith(SUFFIX) && !file.endsWith("-info" + SUFFIX))
          .sorted()
          .<Class<?>>map(file -> load(known, file.substring(0, file.length() - SUFFIX.length())))
          .filter(PublicApi::isPublic)
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Class<?> load(Class<?> known, String name) {
    try {
      return Class.forName(known.getPackageName() + "." + name, false, known.getClassLoader());
    } catch (ClassNotFoundException e) {
      throw new AssertionError(e);
    }
  }

  private static boolean isPublic(Class<?> type) {
    for (Class<?> at = type; at != null; at = at.getEnclosingClass()) {
      if (!Modifier.isPublic(at.getModifiers())) {
        return false;
      }
    }
    return !type.isAnonymousClass();
  }

  /** Its public constructors, and the methods that are its own or of a class that is not public. */
  public static List<Executable> calls(Class<?> type) {
    List<Executable> calls = new ArrayList<>(List.of(type.getConstructors()));
    Arrays.stream(type.getMethods())
        .filter(method -> !method.isSynthetic() && !method.isBridge())
        .filter(method -> isOwn(method, type))
        .forEach(calls::add);
    return calls;
  }

  private static boolean isOwn(Method method, Class<?> type) {
    Class<?> by = method.getDeclaringClass();
    return by == type || (!by.isInterface() && !Modifier.isPublic(by.getModifiers()));
  }
}
