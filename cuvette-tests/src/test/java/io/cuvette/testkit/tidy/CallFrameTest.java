package io.cuvette.testkit.tidy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Nothing that may wait stands inside a call of the driver. */
class CallFrameTest {
  private static final String DRIVER = "cuvette-ffm/src/main/java/";

  @Test
  void driver_callsNothingInsideItsCalls() {
    Optional<Path> root = Repository.root();
    assumeTrue(root.isPresent(), "the sources are not here");
    assertThat(Repository.read(root.orElseThrow()).tailMap(DRIVER).headMap(DRIVER + "~"))
        .hasSizeGreaterThan(30)
        .allSatisfy((path, text) -> assertThat(CallFrameRule.findings(text)).as(path).isEmpty());
  }

  @ParameterizedTest
  @CsvSource({
    "'status = (int) A.B.invokeExact(frame.out, list.address()); // f()', 0",
    "'frame.enter(context);', 0",
    "'PoolEnds.HERE.beginMaking();', 1",
    "'long number = HostFunctions.add(self(), function);', 2"
  })
  void callWrittenOut_holdsTheFunctionAlone(String inside, int expected) {
    String text = "void m() {\nCallFrame frame = enter(device);\n%s\nframe.leave();\n}";
    assertThat(CallFrameRule.findings(text.formatted(inside))).hasSize(expected);
  }

  @ParameterizedTest
  @CsvSource({
    "'frame -> (int) A.invokeExact(frame.out, frame.location(1, 2)), enter()', 0",
    "'_ -> (int) A.invokeExact(handle), entry().enter()', 0",
    "'frame -> (int) A.invokeExact(frame.out, contexts().handle(device)), enter()', 2",
    "'NEW ? frame -> (int) A.invokeExact(1L) : _ -> (int) B.invokeExact(f()), enter()', 1"
  })
  void functionOfACall_isTheCallAlone(String arguments, int expected) {
    String text = "void m() {\nCall.of(\"a()\").run(%s);\n}";
    assertThat(CallFrameRule.findings(text.formatted(arguments))).hasSize(expected);
  }
}
