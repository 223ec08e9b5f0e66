package io.cuvette.testkit.tidy;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static java.util.Map.entry;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaPackage;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.io.IOException;
import java.io.InputStream;
import java.lang.module.ModuleDescriptor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Holds the direction of packages, and where native access begins, in the compiled library. Skipped
 * where there are no sources, as in the GPU bundle.
 */
class ArchitectureTest {
  private static final String ROOT = "io.cuvette";
  private static final String LINK = "io.cuvette.ffm.link";
  private static final List<String> MODULES =
      List.of("cuvette-core", "cuvette-ffm", "cuvette-testkit");

  /** The packages of the engine, each of which may use those that follow. */
  private static final List<String> ENGINE =
      List.of(
          "engine",
          "share",
          "async",
          "driverpool",
          "ordered",
          "elastic",
          "devicepool",
          "pinnedpool",
          "streamcache",
          "pool",
          "paged",
          "node",
          "graph",
          "kernel",
          "completion",
          "box",
          "transfer",
          "loan",
          "block",
          "interop",
          "order",
          "callback",
          "pending",
          "stream",
          "clock",
          "fence",
          "session",
          "channel",
          "program",
          "lifetime",
          "hostcopy",
          "space",
          "index",
          "observe",
          "base");

  /** The rooms of the simulated device, each of which may use those that follow. */
  private static final List<String> SIMULATOR =
      List.of(
          "allocation",
          "calls",
          "kernel",
          "machine",
          "graph",
          "pool",
          "share",
          "memory",
          "schedule",
          "pace",
          "queue",
          "base");

  /** The rooms of the instruments, each of which may use those that follow. */
  private static final List<String> INSTRUMENTS = List.of("sanitizer", "memory", "order", "report");

  /** What each package may use besides itself; a dot stands for {@value #ROOT}. */
  private static final Map<String, Set<String>> MAY_USE =
      new TreeMap<>(
          Map.ofEntries(
              entry(".", Set.of(".driver")),
              entry(".driver", Set.of()),
              entry(".sim", Set.of(".driver", ".internal.base")),
              entry(".instrument", Set.of(".driver", ".internal.base")),
              entry(
                  ".ffm",
                  Set.of(".driver", ".ffm.part", ".ffm.call", ".ffm.library", ".ffm.linux")),
              entry(".ffm.foreign", Set.of(".driver", ".ffm.link")),
              entry(".ffm.nvtx", Set.of(".driver", ".ffm.link")),
              entry(".ffm.toolkit", Set.of(".driver", ".ffm.link")),
              entry(".ffm.part", Set.of(".driver", ".ffm.call", ".ffm.library", ".ffm.link")),
              entry(".ffm.call", Set.of(".driver", ".ffm.library", ".ffm.link")),
              entry(".ffm.library", Set.of(".driver", ".ffm.link")),
              entry(".ffm.linux", Set.of(".driver", ".ffm.link")),
              entry(".ffm.link", Set.of(".driver")),
              entry(".testkit", Set.of(".", ".driver", ".sim", ".instrument"))));

  /** What the JVM takes on trust, by class. */
  private static final Map<String, Set<String>> RESTRICTED =
      Map.of(
          "java.lang.foreign.Linker", Set.of("downcallHandle", "upcallStub"),
          "java.lang.foreign.SymbolLookup", Set.of("libraryLookup"),
          "java.lang.foreign.MemorySegment", Set.of("reinterpret"),
          "java.lang.foreign.AddressLayout", Set.of("withTargetLayout"),
          "java.lang.ModuleLayer$Controller", Set.of("enableNativeAccess"),
          "java.lang.Runtime", Set.of("load", "loadLibrary"),
          "java.lang.System", Set.of("load", "loadLibrary"));

  private static Path root = Path.of("");
  private static JavaClasses library = new ClassFileImporter().importClasses();

  static {
    addRooms(".", ENGINE, Set.of(".", ".driver")); // of the root values
    addRooms(".sim", SIMULATOR, Set.of(".sim", ".driver", ".internal.base")); // likewise
    addRooms(
        ".instrument", INSTRUMENTS, Set.of(".instrument", ".driver", ".internal.base")); // likewise
  }

  /** Each room may use those that follow, and what holds them may use all. */
  private static void addRooms(String holder, List<String> rooms, Set<String> besides) {
    Set<String> below = new HashSet<>(besides);
    for (String room : rooms.reversed()) {
      String name = (holder.equals(".") ? "" : holder) + ".internal." + room;
      MAY_USE.put(name, Set.copyOf(below));
      below.add(name);
    }
    MAY_USE.merge(holder, below, ArchitectureTest::both);
  }

