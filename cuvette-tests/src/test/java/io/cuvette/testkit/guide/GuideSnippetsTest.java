package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What the guide says of itself: its programs are tests, and its links lead somewhere. */
class GuideSnippetsTest {
  private static final Pattern PROGRAM = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
  private static final Pattern VERSION = Pattern.compile("<version>(.*?)</version>");
  private static final Pattern LINK = Pattern.compile("]\\(([^)#:]+)(#[^)]*)?\\)");

  /** Where they are. */
  private static final List<String> PROGRAMS =
      List.of(
          "cuvette-tests/src/test/java/io/cuvette/testkit/guide",
          "cuvette-array/src/test/java/io/cuvette/array/guide",
          "cuvette-arrow/src/test/java/io/cuvette/arrow/guide");

  private static List<Path> pages = List.of();
  private static String programs = "";

  @BeforeAll
  static void readPages() throws IOException {
    Path root = DocumentFiles.root().orElse(null);
    assumeTrue(root != null, "the sources are not here");
    pages = DocumentFiles.pages(root);
    programs =
        PROGRAMS.stream()
            .map(root::resolve)
            .flatMap(folder -> DocumentFiles.files(folder).stream())
            .filter(file -> file.toString().endsWith(".java"))
            .map(DocumentFiles::read)
            .map(GuideSnippetsTest::flat)
            .collect(Collectors.joining());
  }

  /** Without indentation, empty lines and imports. */
  private static String flat(String java) {
    return java.lines()
        .map(String::strip)
        .filter(line -> !line.isEmpty() && !line.startsWith("import "))
        .collect(Collectors.joining("\n", "\n", "\n"));
  }

  @Test
  void everyProgramOfADocument_isPartOfATest() {
    List<String> missing = new ArrayList<>();
    for (Path page : pages) {
      Matcher program = PROGRAM.matcher(DocumentFiles.read(page));
      while (program.find()) {
        if (!programs.contains(flat(program.group(1)))) {
          missing.add(page + ":\n" + program.group(1));
        }
      }
    }
    assertThat(missing).isEmpty();
  }

  /** The first version in the build is its own. */
  @Test
  void readme_namesTheVersionThatIsBuilt() {
    Matcher version =
        VERSION.matcher(DocumentFiles.read(pages.getFirst().resolveSibling("pom.xml")));
    assertThat(version.find()).isTrue();
    assertThat(DocumentFiles.read(pages.getFirst()))
        .contains("`io.cuvette:cuvette-core:" + version.group(1) + "`");
  }

  @Test
  void everyLink_leadsToAFile() {
    List<String> broken = new ArrayList<>();
    for (Path page : pages) {
      Matcher link = LINK.matcher(DocumentFiles.read(page));
      while (link.find()) {
        if (!Files.exists(page.resolveSibling(link.group(1)))) {
          broken.add(page + ": " + link.group(1));
        }
      }
    }
    assertThat(broken).isEmpty();
  }
}
