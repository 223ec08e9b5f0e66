package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.StringWriter;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Programs that compile as they stand on a page, with a Cuda and a stream at hand. */
class GuideCompilesTest {
  private static final Pattern PROGRAM = Pattern.compile("(?s)```java\\n(.*?)```");

  /** What a program may do without declaring it. */
  private static final String BEFORE =
      """
      import static org.assertj.core.api.Assertions.*;
      import io.cuvette.*;
      import java.lang.foreign.*;
      import java.util.*;
      import java.util.concurrent.*;

      class Program%d {
        static Cuda cuda;
        static CudaStream stream;
      """;

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(strings = {"graphs.md", "pinned.md"})
  void everyProgramOfThePage_compilesAlone(String page) {
    Path root = DocumentFiles.root().orElse(null);
    assumeTrue(root != null, "the sources are not here");
    List<String> programs =
        PROGRAM
            .matcher(DocumentFiles.read(root.resolve("docs/guide").resolve(page)))
            .results()
            .map(match -> match.group(1))
            .toList();
    assertThat(programs).hasSizeGreaterThan(4);
    for (int i = 0; i < programs.size(); i++) {
      String body = programs.get(i);
      boolean isMethod = body.strip().startsWith("static ");
      String code = isMethod ? body : "void run() throws Exception {\n" + body + "}\n";
      assertThat(failures("Program" + i, BEFORE.formatted(i) + code + "}\n")).as(body).isEmpty();
    }
  }

  private String failures(String name, String text) {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    JavaFileObject source =
        new SimpleJavaFileObject(
            URI.create("string:///" + name + ".java"), JavaFileObject.Kind.SOURCE) {
          @Override
          public CharSequence getCharContent(boolean ignored) {
            return text;
          }
        };
    String path =
        Stream.of(System.getProperty("java.class.path"), System.getProperty("jdk.module.path"))
            .filter(part -> part != null && !part.isEmpty())
            .collect(Collectors.joining(System.getProperty("path.separator")));
    StringWriter said = new StringWriter();
    List<String> options = List.of("-proc:none", "-nowarn", "-d", folder.toString(), "-cp", path);
    boolean done = compiler.getTask(said, null, null, options, null, List.of(source)).call();
    return done ? "" : said.toString();
  }
}
