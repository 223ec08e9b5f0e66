package io.cuvette.mutations;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.pitest.bytecode.analysis.ClassTree;
import org.pitest.classinfo.ClassName;
import org.pitest.mutationtest.EngineArguments;
import org.pitest.mutationtest.build.InterceptorParameters;
import org.pitest.mutationtest.build.MutationInterceptorFactory;
import org.pitest.mutationtest.config.ReportOptions;
import org.pitest.mutationtest.engine.Location;
import org.pitest.mutationtest.engine.Mutater;
import org.pitest.mutationtest.engine.MutationDetails;
import org.pitest.mutationtest.engine.MutationIdentifier;
import org.pitest.mutationtest.engine.gregor.config.GregorEngineFactory;

/** The changes that PIT's engine makes in the classes on the class path. Thread-confined. */
final class Changes {
  /** Filters of PIT: what the compiler writes, and what can make no difference. */
  private static final Set<String> FILTERS =
      Set.of("javafeatures", "equivalent", "defensive", "logging", "staticinitializers", "timeout");

  private final Mutater mutater;

  /** Takes the kinds of changes, by PIT's names for them or for groups of them. */
  Changes(List<String> mutators) {
    this.mutater =
        new GregorEngineFactory()
            .createEngine(EngineArguments.arguments().withMutators(mutators))
            .createMutator(Changes::bytes);
  }

  /** The names of the classes in a folder, in their order. */
  static List<String> classNames(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files
          .map(file -> folder.relativize(file).toString().replace('/', '.'))
          .filter(name -> name.endsWith(".class") && !name.endsWith("-info.class"))
          .map(name -> name.substring(0, name.length() - ".class".length()))
          .sorted()
          .toList();
    }
  }

  /** All changes of the classes in a folder whose names fit. */
  List<MutationDetails> in(Path folder, Predicate<String> names) throws IOException {
    List<MutationDetails> found = new ArrayList<>();
    for (String name : classNames(folder)) {
      if (names.test(name)) {
        found.addAll(in(name));
      }
    }
    return found;
  }

  private List<MutationDetails> in(String name) {
    Collection<MutationDetails> all = mutater.findMutations(ClassName.fromString(name));
    ReportOptions options = new ReportOptions();
    options.setDetectInlinedCode(true);
    var parameters = new InterceptorParameters(null, options, null, null, null, null, null);
    for (var factory : ServiceLoader.load(MutationInterceptorFactory.class)) {
      String origin = factory.getClass().getPackageName();
      if (FILTERS.contains(origin.substring(origin.lastIndexOf('.') + 1))) {
        var filter = factory.createInterceptor(parameters);
        filter.begin(ClassTree.fromBytes(bytes(name).orElseThrow()));
        all = filter.intercept(all, mutater);
        filter.end();
      }
    }
    // What runs once, when a class is loaded, cannot be changed afterwards.
    return all.stream().filter(each -> !each.getMethod().equals("<clinit>")).toList();
  }

  /** The bytes of the changed class. */
  byte[] make(MutationIdentifier change) {
    return mutater.getMutation(change).getBytes();
  }

  /** A line that tells a change from all others. */
  static String text(MutationIdentifier change) {
    Location at = change.getLocation();
    return String.join(
        " ",
        at.getClassName().asJavaName(),
        at.getMethodName(),
        at.getMethodDesc(),
        change.getIndexes().stream().map(String::valueOf).collect(Collectors.joining(",")),
        change.getMutator());
  }

  /** The change of such a line. */
  static MutationIdentifier of(String text) {
    String[] parts = text.split(" ", -1);
    Set<Integer> indexes =
        Arrays.stream(parts[3].split(",", -1)).map(Integer::valueOf).collect(Collectors.toSet());
    return new MutationIdentifier(
        Location.location(ClassName.fromString(parts[0]), parts[1], parts[2]), indexes, parts[4]);
  }

  /** A class of the library, or of the JDK, to which it refers. */
  private static Optional<byte[]> bytes(String name) {
    String file = name.replace('.', '/') + ".class";
    try (InputStream in = ClassLoader.getSystemResourceAsStream(file)) {
      return in == null ? Optional.empty() : Optional.of(in.readAllBytes());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
