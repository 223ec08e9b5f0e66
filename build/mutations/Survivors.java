import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Element;
import org.xml.sax.SAXException;

/**
 * Compares the mutations that no test noticed with the list of those that may live. Classes are
 * named without their packages, so that a move changes nothing in the list.
 */
final class Survivors {
  private static final List<String> MODULES = List.of("cuvette-core", "cuvette-ffm");

  private Survivors() {}

  /**
   * Takes the list, the root of the sources and reports. What a test failed for in one of several
   * reports is dead. Exits with 1 for one not listed, or if the list has code that the sources have
   * no more.
   */
  @SuppressWarnings("SystemOut") // a program of the build
  static void main(String[] args) throws Exception {
    List<Known> known = Known.readAll(Path.of(args[0]));
    Map<String, Mutation> best = new LinkedHashMap<>();
    for (String report : List.of(args).subList(2, args.length)) {
      Mutation.readAll(Path.of(report), Path.of(args[1]))
          .forEach((key, mutation) -> best.merge(key, mutation, Mutation::noticed));
    }
    List<Mutation> tried = new ArrayList<>(best.values());
    tried.removeIf(Mutation::isVoid);
    List<Mutation> living = tried.stream().filter(Mutation::survived).toList();
    List<Mutation> unknown =
        living.stream()
            .filter(mutation -> known.stream().noneMatch(one -> one.means(mutation)))
            .toList();
    unknown.forEach(mutation -> System.out.println(mutation.status() + " " + mutation));
    int listed = living.size() - unknown.size();
    int counted = tried.size() - listed;
    System.out.printf(
        "Mutations: %d, died: %d, living and listed: %d, living: %d; of those not listed %.1f %%"
            + " died%n",
        tried.size(),
        tried.size() - living.size(),
        listed,
        unknown.size(),
        counted == 0 ? 100.0 : 100.0 * (counted - unknown.size()) / counted);
    List<Known> old = withoutCode(known, Path.of(args[1]));
    old.forEach(
        one -> System.out.println("NOT IN THE SOURCES " + one.method() + ": " + one.code()));
    if (!unknown.isEmpty() || !old.isEmpty()) {
      System.exit(1);
    }
  }

  /** Those of the list whose line is in no source any more. */
  private static List<Known> withoutCode(List<Known> known, Path root) throws IOException {
    Set<String> lines = new HashSet<>(Set.of("*"));
    for (String module : MODULES) {
      try (Stream<Path> files = Files.walk(root.resolve(module).resolve("src/main/java"))) {
        for (Path file : files.filter(each -> each.toString().endsWith(".java")).toList()) {
          Files.readAllLines(file).forEach(line -> lines.add(line.strip()));
        }
      }
    }
    return known.stream().filter(one -> !lines.contains(one.code())).toList();
  }

  /**
   * What became of one mutation.
   *
   * @param method the simple name of the class, and the method
   * @param code the line that was changed
   * @param change what was changed in it, with classes by their simple names
   * @param status what became of it
   */
  record Mutation(String method, String code, String change, String status) {
    boolean survived() {
      return status.equals("SURVIVED") || status.equals("NO_COVERAGE");
    }

    /** Whether it says nothing: no class can look so. */
    boolean isVoid() {
      return status.equals("NON_VIABLE");
    }

    /** Of two runs the later one, unless a test failed in the first. */
    Mutation noticed(Mutation later) {
      return status.equals("KILLED") ? this : later;
    }

    @Override
    public String toString() {
      return method + Known.BETWEEN + code + Known.BETWEEN + change;
    }

    /**
     * Reads a report, if it is there, by what tells its mutations apart; the lines are those of the
     * sources under a root.
     */
    static Map<String, Mutation> readAll(Path report, Path root)
        throws IOException, SAXException, ParserConfigurationException {
      if (!Files.exists(report)) {
        return Map.of();
      }
      var document =
          DocumentBuilderFactory.newDefaultInstance().newDocumentBuilder().parse(report.toFile());
      Map<String, Mutation> all = new LinkedHashMap<>();
      var nodes = document.getElementsByTagName("mutation");
      for (int i = 0; i < nodes.getLength(); i++) {
        Element each = (Element) nodes.item(i);
        all.put(text(each, "change"), of(each, root));
      }
      return all;
    }

    private static Mutation of(Element mutation, Path root) throws IOException {
      String type = text(mutation, "mutatedClass");
      String simple = type.substring(type.lastIndexOf('.') + 1);
      String file = type.replace('.', '/').replaceFirst("\\$.*", "") + ".java";
      String code = line(root, file, Integer.parseInt(text(mutation, "lineNumber")));
      String method = simple + "." + text(mutation, "mutatedMethod");
      String change = text(mutation, "description").replaceAll("(\\w+/)+", "");
      return new Mutation(method, code, change, mutation.getAttribute("status"));
    }

    private static String text(Element mutation, String name) {
      return mutation.getElementsByTagName(name).item(0).getTextContent();
    }

    private static String line(Path root, String file, int number) throws IOException {
      for (String module : MODULES) {
        Path source = root.resolve(module).resolve("src/main/java").resolve(file);
        if (Files.exists(source)) {
          List<String> lines = Files.readAllLines(source);
          return number <= lines.size() ? lines.get(number - 1).strip() : "";
        }
      }
      return "";
    }
  }

  /**
   * A mutation that may live, with the reason: a line of the list. {@code *} stands for any code,
   * or any end of a method or a change.
   */
  record Known(String method, String code, String change, String reason) {
    static final String BETWEEN = " :: ";

    static List<Known> readAll(Path list) throws IOException {
      List<Known> all = new ArrayList<>();
      for (String line : Files.readAllLines(list)) {
        if (!line.isBlank() && !line.startsWith("#")) {
          String[] parts = line.split(BETWEEN, -1);
          if (parts.length != 4) {
            throw new IOException(list + ": " + parts.length + " parts (expected: 4) in: " + line);
          }
          all.add(new Known(parts[0], parts[1], parts[2], parts[3]));
        }
      }
      return all;
    }

    boolean means(Mutation mutation) {
      return fits(method, mutation.method())
          && (code.equals("*") || code.equals(mutation.code()))
          && fits(change, mutation.change());
    }

    private static boolean fits(String pattern, String text) {
      return pattern.endsWith("*")
          ? text.startsWith(pattern.substring(0, pattern.length() - 1))
          : text.equals(pattern);
    }
  }
}
