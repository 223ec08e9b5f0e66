package io.cuvette.testkit.tidy;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The types of the core and the arrows between them, as compiled. A nested type is a part of its
 * outermost one. An arrow leads from a type to one that it names.
 */
final class House {
  private static final String ROOF = "io.cuvette";
  private static final String ENGINE = ROOF + ".internal.";

  /** The first handles: what names one of them, and is no value, is a handle too. */
  private static final Set<String> FIRST_HANDLES =
      Set.of("Cuda", "CudaDevice", "CudaStream", "CudaEvent", "Buffer");

  private final Map<String, JavaClass> types = new TreeMap<>();
  private final Map<String, Set<String>> arrows = new TreeMap<>();
  private final Set<String> handles = new TreeSet<>();

  private House() {}

  /** Reads the class files of a folder. */
  static House read(Path classes) {
    ArchConfiguration.get().setResolveMissingDependenciesFromClassPath(false); // the core alone
    House house = new House();
    for (JavaClass each : new ClassFileImporter().importPath(classes)) {
      String from = outermost(each);
      if (each.getFullName().equals(from)) {
        house.types.put(from, each);
      }
      Set<String> to = house.arrows.computeIfAbsent(from, _ -> new TreeSet<>());
      each.getDirectDependenciesFromSelf()
          .forEach(arrow -> to.add(outermost(arrow.getTargetClass())));
    }
    house.arrows.forEach(
        (from, to) -> to.removeIf(t -> t.equals(from) || !house.types.containsKey(t)));
    house.findHandles();
    return house;
  }

  private static String outermost(JavaClass type) {
    String name = type.getBaseComponentType().getFullName();
    int nested = name.indexOf('$');
    return nested < 0 ? name : name.substring(0, nested);
  }

  /**
   * The knots of a package and of those below it, the largest first: types that all reach each
   * other.
   */
  List<List<String>> knots() {
    List<List<String>> knots =
        new Knots(type -> arrows.getOrDefault(type, Set.of())).of(types.keySet());
    knots.removeIf(knot -> knot.size() == 1);
    knots.sort((a, b) -> b.size() - a.size());
    return knots;
  }

  /** The arrows from the engine to handles, as {@code Type -> Handle}. */
  List<String> engineToHandles() {
    List<String> found = new ArrayList<>();
    arrows.forEach((from, to) -> {
      if (isEngine(from)) {
        to.stream()
            .filter(handles::contains)
            .forEach(t -> found.add(simple(from) + " -> " + simple(t)));
      }
    });
    return found;
  }

  /** What users hold that is no value; of their base classes those of the package too. */
  Set<String> handles() {
    return handles;
  }

  private boolean isEngine(String type) {
    return types.get(type).getPackageName().startsWith(ENGINE);
  }

  private void findHandles() {
    FIRST_HANDLES.forEach(name -> handles.add(ROOF + "." + name));
    boolean more = true;
    while (more) {
      more = false;
      for (String type : types.keySet()) {
        if (isOfUsers(type) && arrows.get(type).stream().anyMatch(handles::contains)) {
          more |= handles.add(type);
        }
      }
    }
  }

  private boolean isOfUsers(String type) {
    JavaClass java = types.get(type);
    return java.getPackageName().equals(ROOF)
        && !isValue(java)
        && (isPublic(type) || java.getSubclasses().stream().anyMatch(House::isPublic));
  }

  private static boolean isValue(JavaClass type) {
    return type.isRecord()
        || type.isEnum()
        || type.getName().endsWith("Exception")
        || (type.isInterface()
            && !type.getSubclasses().isEmpty()
            && type.getSubclasses().stream().allMatch(House::isValue));
  }

  private boolean isPublic(String type) {
    return isPublic(types.get(type));
  }

  private static boolean isPublic(JavaClass type) {
    return type.getModifiers().contains(JavaModifier.PUBLIC);
  }

  private static String simple(String type) {
    return type.substring(type.lastIndexOf('.') + 1);
  }
}
