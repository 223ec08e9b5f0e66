package io.cuvette.ffm.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.ffm.FfmDescriptors;
import io.cuvette.ffm.OpenDescriptors;
import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NativeAccess;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.IntSupplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** What opens something says so where this process may open no more. */
@EnabledOnOs(OS.LINUX)
@Tag("simulated") // a driver has threads of its own, which open files as they like
@Isolated("nothing else of the process could open anything meanwhile")
class FullDescriptorsTest {
  private static final int NUMBER_OF_FILES = 7;
  private static final FunctionDescriptor LIMIT =
      FunctionDescriptor.of(Layouts.INT, Layouts.INT, Layouts.SEGMENT);
  private static final MethodHandle GET = NativeAccess.function("getrlimit", LIMIT);
  private static final MethodHandle SET = NativeAccess.function("setrlimit", LIMIT);
  private static final Duration LONG = SocketPair.LONG;

  private final DescriptorCalls calls = new FfmDescriptors();

  @TempDir private Path folder;
  private int round;

  private Path file(String name) {
    return folder.resolve(name + round);
  }

  private String path(String name) {
    return file(name).toString();
  }

  /** Each way to open something, by the start of what it says where it cannot. */
  private Map<String, IntSupplier> ways(int listener, int memory, String name) {
    String open = "/proc/self/fd/" + memory;
    Map<String, IntSupplier> ways = new LinkedHashMap<>();
    ways.put("memfd_create(name=a, bytes=8): ", () -> calls.memoryFile("a", 8));
    ways.put("open(path=" + open + ", O_PATH): ", () -> calls.openMemoryFile(open));
    ways.put("fcntl(descriptor=" + memory + ", F_DUPFD_CLOEXEC): ", () -> calls.duplicate(memory));
    ways.put("listen(path=" + path(name) + "): ", () -> calls.listen(path(name)));
    ways.put("connect(path=" + path("here") + "): ", () -> calls.connect(path("here"), LONG));
    ways.put("accept(listener=" + listener + "): ", () -> calls.accept(listener, LONG));
    ways.put("lock(path=" + path(name + "l") + "): ", () -> calls.lock(path(name + "l"), LONG));
    return ways;
  }

  private Throwable failureOfIsBound() {
    return catchThrowable(() -> {
      boolean _ = calls.isBound(path("here"));
    });
  }

  private static Throwable failureOf(IntSupplier way) {
    return catchThrowable(() -> {
      int _ = way.getAsInt();
    });
  }

  @Test
  void whatCannotBeOpened_saysThat_andLeavesNothing() throws Exception {
    OpenDescriptors.assertKept(() -> {
      round++;
      int listener = calls.listen(path("here"));
      int memory = calls.memoryFile("memory", 8);
      int waiting = calls.connect(path("here"), LONG);
      ways(listener, memory, "before").values().forEach(way -> calls.close(way.getAsInt()));
      int next = calls.connect(path("here"), LONG);
      assertThat(failureOf(() -> calls.connect(path("none"), LONG))).isNotNull();
      assertThat(failureOfIsBound()).isNull();
      Map<String, IntSupplier> ways = ways(listener, memory, "after");
      Map<String, Throwable> thrown = new LinkedHashMap<>();
      Throwable[] ofIsBound = new Throwable[1];
      withNoneToOpen(() -> {
        ways.forEach((call, way) -> thrown.put(call, failureOf(way)));
        ofIsBound[0] = failureOfIsBound();
      });
      ways.keySet()
          .forEach(call ->
              assertThat(thrown.get(call))
                  .isInstanceOf(UncheckedIOException.class)
                  .hasMessageContaining(call + "Too many open files"));
      assertThat(ofIsBound[0])
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageContaining("connect(path=" + path("here") + "): Too many open files");
      assertThat(file("after")).doesNotExist();
      assertThat(file("afterl")).doesNotExist();
      calls.close(calls.accept(listener, LONG));
      calls.close(waiting);
      calls.close(next);
      calls.close(listener);
      calls.close(memory);
    });
  }

  private static void withNoneToOpen(Runnable body) {
    MemorySegment limit = Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES);
    assertThat(call(GET, limit)).isZero();
    long before = limit.get(ValueLayout.JAVA_LONG, 0);
    limit.set(ValueLayout.JAVA_LONG, 0, 1); // the numbers from 1 on are not to be given
    assertThat(call(SET, limit)).isZero();
    try {
      body.run();
    } finally {
      limit.set(ValueLayout.JAVA_LONG, 0, before);
      assertThat(call(SET, limit)).isZero();
    }
  }

  private static int call(MethodHandle function, MemorySegment limit) {
    try {
      return (int) function.invokeExact(NUMBER_OF_FILES, limit);
    } catch (Throwable e) {
      throw new IllegalStateException(e);
    }
  }
}
