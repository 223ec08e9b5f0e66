package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;

import io.cuvette.driver.NvtxAttributes;
import io.cuvette.driver.NvtxCalls;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.observe.Observed;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Marks and ranges as a tool and the flight recorder are told of them, and what is refused. */
class NvtxDomainTest {
  private static final int MANY = 100_000;

  private final List<String> told = Collections.synchronizedList(new ArrayList<>());

  /** A tool that notes what it is told; handles are the number of the note. */
  private final NvtxCalls tool =
      (NvtxCalls)
          Proxy.newProxyInstance(
              NvtxCalls.class.getClassLoader(),
              new Class<?>[] {NvtxCalls.class},
              (_, method, arguments) -> {
                told.add(method.getName() + (arguments == null ? "[]" : text(arguments)));
                return method.getReturnType() == long.class ? (Object) (long) told.size() : null;
              });

  @TempDir private Path folder;

  private static String text(Object... arguments) {
    return Arrays.stream(arguments)
        .map(each -> each instanceof NvtxAttributes shown ? shown.message() : each.toString())
        .toList()
        .toString();
  }

  private NvtxDomain domain() {
    NvtxDomain domain = new NvtxDomain("tests", tool);
    told.clear();
    return domain;
  }

  @Test
  void attributes_areWhatTheEventHas() {
    NvtxDomain domain = domain();
    NvtxString text = domain.register("step");
    NvtxEvent event = NvtxEvent.of(text).color(8).category(domain.category(3, "io")).payload(7);
    assertThat(event.attributes())
        .isEqualTo(new NvtxAttributes("step", 1, 3, true, 0xFFFF7F00, NvtxAttributes.INT64, 7));
    assertThat(event.color(Nvtx.NO_COLOR).payload(1.5).attributes())
        .isEqualTo(
            new NvtxAttributes(
                "step", 1, 3, false, 0, NvtxAttributes.DOUBLE, Double.doubleToLongBits(1.5)));
    assertThat(NvtxEvent.of("a\0b").colorC(0).attributes())
        .isEqualTo(new NvtxAttributes("a\u2400b", 0, 0, true, 0, NvtxAttributes.NO_PAYLOAD, 0));
    assertThat(NvtxEvent.of("\0").attributes().message()).isEqualTo("\u2400");
  }

  @Test
  void colors_areThoseOfCupy() {
    assertThat(List.of(Nvtx.argb(0), Nvtx.argb(5), Nvtx.argb(9)))
        .containsExactly(0xFF00FF00, 0xFF00FF7F, 0xFF7F7F7F);
  }

