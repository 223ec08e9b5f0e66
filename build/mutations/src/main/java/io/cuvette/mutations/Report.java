package io.cuvette.mutations;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.pitest.mutationtest.engine.MutationDetails;
import org.w3c.dom.Element;
import org.xml.sax.SAXException;

/** What became of changes, as a file. Thread-safe. */
final class Report {
  /** A test that took too long on a busy machine says little. */
  private static final Set<Status> TRY_AGAIN =
      Set.of(Status.SURVIVED, Status.NO_COVERAGE, Status.TIMED_OUT);

  /** What became of a change. */
  enum Status {
    /** A test failed, or ended the JVM. */
    KILLED,
    /** A test took far longer than without it. */
    TIMED_OUT,
    /** No test that ran failed. */
    SURVIVED,
    /** No test reaches the line. */
    NO_COVERAGE,
    /** No class can look so. */
    NON_VIABLE
  }

  private final Lock lock = new ReentrantLock();
  private final List<String> elements = new ArrayList<>();

  void add(MutationDetails change, Status status, String why) {
    String element =
        ("<mutation status='%s'><mutatedClass>%s</mutatedClass><mutatedMethod>%s</mutatedMethod>"
                + "<lineNumber>%d</lineNumber><description>%s</description><change>%s</change>"
                + "<why>%s</why></mutation>")
            .formatted(
                status,
                change.getClassName().asJavaName(),
                escaped(change.getMethod()),
                change.getLineNumber(),
                escaped(change.getDescription()),
                escaped(Changes.text(change.getId())),
                escaped(why));
    lock.lock();
    try {
      elements.add(element);
    } finally {
      lock.unlock();
    }
  }

  /** Writes what there is so far, in place of an older file. */
  void write(Path file) throws IOException {
    Files.createDirectories(file.toAbsolutePath().getParent());
    lock.lock();
    try {
      List<String> lines = new ArrayList<>(elements);
      lines.addFirst("<mutations>");
      lines.add("</mutations>");
      Files.write(file, lines);
    } finally {
      lock.unlock();
    }
  }

  /** The changes of a report that no test failed for, by their text. */
  static Set<String> lived(Path report) throws IOException {
    try {
      var document =
          DocumentBuilderFactory.newDefaultInstance().newDocumentBuilder().parse(report.toFile());
      var nodes = document.getElementsByTagName("mutation");
      Set<String> lived = new HashSet<>();
      for (int i = 0; i < nodes.getLength(); i++) {
        Element each = (Element) nodes.item(i);
        if (TRY_AGAIN.contains(Status.valueOf(each.getAttribute("status")))) {
          lived.add(each.getElementsByTagName("change").item(0).getTextContent());
        }
      }
      return lived;
    } catch (SAXException | ParserConfigurationException e) {
      throw new IOException(report + ": no report of mutations", e);
    }
  }

  private static String escaped(String text) {
    StringBuilder plain = new StringBuilder();
    text.codePoints().filter(each -> each >= ' ').forEach(plain::appendCodePoint);
    return plain.toString().replace("&", "&amp;").replace("<", "&lt;");
  }
}
