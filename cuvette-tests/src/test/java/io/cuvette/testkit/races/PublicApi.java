package io.cuvette.testkit.races;

import io.cuvette.Cuda;
import java.io.IOException;
import java.lang.reflect.Constructor;
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
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The public methods and constructors of the library's package, by name. Stateless. */
final class PublicApi {
  private PublicApi() {}

  /**
   * Such as {@code Buffer.copyFrom(Buffer, CudaStream)}; a constructor is {@code new Pool(Cuda)}.
   */
  static Set<String> names() throws IOException, ReflectiveOperationException, URISyntaxException {
    Set<String> names = new TreeSet<>();
    for (Class<?> type : types()) {
      for (Constructor<?> constructor : type.getConstructors()) {
        names.add("new " + simple(type) + parameters(constructor));
      }
      for (Method method : type.getMethods()) {
        if (isOf(type, method) && !method.isSynthetic()) {
          names.add(simple(type) + "." + method.getName() + parameters(method));
        }
      }
    }
    return names;
  }

  /**
   * Whether users find a method at a class: it is declared there, or in a class they do not see.
   */
  private static boolean isOf(Class<?> type, Method method) {
    Class<?> by = method.getDeclaringClass();
    return by == type
        || (!Modifier.isPublic(by.getModifiers())
            && interfaces(type).noneMatch(each -> hasSame(each, method)));
  }

  /** Those of a class, and of the classes that it extends. */
  private static Stream<Class<?>> interfaces(Class<?> type) {
    return Stream.<Class<?>>iterate(type, Objects::nonNull, Class::getSuperclass)
        .flatMap(each -> Arrays.stream(each.getInterfaces()));
  }

  private static boolean hasSame(Class<?> type, Method method) {
    return Arrays.stream(type.getMethods())
        .anyMatch(each ->
            each.getName().equals(method.getName())
                && Arrays.equals(each.getParameterTypes(), method.getParameterTypes()));
  }

  private static String simple(Class<?> type) {
    Class<?> outer = type.getEnclosingClass();
    return outer == null ? type.getSimpleName() : simple(outer) + "." + type.getSimpleName();
  }

  private static String parameters(Executable executable) {
    return Arrays.stream(executable.getParameterTypes())
        .map(PublicApi::simple)
        .collect(Collectors.joining(", ", "(", ")"));
  }

  /**
   * What has no operation: values, which hold nothing that could end, exceptions, and callbacks.
   */
  private static boolean isValue(Class<?> type) {
    return type.isRecord() || type.isEnum() || Throwable.class.isAssignableFrom(type);
  }

  private static List<Class<?>> types()
      throws IOException, ReflectiveOperationException, URISyntaxException {
    URI code = Cuda.class.getProtectionDomain().getCodeSource().getLocation().toURI();
    Path place = Path.of(code);
    if (Files.isDirectory(place)) {
      return types(place.resolve("io/cuvette"));
    }
    try (FileSystem jar = FileSystems.newFileSystem(URI.create("jar:" + code), Map.of())) {
      return types(jar.getPath("io/cuvette"));
    }
  }

  private static List<Class<?>> types(Path folder)
      throws IOException, ReflectiveOperationException {
    List<Class<?>> types = new ArrayList<>();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.sorted().toList()) {
        String name = file.getFileName().toString();
        if (name.endsWith(".class") && !name.startsWith("package-")) {
          Class<?> type = Class.forName("io.cuvette." + name.replace(".class", ""));
          if (isPublic(type) && !isValue(type)) {
            types.add(type);
          }
        }
      }
    }
    return types;
  }

  private static boolean isPublic(Class<?> type) {
    Class<?> outer = type.getEnclosingClass();
    return Modifier.isPublic(type.getModifiers()) && (outer == null || isPublic(outer));
  }
}