  @ParameterizedTest
  @ValueSource(ints = {-2, 10, Integer.MAX_VALUE, Integer.MIN_VALUE})
  void colorThatIsNone_isRefused(int color) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Nvtx.mark("text", color))
        .withMessageStartingWith("colorId: " + color + " (expected: 0 to 9, or -1 for none");
    assertThatIllegalArgumentException().isThrownBy(() -> Nvtx.rangePush("text", color));
    assertThatIllegalArgumentException().isThrownBy(() -> Nvtx.argb(color));
    assertThatIllegalStateException().as("nothing was pushed").isThrownBy(Nvtx::rangePop);
  }

  @Test
  void noColor_hasNoNumber_andCategoriesHaveTheirNames() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Nvtx.argb(-1))
        .withMessage("colorId: -1 (expected: 0 to 9)");
    assertThat(new NvtxCategory(domain(), 3, "copies").name()).isEqualTo("copies");
  }

  @Test
  void null_isRefusedByName() {
    NvtxDomain domain = domain();
    assertThatNullPointerException()
        .isThrownBy(() -> domain.mark((String) null))
        .withMessage("message");
    assertThatNullPointerException().isThrownBy(() -> Nvtx.rangePush(null)).withMessage("message");
    assertThatNullPointerException()
        .isThrownBy(() -> domain.rangePush((NvtxEvent) null))
        .withMessage("event");
    assertThatNullPointerException().isThrownBy(() -> domain.register(null)).withMessage("text");
    assertThatNullPointerException().isThrownBy(() -> Nvtx.rangeEnd(null)).withMessage("range");
    assertThat(told).isEmpty();
  }

  @Test
  void namesAndNumbers_areChecked() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Nvtx.domain(" "))
        .withMessage("name: ' ' (expected: not blank; Nvtx.defaultDomain() has no name)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> domain().category(0, "zero"))
        .withMessage("number: 0 (expected: 1 to 2147483647)");
    assertThat(Nvtx.domain("same")).isSameAs(Nvtx.domain("same"));
  }

  @Test
  void textAndCategoryOfAnotherDomain_areRefused() {
    NvtxDomain domain = domain();
    NvtxDomain other = new NvtxDomain("other", tool);
    NvtxEvent text = NvtxEvent.of(other.register("text"));
    NvtxEvent category = NvtxEvent.of("text").category(other.category(1, "one"));
    told.clear();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> domain.mark(text))
        .withMessage("text: of domain other (expected: of domain tests)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> domain.rangePush(category))
        .withMessage("category: of domain other (expected: of domain tests)");
    assertThatIllegalArgumentException().isThrownBy(() -> domain.rangeStart(category));
    assertThat(told).isEmpty();
    assertThatIllegalStateException().isThrownBy(domain::rangePop);
  }

  @Test
  void popWithoutPush_isAnError_andTellsTheToolNothing() {
    NvtxDomain domain = domain();
    assertThatIllegalStateException()
        .isThrownBy(domain::rangePop)
        .withMessage(
            "rangePop: %s has no open range in domain tests (expected: a rangePush of this thread"
                    .formatted(Thread.currentThread())
                + " before)");
    assertThat(told).isEmpty();
    assertThat(domain.rangePush("one")).isZero();
    assertThat(domain.rangePop()).isZero();
    assertThatIllegalStateException().isThrownBy(domain::rangePop);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void hundredThousandRanges_canBeOpen(boolean listening) {
    NvtxDomain domain = listening ? domain() : new NvtxDomain("tests", null);
    for (int i = 0; i < MANY; i++) {
      assertThat(domain.rangePush("range")).isEqualTo(i);
    }
    List<NvtxRange> started = new ArrayList<>();
    for (int i = 0; i < MANY; i++) {
      started.add(domain.rangeStart("range"));
    }
    for (int i = MANY - 1; i >= 0; i--) {
      assertThat(domain.rangePop()).isEqualTo(i);
    }
    started.forEach(NvtxRange::close);
    assertThatIllegalStateException().isThrownBy(domain::rangePop);
    assertThat(told).hasSize(listening ? 4 * MANY : 0);
  }

  @Test
  void rangesOfEveryForm_sayHowManyAreAround_andAreOpen() {
    NvtxDomain domain = new NvtxDomain("tests", null);
    assertThat(domain.rangePush(NvtxEvent.of("a"))).isZero();
    assertThat(domain.rangePush("b")).isOne();
    assertThat(domain.rangePush(NvtxEvent.of("c"))).isEqualTo(2);
    for (int around = 0; around < 6; around += 3) {
      assertThat(List.of(Nvtx.rangePush("a"), Nvtx.rangePush("b", 1), Nvtx.rangePushC("c", 1)))
          .as("of another domain")
          .containsExactly(around, around + 1, around + 2);
    }
    for (int around = 5; around >= 0; around--) {
      assertThat(Nvtx.rangePop()).isEqualTo(around);
    }
    assertThat(List.of(domain.rangePop(), domain.rangePop(), domain.rangePop()))
        .containsExactly(2, 1, 0);
    for (NvtxRange range :
        List.of(
            Nvtx.rangeStart("a"),
            Nvtx.rangeStartC("b", 1),
            domain.rangeStart("c"),
            domain.rangeStart(NvtxEvent.of("d")))) {
      assertThat(range.isOpen()).isTrue();
      Nvtx.rangeEnd(range);
      assertThat(range.isOpen()).isFalse();
    }
  }

  @Test
  void rangeThatWasEnded_isNotEndedAgain() {
    NvtxRange range = domain().rangeStart("range");
    assertThat(range.isOpen()).isTrue();
    range.close();
    range.close();
    Nvtx.rangeEnd(range);
    assertThat(range.isOpen()).isFalse();
    assertThat(told).containsExactly("domainRangeStart[1, range]", "domainRangeEnd[1, 1]");
  }

  /** However deep: there is room for more ranges once there are many. */
  @Test
  void rangesWithinEachOther_endInTurn_howeverMany() {
    NvtxDomain domain = domain();
    for (int depth : new int[] {1, 15, 16, 17, 32, 33, 40}) {
      List<String> expected = new ArrayList<>();
      for (int i = 0; i < depth; i++) {
        assertThat(domain.rangePush("range " + i)).isEqualTo(i);
        expected.add("domainRangePush[1, range %d]".formatted(i));
      }
      for (int i = depth - 1; i >= 0; i--) {
        assertThat(domain.rangePop()).isEqualTo(i);
        expected.add("domainRangePop[1]");
      }
      assertThat(told).as("%d ranges", depth).isEqualTo(expected);
      told.clear();
    }
  }

  @Test
  void threads_haveRangesOfTheirOwn() throws InterruptedException {
    NvtxDomain domain = domain();
    domain.rangePush("main");
    Thread.ofVirtual()
        .start(() -> {
          assertThatIllegalStateException().isThrownBy(domain::rangePop);
          domain.rangePush("virtual");
          domain.rangePop();
        })
        .join();
    domain.rangePop();
    assertThat(told)
        .containsExactly(
            "domainRangePush[1, main]",
            "domainRangeStart[1, virtual]",
            "domainRangeEnd[1, 2]",
            "domainRangePop[1]");
  }

  @Test
  void recorder_isToldOfEach() throws Exception {
    NvtxDomain domain = new NvtxDomain("recorded", null);
    Path file = folder.resolve("events.jfr");
    try (Recording recording = new Recording()) {
      recording.enable("io.cuvette.NvtxMark");
      recording.enable("io.cuvette.NvtxRange").withoutThreshold();
      recording.enable("io.cuvette.NvtxName");
      recording.start();
      domain.mark(NvtxEvent.of("mark").color(3).payload(5).category(domain.category(2, "two")));
      domain.mark(NvtxEvent.of("half").payload(0.5));
      domain.rangePush("outer");
      domain.rangePush(NvtxEvent.of("inner").payload(-1));
      domain.rangePop();
      domain.rangePop();
      domain.rangeStart(NvtxEvent.of("free").payload(-2.5)).close();
      Nvtx.mark("plain");
      Nvtx.mark("green", 0);
      Nvtx.markC("argb", 0x01020304);
      Nvtx.rangePush("a");
      Nvtx.rangePush("b", 1);
      Nvtx.rangePushC("c", 0x05060708);
      IntStream.range(0, 3).forEach(_ -> Nvtx.rangePop());
      Nvtx.rangeStart("d").close();
      Nvtx.rangeStartC("e", 0x090A0B0C).close();
      recording.stop();
      recording.dump(file);
    }
    List<RecordedEvent> events = RecordingFile.readAllEvents(file);
    assertThat(events.stream().map(NvtxDomainTest::shown))
        .containsExactlyInAnyOrder(
            "Name category 2 of recorded: two",
            "Mark recorded: mark 2 FFFF0000 5",
            "Mark recorded: half 0  0.5",
            "Range recorded: inner 0  -1 depth 1",
            "Range recorded: outer 0   depth 0",
            "Range recorded: free 0  -2.5 depth -1",
            "Mark : plain 0  ",
            "Mark : green 0 FF00FF00 ",
            "Mark : argb 0 01020304 ",
            "Range : a 0   depth 0",
            "Range : b 0 FF007FFF  depth 1",
            "Range : c 0 05060708  depth 2",
            "Range : d 0   depth -1",
            "Range : e 0 090A0B0C  depth -1");
    assertThat(start(events, "outer")).isBeforeOrEqualTo(start(events, "inner"));
  }

  private static Instant start(List<RecordedEvent> events, String range) {
    return events.stream()
        .filter(event -> shown(event).contains(range))
        .map(RecordedEvent::getStartTime)
        .findFirst()
        .orElseThrow();
  }

  /** It may cost something to make. */
  @Test
  void whatNobodyListensTo_isNotAskedFor() {
    Observed observed = new Observed("tests", null);
    observed.mark(() -> fail("a mark"));
    assertThat(observed.push(() -> fail("a range"))).isZero();
    assertThat(observed.pop()).isZero();
    assertThat(observed.start(() -> fail("a range"))).isNull();
    Observed.named(() -> fail("a name"), "name");
  }

  private static String shown(RecordedEvent event) {
    String type = event.getEventType().getName().replace("io.cuvette.Nvtx", "");
    if (type.equals("Name")) {
      return type + " " + event.getString("named") + ": " + event.getString("name");
    }
    String text =
        "%s %s: %s %d %s %s"
            .formatted(
                type,
                event.getString("domain"),
                event.getString("message"),
                event.getInt("category"),
                event.getString("color"),
                event.getString("payload"));
    return type.equals("Mark") ? text : text + " depth " + event.getInt("depth");
  }

  @Test
  void recorderThatStopsInBetween_doesNoHarm() {
    NvtxDomain domain = new NvtxDomain("recorded", null);
    try (Recording recording = new Recording()) {
      recording.enable("io.cuvette.NvtxRange").withoutThreshold();
      domain.rangePush("before");
      recording.start();
      domain.rangePush("within");
      recording.stop();
    }
    assertThat(domain.rangePop()).isOne();
    assertThat(domain.rangePop()).isZero();
  }

  /** A tool knows them all. */
  @Test
  void rangesThatBeganBeforeTheRecording_areNoPartOfIt() throws Exception {
    NvtxDomain domain = domain();
    Path file = folder.resolve("ranges.jfr");
    domain.rangePush("before");
    NvtxRange early = domain.rangeStart("early");
    try (Recording recording = new Recording()) {
      recording.enable("io.cuvette.NvtxRange").withoutThreshold();
      recording.start();
      domain.rangePush("within");
      domain.rangeStart("free").close();
      domain.rangePop();
      early.close();
      domain.rangePop();
      recording.stop();
      recording.dump(file);
    }
    assertThat(RecordingFile.readAllEvents(file).stream().map(NvtxDomainTest::shown))
        .containsExactlyInAnyOrder(
            "Range tests: within 0   depth 1", "Range tests: free 0   depth -1");
    assertThat(told).hasSize(8);
  }

  @Test
  void rangesThatLastLongEnough_areRecorded() throws Exception {
    NvtxDomain domain = new NvtxDomain("recorded", null);
    for (Duration threshold : List.of(Duration.ofNanos(1), Duration.ofHours(1))) {
      Path file = folder.resolve(threshold + ".jfr");
      try (Recording recording = new Recording()) {
        recording.enable("io.cuvette.NvtxRange").withThreshold(threshold);
        recording.start();
        domain.rangePush("pushed");
        NvtxRange started = domain.rangeStart("started");
        Thread.sleep(1);
        started.close();
        domain.rangePop();
        recording.stop();
        recording.dump(file);
      }
      assertThat(RecordingFile.readAllEvents(file)).hasSize(threshold.getNano() == 1 ? 2 : 0);
    }
  }

  @Test
  void rangeThatTheToolDoesNotTake_isNotOpen() {
    AtomicBoolean fails = new AtomicBoolean();
    NvtxDomain domain =
        new NvtxDomain(
            "tests",
            (NvtxCalls)
                Proxy.newProxyInstance(
                    NvtxCalls.class.getClassLoader(),
                    new Class<?>[] {NvtxCalls.class},
                    (_, method, _) -> {
                      if (fails.get()) {
                        throw new UnsupportedOperationException(method.getName());
                      }
                      return method.getReturnType() == long.class ? (Object) 1L : null;
                    }));
    domain.rangePush("outer");
    fails.set(true);
    assertThatThrownBy(() -> domain.rangePush("inner")).hasMessage("domainRangePush");
    assertThatThrownBy(() -> domain.rangeStart("free")).hasMessage("domainRangeStart");
    fails.set(false);
    assertThat(domain.rangePop()).isZero();
    assertThatIllegalStateException().isThrownBy(domain::rangePop);
  }

  @Test
  void library_isThereIfAToolListens() {
    assertThat(Nvtx.library().isPresent()).isEqualTo(Nvtx.isListening());
  }

  @Test
  void text_isTheNameOfADomain() {
    assertThat(Nvtx.defaultDomain()).hasToString("default domain");
    assertThat(Nvtx.domain("of a test")).hasToString("domain of a test");
    assertThat(Nvtx.domain("of a test")).isSameAs(Nvtx.domain("of a test"));
  }

  /** Without a tool as well, and on a device that is not simulated. */
  @Test
  void names_areForWhatIsOpen() {
    for (boolean simulated : new boolean[] {true, false}) {
      CudaOptions options =
          CudaOptions.simulated()
              .withDecorator(driver ->
                  DriverProxy.of((method, arguments) ->
                      method.getName().equals("isSimulated")
                          ? (Object) simulated
                          : DriverProxy.forward(driver, method, arguments)));
      try (Cuda cuda = Cuda.open(options)) {
        CudaStream stream = cuda.device(0).createStream();
        assertThat(cuda.isSimulated()).isEqualTo(simulated);
        Nvtx.name(cuda.device(0), "device");
        Nvtx.name(stream, "stream");
        stream.close();
        assertThatIllegalStateException().isThrownBy(() -> Nvtx.name(stream, "stream"));
      }
    }
  }

  @Test
  void recorder_isToldTheNamesOfDevicesAndStreams() throws Exception {
    Path file = folder.resolve("names.jfr");
    List<String> expected = new ArrayList<>();
    try (Recording recording = new Recording();
        Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      recording.enable("io.cuvette.NvtxName");
      recording.start();
      CudaStream stream = cuda.device(0).createStream();
      Nvtx.name(cuda.device(0), "first");
      Nvtx.name(stream, "copies");
      expected.add("Name " + cuda.device(0) + ": first");
      expected.add("Name " + stream + ": copies");
      recording.stop();
      recording.dump(file);
    }
    assertThat(RecordingFile.readAllEvents(file).stream().map(NvtxDomainTest::shown))
        .containsAll(expected);
  }
}
