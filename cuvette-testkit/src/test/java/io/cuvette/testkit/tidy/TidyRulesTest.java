package io.cuvette.testkit.tidy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Each rule finds what it is there to find, and nothing in what is right. */
class TidyRulesTest {
  private static final String CORE = "cuvette-core/src/main/java/io/cuvette/";
  private static final String FFM = "cuvette-ffm/src/main/java/io/cuvette/ffm/";

  private static List<Finding> findings(Rule rule, String path, String text) {
    return rule.check(SourceFile.of(path, text));
  }

  @Test
  void blanker_keepsCodeAndPlaces() {
    String text = "a /* x\ny */ \"b\\\"//\" '\"' c // d\n\"\"\"\n{ \\\"\"\" }\n\"\"\" e";
    String code = Blanker.blank(text);

    assertThat(code).hasSameSizeAs(text);
    assertThat(code.replaceAll(" +", " ").strip()).isEqualTo("a \n c \n \n \n e");
  }

  @Test
  void size_findsLongFilesAndLongLines() {
    assertThat(findings(new SizeRule(), CORE + "A.java", "\n".repeat(500))).isEmpty();
    assertThat(findings(new SizeRule(), CORE + "A.java", "\n".repeat(501))).hasSize(1);
    assertThat(findings(new SizeRule(), CORE + "A.java", "x".repeat(120))).isEmpty();
    assertThat(findings(new SizeRule(), CORE + "A.java", "x".repeat(121))).hasSize(1);
    assertThat(findings(new SizeRule(), CORE + "A.java", "import a." + "x".repeat(121))).isEmpty();
    assertThat(findings(new SizeRule(), "a.sh", "x".repeat(121))).hasSize(1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "  void m() {",
        "  A(int a) {",
        "  public <T extends B> T m(List<? super T> a, int b) throws X, Y {",
        "  @Override @SuppressWarnings(\"x\")\n  public int m() {",
        "  int m(@A(1) int a,\n      int b)\n      throws X {"
      })
  void methodLength_findsLongMethods(String header) {
    String longest = "class A {\n" + header + "\n    { b(); }" + "\n".repeat(58) + "}\n}";
    String tooLong = "class A {\n" + header + "\n    { b(); }" + "\n".repeat(59) + "}\n}";
    int extra = header.contains("\n      ") ? 2 : 0;

    assertThat(findings(new MethodLengthRule(), CORE + "A.java", tooLong)).hasSize(1);
    if (extra == 0) {
      assertThat(findings(new MethodLengthRule(), CORE + "A.java", longest)).isEmpty();
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "class B {",
        "record B(int a) implements C {",
        "enum B {",
        "A a = new A() {",
        "A a = x -> {",
      })
  void methodLength_isOfMethodsAlone(String header) {
    String text = "class A {\n" + header + "\n".repeat(70) + "}\n}";

    assertThat(findings(new MethodLengthRule(), CORE + "A.java", text)).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({
    "io.cuvette.driver, io.cuvette.sim",
    "io.cuvette.driver, io.cuvette",
    "io.cuvette.internal, io.cuvette.driver",
    "io.cuvette.pool, io.cuvette.driver",
    "io.cuvette.pool, io.cuvette",
    "io.cuvette.sim, io.cuvette",
    "io.cuvette.sim, io.cuvette.instrument",
    "io.cuvette.sim.internal.base, io.cuvette.sim.internal.schedule",
    "io.cuvette.sim.internal.memory, io.cuvette.sim.internal.share",
    "io.cuvette.sim.internal.pool, io.cuvette.sim.internal.machine",
    "io.cuvette.sim.internal.calls, io.cuvette.sim.internal.allocation",
    "io.cuvette.sim.internal.calls, io.cuvette.instrument",
    "io.cuvette.instrument, io.cuvette.sim.internal.machine",
    "io.cuvette, io.cuvette.sim",
    "io.cuvette, io.cuvette.ffm",
    "io.cuvette.ffm, io.cuvette.pool",
    "io.cuvette.cli, io.cuvette.pool",
    "io.cuvette.cli, io.cuvette.ffm",
    "io.cuvette.cli.example, io.cuvette.internal",
    "io.cuvette.testkit, io.cuvette.pool",
    "io.cuvette.testkit, io.cuvette.examples",
    "io.cuvette.examples, io.cuvette.cli",
    "io.cuvette.examples, io.cuvette.pool",
    "io.cuvette.benchmarks, io.cuvette.internal",
  })
  void direction_findsImportsAndQualifiedNames(String from, String to) {
    String path = "m/src/main/java/" + from.replace('.', '/') + "/A.java";

    assertThat(findings(new DirectionRule(), path, "import " + to + ".B;")).hasSize(1);
    assertThat(findings(new DirectionRule(), path, "import static " + to + ".B.c;")).hasSize(1);
    assertThat(findings(new DirectionRule(), path, "{ " + to + ".B.c(); }")).hasSize(1);
    assertThat(findings(new DirectionRule(), path, "/** {@link " + to + ".B} */")).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({
    "io.cuvette, io.cuvette.pool",
    "io.cuvette, io.cuvette.internal",
    "io.cuvette.pool, io.cuvette.internal",
    "io.cuvette.sim, io.cuvette.driver",
    "io.cuvette.sim, io.cuvette.sim.internal.calls",
    "io.cuvette.sim.internal.allocation, io.cuvette.sim.internal.base",
    "io.cuvette.sim.internal.machine, io.cuvette.sim",
    "io.cuvette.ffm, io.cuvette.driver",
    "io.cuvette.cli, io.cuvette.sim",
    "io.cuvette.cli, io.cuvette.cli.example",
    "io.cuvette.cli.example, io.cuvette",
    "io.cuvette.cli, io.cuvette.examples",
    "io.cuvette.examples, io.cuvette.sim",
    "io.cuvette.benchmarks, io.cuvette.pool",
  })
  void direction_allowsTheDesign(String from, String to) {
    String path = "m/src/main/java/" + from.replace('.', '/') + "/A.java";
    String text = "package " + from + ";\nimport " + to + ".B;";

    assertThat(findings(new DirectionRule(), path, text)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "System.out.println();",
        "System.err.println();",
        "Thread.sleep(1);",
        "System.exit(1);",
        "Runtime.getRuntime().halt(1);",
        "synchronized (this) {}",
        "e.printStackTrace();",
        "@SuppressWarnings(\"restricted\")",
        "@SuppressWarnings({\"unchecked\", \"restricted\"})",
      })
  void bannedCall_isFoundInDeliveredCode(String line) {
    assertThat(findings(new BannedCallRule(), CORE + "A.java", "a;\n" + line))
        .extracting(Finding::line)
        .containsExactly(2);
    assertThat(findings(new BannedCallRule(), CORE + "A.java", "// " + line.replace('@', ' ')))
        .isEmpty();
    assertThat(findings(new BannedCallRule(), "m/src/test/java/io/cuvette/A.java", line)).isEmpty();
  }

  @Test
  void bannedCall_isAllowedWhereItBelongs() {
    Rule rule = new BannedCallRule();
    String cli = "cuvette-cli/src/main/java/io/cuvette/cli/";

    assertThat(findings(rule, cli + "Main.java", "System.exit(1);")).isEmpty();
    assertThat(findings(rule, cli + "Output.java", "System.out.flush();")).isEmpty();
    assertThat(findings(rule, cli + "Info.java", "System.out.flush();")).hasSize(1);
    assertThat(findings(rule, FFM + "A.java", "@SuppressWarnings(\"restricted\")")).isEmpty();
    assertThat(findings(rule, FFM + "A.java", "Arena.ofConfined()")).hasSize(1);
    assertThat(findings(rule, CORE + "A.java", "Arena.ofConfined()")).isEmpty();
  }

  @Test
  void catchThrowable_needsInvokeExactOrItsReason() {
    Rule rule = new CatchThrowableRule();
    String bare = "try { a(); }\ncatch (Throwable e) { }";
    String exact = "try { if (b) { c(); } h.invokeExact(1); } catch (Throwable e) { }";
    String second = "try { h.invokeExact(); } catch (A e) { x(); } catch (Throwable e) { }";
    String reason = "try { a(); }\ncatch (Throwable e) { // whatever the user throws\n}";
    String elsewhere = "h.invokeExact(1); try { a(); } catch (Throwable e) { }";

    assertThat(findings(rule, CORE + "A.java", "{" + bare + "}")).hasSize(1);
    assertThat(findings(rule, CORE + "A.java", "{" + elsewhere + "}")).hasSize(1);
    assertThat(Stream.of(exact, second, reason))
        .allSatisfy(
            text -> assertThat(findings(rule, CORE + "A.java", "{" + text + "}")).isEmpty());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"// TO" + "DO later", "a FIX" + "ME", "see /wo" + "rk/x", "'/ro" + "ot/.m2'"})
  void leftover_isFoundInEveryFile(String line) {
    assertThat(findings(new LeftoverRule(), "docs/a.md", line)).hasSize(1);
    assertThat(findings(new LeftoverRule(), CORE + "A.java", line)).hasSize(1);
  }

  @Test
  void leftover_isNoOrdinaryWord() {
    String fine = "network/works the root/x a.work/b /workload $HOME/work/x";

    assertThat(findings(new LeftoverRule(), "docs/a.md", fine)).isEmpty();
    assertThat(findings(new LeftoverRule(), "a.sh", "pip -i https://py" + "pi.org/simple"))
        .hasSize(1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"\npublic final class A {}", "import a.B;\n\n@C(\n    d)\npublic record A() {}"})
  void publicType_withoutDocumentation_isFound(String text) {
    assertThat(findings(new DocumentedRule(), CORE + "A.java", text)).hasSize(1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "/** A. */\n@B\npublic sealed interface A {}",
        "/** A. */\n@B(\n    c = \"d\",\n    e = {f})\npublic class A {}",
        "/// A.\npublic enum A {}",
        "\nfinal class A {}"
      })
  void publicType_withDocumentation_isRight(String text) {
    assertThat(findings(new DocumentedRule(), CORE + "A.java", text)).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({
    "'status = (int) A.B.invokeExact(frame.out, list.address());', 0",
    "'frame.enter(context);', 0",
    "'PoolEnds.HERE.beginMaking();', 1",
    "'long number = HostFunctions.add(self(), function);', 2"
  })
  void callFrame_holdsTheCallAlone(String inside, int expected) {
    String text =
        "class A {\nvoid m() {\nCallFrame frame = enter(device);\n%s\nframe.leave();\n}\n}";

    assertThat(findings(new CallFrameRule(), FFM + "A.java", text.formatted(inside)))
        .hasSize(expected);
    assertThat(findings(new CallFrameRule(), CORE + "A.java", text.formatted(inside))).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({
    "'frame -> (int) A.invokeExact(frame.out, frame.location(1, 2)), enter()', 0",
    "'_ -> (int) A.invokeExact(handle), entry().enter()', 0",
    "'frame -> (int) A.invokeExact(frame.out, contexts().handle(device)), enter()', 2",
    "'NEW ? frame -> (int) A.invokeExact(1L) : _ -> (int) B.invokeExact(f()), enter()', 1"
  })
  void functionOfACall_holdsTheCallAlone(String arguments, int expected) {
    String text = "class A {\nvoid m() {\nCall.of(\"a()\").run(%s);\n}\n}";

    assertThat(findings(new CallFrameRule(), FFM + "A.java", text.formatted(arguments)))
        .hasSize(expected);
  }

  @Test
  void packageInfo_isWanted() {
    SourceFile type = SourceFile.of(CORE + "A.java", "class A {}");
    SourceFile bare = SourceFile.of(CORE + "package-info.java", "package io.cuvette;");
    SourceFile marked =
        SourceFile.of(CORE + "package-info.java", "@NullMarked\npackage io.cuvette;");

    assertThat(PackageRules.nullMarked(List.of(type))).hasSize(1);
    assertThat(PackageRules.nullMarked(List.of(type, bare))).hasSize(1);
    assertThat(PackageRules.nullMarked(List.of(type, marked))).isEmpty();
  }

  @Test
  void services_areSaidTwice() {
    SourceFile module =
        SourceFile.of("m/src/main/java/module-info.java", "module a { provides b.C with d.E; }");
    SourceFile same = SourceFile.of("m/src/main/resources/META-INF/services/b.C", "d.E\n");
    SourceFile other = SourceFile.of("m/src/main/resources/META-INF/services/b.C", "d.F\n");

    assertThat(PackageRules.services(List.of(module, same))).isEmpty();
    assertThat(PackageRules.services(List.of(module))).hasSize(1);
    assertThat(PackageRules.services(List.of(same))).hasSize(1);
    assertThat(PackageRules.services(List.of(module, other))).hasSize(2);
  }
}
