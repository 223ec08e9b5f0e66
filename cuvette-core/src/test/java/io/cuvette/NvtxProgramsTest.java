package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cuvette.driver.NvtxAttributes;
import io.cuvette.driver.NvtxCalls;
import io.cuvette.internal.index.Seeds;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.SplittableRandom;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Random marks, names and ranges: each who listens is told all of them, and nobody else any. */
@Timeout(60)
class NvtxProgramsTest {
  private static final int SEEDS = 10;
  private static final int STEPS = 60;

  @TempDir private Path folder;

  /** What one domain tells a tool and the recorder, and what it should. */
  private static final class Program {
    private final SplittableRandom random;
    private final String name;
    private final boolean hasTool;
    private final boolean isVirtual;
    private final NvtxDomain domain;
    private final List<String> told = new ArrayList<>();
    private final List<String> toTell = new ArrayList<>();
    private final List<String> toRecord = new ArrayList<>();

    /** The text and the number of each range of the thread, and of each other one. */
    private final Deque<String> open = new ArrayDeque<>();

    private final Deque<Integer> numbers = new ArrayDeque<>();
    private final List<NvtxRange> started = new ArrayList<>();
    private final List<String> startedTexts = new ArrayList<>();
    private final List<Integer> startedNumbers = new ArrayList<>();
    private int texts;

    Program(SplittableRandom random, String name, boolean hasTool, boolean isVirtual) {
      this.random = random;
      this.name = name;
      this.hasTool = hasTool;
      this.isVirtual = isVirtual;
      this.domain = new NvtxDomain(name, hasTool ? tool() : null);
      if (!name.isEmpty()) {
        tell("domainCreate[" + name + "]");
      }
    }

    private NvtxCalls tool() {
      return (NvtxCalls)
          Proxy.newProxyInstance(
              NvtxCalls.class.getClassLoader(),
              new Class<?>[] {NvtxCalls.class},
              (_, method, arguments) -> {
                told.add(
                    method.getName()
                        + Arrays.stream(arguments)
                            .map(each ->
                                each instanceof NvtxAttributes of ? of.message() : each.toString())
                            .toList());
                return method.getReturnType() == long.class ? (Object) (long) told.size() : null;
              });
    }

    private int tell(String what) {
      if (hasTool) {
        toTell.add(what);
      }
      return toTell.size();
    }

    private long handle() {
      return hasTool && !name.isEmpty() ? 1 : 0;
    }

    private String text() {
      return name + (hasTool ? " tool" : " none") + (isVirtual ? " virtual " : " ") + texts++;
    }

    void run() {
      for (int i = 0; i < STEPS; i++) {
        step(random.nextInt(10));
      }
      while (!open.isEmpty()) {
        pop();
      }
      checkPopOfNothing();
      assertThat(told).isEqualTo(toTell);
    }

    private void step(int what) {
      switch (what) {
        case 0 -> mark();
        case 1, 2, 3 -> push();
        case 4, 5 -> pop();
        case 6 -> start();
        case 7 -> end();
        case 8 -> nameOne();
        default -> register();
      }
    }

    private void mark() {
      String text = text();
      if (random.nextBoolean()) {
        domain.mark(text);
      } else {
        domain.mark(NvtxEvent.of(text));
      }
      tell("domainMark[" + handle() + ", " + text + "]");
      toRecord.add("Mark of " + name + ": " + text);
    }

    private void push() {
      String text = text();
      int around =
          random.nextBoolean() ? domain.rangePush(text) : domain.rangePush(NvtxEvent.of(text));
      assertThat(around).isEqualTo(open.size());
      String call = isVirtual ? "domainRangeStart[" : "domainRangePush[";
      numbers.push(tell(call + handle() + ", " + text + "]"));
      open.push("Range of " + name + ": " + text + " depth " + open.size());
    }

    private void pop() {
      if (open.isEmpty()) {
        checkPopOfNothing();
        return;
      }
      toRecord.add(open.pop());
      int number = numbers.pop();
      assertThat(domain.rangePop()).isEqualTo(open.size());
      tell(
          isVirtual
              ? "domainRangeEnd[" + handle() + ", " + number + "]"
              : "domainRangePop[" + handle() + "]");
    }

