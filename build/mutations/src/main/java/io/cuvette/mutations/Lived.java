package io.cuvette.mutations;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Predicate;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.pitest.mutationtest.engine.MutationDetails;
import org.w3c.dom.Element;
import org.xml.sax.SAXException;

/**
 * The mutations that no test failed for in an earlier run, to try them with others. A test that
 * took too long on a busy machine says little, so that these are tried again as well. Immutable.
 */
final class Lived implements Predicate<MutationDetails> {
  private static final Set<String> STATES = Set.of("SURVIVED", "NO_COVERAGE", "TIMED_OUT");

  private final Set<String> mutations = new HashSet<>();

  /** Takes what PIT reported. */
  Lived(Path report) {
    try {
      var document =
          DocumentBuilderFactory.newDefaultInstance().newDocumentBuilder().parse(report.toFile());
      var nodes = document.getElementsByTagName("mutation");
      for (int i = 0; i < nodes.getLength(); i++) {
        Element each = (Element) nodes.item(i);
        if (STATES.contains(each.getAttribute("status"))) {
          mutations.add(key(each));
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (SAXException | ParserConfigurationException e) {
      throw new IllegalArgumentException(report + ": no report of PIT", e);
    }
  }

  @Override
  public boolean test(MutationDetails mutation) {
    return mutations.contains(key(mutation));
  }

  private static String key(MutationDetails mutation) {
    var location = mutation.getId().getLocation();
    return String.join(
        " ",
        location.getClassName().asJavaName(),
        location.getMethodName() + location.getMethodDesc(),
        mutation.getMutator(),
        String.valueOf(mutation.getFirstIndex()));
  }

  private static String key(Element mutation) {
    return String.join(
        " ",
        text(mutation, "mutatedClass"),
        text(mutation, "mutatedMethod") + text(mutation, "methodDescription"),
        text(mutation, "mutator"),
        text(mutation, "index"));
  }

  private static String text(Element mutation, String name) {
    return mutation.getElementsByTagName(name).item(0).getTextContent();
  }
}