  private static Set<String> both(Set<String> first, Set<String> second) {
    Set<String> all = new HashSet<>(first);
    all.addAll(second);
    return all;
  }

  @BeforeAll
  static void readClasses() {
    Optional<Path> found = Repository.root();
    assumeTrue(found.isPresent(), "the sources are not here");
    root = found.orElseThrow();
    ArchConfiguration.get().setResolveMissingDependenciesFromClassPath(false); // the library alone
    library =
        new ClassFileImporter()
            .importPaths(MODULES.stream().map(ArchitectureTest::compiled).toList());
  }

  /** They are tens of megabytes, which each collection for a later test would go through. */
  @AfterAll
  static void forgetClasses() {
    library = new ClassFileImporter().importClasses();
  }

  private static Path compiled(String module) {
    return root.resolve(module).resolve("target/classes");
  }

  /** The short name of a package of ours; of another it is the empty string. */
  private static String shortName(JavaClass type) {
    String name = type.getPackageName();
    return name.equals(ROOT)
        ? "."
        : name.startsWith(ROOT + ".") ? name.substring(ROOT.length()) : "";
  }

  private static Map<String, JavaPackage> packages() {
    Map<String, JavaPackage> packages = new TreeMap<>();
    library.stream()
        .filter(type -> !shortName(type).isEmpty())
        .forEach(type -> packages.put(shortName(type), type.getPackage()));
    return packages;
  }

  @Test
  void packages_useThoseBelowThemAlone() {
    assertThat(library.size()).isGreaterThan(500);
    MAY_USE.forEach((own, others) ->
        classes()
            .that(describe("are in " + own, type -> shortName(type).equals(own)))
            .should()
            .onlyDependOnClassesThat(
                describe(
                    "are in " + others,
                    type ->
                        shortName(type).isEmpty()
                            || shortName(type).equals(own)
                            || others.contains(shortName(type))))
            .allowEmptyShould(true)
            .check(library));
  }

  @Test
  void packages_haveAPlaceAmongTheOthers() {
    assertThat(packages().keySet()).isSubsetOf(MAY_USE.keySet());
  }

  @Test
  void roomsOfInstruments_useValuesOfThemAlone() {
    noClasses()
        .that()
        .resideInAPackage(ROOT + ".instrument.internal..")
        .should()
        .dependOnClassesThat(describe("are decorators", ArchitectureTest::isDecorator))
        .check(library);
  }

  private static boolean isDecorator(JavaClass type) {
    JavaClass one = type.getBaseComponentType();
    return shortName(one).equals(".instrument")
        && !one.isEnum()
        && !one.isRecord()
        && !one.getSimpleName().startsWith("Forwarding")
        && !one.isAssignableTo(Throwable.class);
  }

  @Test
  void nativeAccess_isInOnePackage() {
    noClasses()
        .that()
        .resideOutsideOfPackage(LINK)
        .should()
        .accessTargetWhere(describe("is restricted", ArchitectureTest::isRestricted))
        .check(library);
    assertThat(library.get(LINK + ".NativeAccess").getAccessesFromSelf())
        .anyMatch(ArchitectureTest::isRestricted);
  }

  private static boolean isRestricted(JavaAccess<?> access) {
    return RESTRICTED
        .getOrDefault(access.getTargetOwner().getFullName(), Set.of())
        .contains(access.getTarget().getName());
  }

  @Test
  void packages_areNullMarked() {
    assertThat(packages().values())
        .allMatch(each -> each.isAnnotatedWith("org.jspecify.annotations.NullMarked"));
  }

  /** What a module provides is found on a class path too. */
  @Test
  void providers_areFoundOnModulePathAndClassPath() throws IOException {
    for (String module : MODULES) {
      Map<String, List<String>> provided = new TreeMap<>();
      try (InputStream info = Files.newInputStream(compiled(module).resolve("module-info.class"))) {
        ModuleDescriptor.read(info)
            .provides()
            .forEach(each -> provided.put(each.service(), each.providers()));
      }
      assertThat(services(compiled(module).resolve("META-INF/services"))).isEqualTo(provided);
    }
  }

  private static Map<String, List<String>> services(Path folder) throws IOException {
    Map<String, List<String>> services = new TreeMap<>();
    if (Files.isDirectory(folder)) {
      try (var files = Files.list(folder)) {
        for (Path file : files.toList()) {
          List<String> lines = Files.readAllLines(file);
          services.put(
              file.getFileName().toString(),
              lines.stream().filter(line -> !line.isBlank() && !line.startsWith("#")).toList());
        }
      }
    }
    return services;
  }
}