    private void checkPopOfNothing() {
      assertThatIllegalStateException()
          .isThrownBy(domain::rangePop)
          .withMessage(
              "rangePop: "
                  + Thread.currentThread()
                  + " has no open range"
                  + (name.isEmpty() ? "" : " in domain " + name)
                  + " (expected: a rangePush of this thread before)");
    }

    private void start() {
      String text = text();
      started.add(
          random.nextBoolean() ? domain.rangeStart(text) : domain.rangeStart(NvtxEvent.of(text)));
      startedNumbers.add(tell("domainRangeStart[" + handle() + ", " + text + "]"));
      startedTexts.add("Range of " + name + ": " + text + " depth -1");
    }

    /** Any that was started: it may have ended before. */
    private void end() {
      if (started.isEmpty()) {
        return;
      }
      int which = random.nextInt(started.size());
      NvtxRange range = started.get(which);
      if (range.isOpen()) {
        tell("domainRangeEnd[" + handle() + ", " + startedNumbers.get(which) + "]");
        toRecord.add(startedTexts.get(which));
      }
      range.close();
      assertThat(range.isOpen()).isFalse();
    }

    private void nameOne() {
      int number = random.nextInt(1, 1000);
      String text = text();
      NvtxCategory _ = domain.category(number, text);
      tell("domainNameCategory[" + handle() + ", " + number + ", " + text + "]");
      String of = name.isEmpty() ? "" : " of " + name;
      toRecord.add("category " + number + of + ": " + text);
    }

    private void register() {
      String text = text();
      NvtxString _ = domain.register(text + "\0");
      tell("domainRegisterString[" + handle() + ", " + text + "\u2400]");
    }
  }

  private static void run(Program program) {
    AtomicFailure failure = new AtomicFailure();
    Thread thread =
        (program.isVirtual ? Thread.ofVirtual() : Thread.ofPlatform())
            .start(() -> failure.keep(program::run));
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
    failure.check();
  }

  /** What a thread threw. */
  private static final class AtomicFailure {
    private volatile @Nullable Throwable thrown;

    void keep(Runnable run) {
      try {
        run.run();
      } catch (RuntimeException | Error e) {
        thrown = e;
      }
    }

    void check() {
      if (thrown != null) {
        throw new AssertionError(thrown);
      }
    }
  }

  private static List<Program> all(SplittableRandom random) {
    List<Program> all = new ArrayList<>();
    for (String name : List.of("", "tests")) {
      for (boolean hasTool : new boolean[] {false, true}) {
        for (boolean isVirtual : new boolean[] {false, true}) {
          all.add(new Program(random.split(), name, hasTool, isVirtual));
        }
      }
    }
    return all;
  }

  @Test
  void tool_isToldOfAll_whetherOrNotItIsRecorded() throws Exception {
    Seeds.forEach(SEEDS, random -> all(random).forEach(NvtxProgramsTest::run));
    Path file = folder.resolve("programs.jfr");
    List<String> expected = new ArrayList<>();
    try (Recording recording = new Recording()) {
      recording.enable("io.cuvette.NvtxMark");
      recording.enable("io.cuvette.NvtxRange").withoutThreshold();
      recording.enable("io.cuvette.NvtxName");
      recording.start();
      Seeds.forEach(
          1,
          random ->
              all(random)
                  .forEach(program -> {
                    run(program);
                    expected.addAll(program.toRecord);
                  }));
      recording.stop();
      recording.dump(file);
    }
    assertThat(RecordingFile.readAllEvents(file).stream().map(NvtxProgramsTest::shown))
        .containsExactlyInAnyOrderElementsOf(expected);
  }

  private static String shown(RecordedEvent event) {
    String type = event.getEventType().getName().replace("io.cuvette.Nvtx", "");
    if (type.equals("Name")) {
      return event.getString("named") + ": " + event.getString("name");
    }
    String text = type + " of " + event.getString("domain") + ": " + event.getString("message");
    return type.equals("Mark") ? text : text + " depth " + event.getInt("depth");
  }
}
