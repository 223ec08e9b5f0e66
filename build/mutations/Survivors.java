import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Element;
import org.xml.sax.SAXException;

/** Compares the mutations that no test noticed with the list of those that may live. */
final class Survivors {
  private Survivors() {}

  /** Takes the list, the root of the sources and reports. Exits with 1 for one not listed. */
  @SuppressWarnings("SystemOut") // a program of the build
  static void main(String[] args) throws Exception {
    List<Known> known = Known.readAll(Path.of(args[0]));
    List<Mutation> tried = new ArrayList<>();
    for (String report : List.of(args).subList(2, args.length)) {
      tried.addAll(Mutation.readAll(Path.of(report), Path.of(args[1])));
    }
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
    if (!unknown.isEmpty()) {
      System.exit(1);
    }
  }

  /**
   * What became of one mutation.
   *
   * @param method the simple name of the class, and the method
   * @param code the line that was changed
   * @param change what was changed in it
   * @param status in PIT's words
   */
  record Mutation(String method, String code, String change, String status) {
    boolean survived() {
      return status.equals("SURVIVED") || status.equals("NO_COVERAGE");
    }

    /** Whether it says nothing: it was not tried, or no class can look so. */
    boolean isVoid() {
      return status.equals("NOT_STARTED")
          || status.equals("NON_VIABLE")
          || status.equals("RUN_ERROR");
    }

    @Override
    public String toString() {
      return method + Known.BETWEEN + code + Known.BETWEEN + change;
    }

    /** Reads a report, if it is there; the lines are those of the sources under a root. */
    static List<Mutation> readAll(Path report, Path root)
        throws IOException, SAXException, ParserConfigurationException {
      if (!Files.exists(report)) {
        return List.of();
      }
      var document =
          DocumentBuilderFactory.newDefaultInstance().newDocumentBuilder().parse(report.toFile());
      List<Mutation> all = new ArrayList<>();
      var nodes = document.getElementsByTagName("mutation");
      for (int i = 0; i < nodes.getLength(); i++) {
        all.add(of((Element) nodes.item(i), root));
      }
      return all;
    }

    private static Mutation of(Element mutation, Path root) throws IOException {
      String type = text(mutation, "mutatedClass");
      String simple = type.substring(type.lastIndexOf('.') + 1);
      String file = type.replace('.', '/').replaceFirst("\\$.*", "") + ".java";
      String code = line(root, file, Integer.parseInt(text(mutation, "lineNumber")));
      String method = simple + "." + text(mutation, "mutatedMethod");
      return new Mutation(
          method, code, text(mutation, "description"), mutation.getAttribute("status"));
    }

    private static String text(Element mutation, String name) {
      return mutation.getElementsByTagName(name).item(0).getTextContent();
    }

    private static String line(Path root, String file, int number) throws IOException {
      for (String module : List.of("cuvette-core", "cuvette-ffm")) {
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
   * or any end of a change.
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
      return method.equals(mutation.method())
          && (code.equals("*") || code.equals(mutation.code()))
          && (change.equals("*")
              || change.equals(mutation.change())
              || (change.endsWith("*")
                  && mutation.change().startsWith(change.substring(0, change.length() - 1))));
    }
  }
}
