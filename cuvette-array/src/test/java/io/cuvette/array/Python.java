package io.cuvette.array;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The interpreter of Python in this process: that of the machine, loaded as a library, or the one
 * that this JVM was started by. Tests are skipped where there is none. Thread-safe.
 */
@SuppressWarnings("restricted")
final class Python {
  private static final int NOW_AND_GLOBAL = 0x102;
  private static final long ANSWER_BYTES = 1 << 16;
  private static final Linker LINKER = Linker.nativeLinker();

  /** Prints where the library of the interpreter may be, itself, and where its modules are. */
  private static final String WHERE =
      """
      import sys, sysconfig
      names = [sysconfig.get_config_var(k) for k in ("INSTSONAME", "LDLIBRARY")]
      folders = [sysconfig.get_config_var(k) for k in ("LIBDIR", "LIBPL")] + [sys.base_prefix + "/lib"]
      names = [n for n in names if n and ".so" in n] + ["libpython%d.%d.so.1.0" % sys.version_info[:2]]
      print(":".join([f + "/" + n for f in folders if f for n in names] + names))
      print(sys.executable)
      print(":".join(p for p in sys.path if p))
      """;

  private static @Nullable Python known;

  /** What a script is given by its name, and answers. */
  private final MemorySegment answer = Arena.global().allocate(ANSWER_BYTES);

  /** The threads whose state is kept. */
  private final ThreadLocal<Boolean> entered = ThreadLocal.withInitial(() -> false);

  private final MethodHandle saveThread;
  private final MethodHandle ensure;
  private final MethodHandle release;
  private final MethodHandle runString;

  private Python() {
    saveThread = function("PyEval_SaveThread", FunctionDescriptor.of(JAVA_LONG));
    ensure = function("PyGILState_Ensure", FunctionDescriptor.of(JAVA_INT));
    release = function("PyGILState_Release", FunctionDescriptor.ofVoid(JAVA_INT));
    runString = function("PyRun_SimpleString", FunctionDescriptor.of(JAVA_INT, ADDRESS));
  }

  /** Opens it, with some modules. */
  static synchronized Python open(String... modules) {
    if (known == null) {
      List<String> where = where();
      boolean isHost = find("Py_IsInitialized") != 0; // this JVM is a guest of Python
      if (!isHost) {
        load(where.get(0));
        start(where.get(1));
      }
      known = new Python();
      known.prepare(where.get(2));
    }
    for (String module : modules) {
      String failure =
          known.call(
              """
              try:
                  import %s
                  answer = ""
              except Exception as e:
                  answer = repr(e)
              """
                  .formatted(module));
      assumeTrue(failure.isEmpty(), failure);
    }
    return known;
  }

  private static List<String> where() {
    try {
      Process process = new ProcessBuilder("python3", "-c", WHERE).start();
      List<String> lines =
          new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
              .lines()
              .toList();
      assumeTrue(process.waitFor() == 0 && lines.size() == 3, "python3 does not run");
      return lines;
    } catch (IOException e) {
      return abort("no python3 on the path: " + e.getMessage());
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static void load(String candidates) {
    MethodHandle dlopen =
        LINKER.downcallHandle(
            LINKER.defaultLookup().findOrThrow("dlopen"),
            FunctionDescriptor.of(JAVA_LONG, ADDRESS, JAVA_INT));
    try (Arena arena = Arena.ofConfined()) {
      for (String each : candidates.split(":")) {
        if (!each.startsWith("/") || Files.exists(Path.of(each))) {
          if ((long) dlopen.invokeExact(arena.allocateFrom(each), NOW_AND_GLOBAL) != 0) {
            return;
          }
        }
      }
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
    abort("no libpython among " + candidates);
  }

  private static void start(String executable) {
    try {
      if (find("Py_SetProgramName") != 0) { // which says where its modules are
        int[] wide = executable.codePoints().toArray();
        MemorySegment name =
            Arena.global().allocateFrom(JAVA_INT, Arrays.copyOf(wide, wide.length + 1));
        function("Py_SetProgramName", FunctionDescriptor.ofVoid(ADDRESS)).invokeExact(name);
      }
      function("Py_InitializeEx", FunctionDescriptor.ofVoid(JAVA_INT)).invokeExact(0);
      long _ = (long) function("PyEval_SaveThread", FunctionDescriptor.of(JAVA_LONG)).invokeExact();
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** The address of a symbol of any library that all see; 0 if there is none. */
  private static long find(String name) {
    try (Arena arena = Arena.ofConfined()) {
      MethodHandle dlsym =
          LINKER.downcallHandle(
              LINKER.defaultLookup().findOrThrow("dlsym"),
              FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, ADDRESS));
      return (long) dlsym.invokeExact(0L, arena.allocateFrom(name));
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static MethodHandle function(String name, FunctionDescriptor type) {
    long address = find(name);
    if (address == 0) {
      throw new AssertionError("no function " + name);
    }
    return LINKER.downcallHandle(MemorySegment.ofAddress(address), type);
  }

  private void prepare(String path) {
    execute(
        """
        import ctypes, os, sys, traceback
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        for _each in %s.split(":"):
            if _each not in sys.path:
                sys.path.append(_each)
        def _cuvette_run(at, length, to, limit):
            space = globals()
            space["answer"] = None
            try:
                exec(ctypes.string_at(at, length).decode(), space)
                said = "+" + str(space["answer"])
            except BaseException:
                said = "-" + traceback.format_exc()
            said = said.encode()[:limit - 1]
            ctypes.memmove(to, said + b"\\0", len(said) + 1)
        """
            .formatted(quoted(path)));
  }

  private static String quoted(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }

  /** Runs a script; what it has left in {@code answer}, as text. What it raises fails the test. */
  synchronized String call(String script) {
    try (Arena arena = Arena.ofConfined()) {
      byte[] bytes = script.getBytes(StandardCharsets.UTF_8);
      MemorySegment text = arena.allocateFrom(JAVA_BYTE, bytes);
      execute(
          "_cuvette_run(%d, %d, %d, %d)"
              .formatted(text.address(), bytes.length, answer.address(), ANSWER_BYTES));
      String said = answer.getString(0);
      if (said.startsWith("-")) {
        throw new AssertionError("Python: " + said.substring(1));
      }
      return said.substring(1);
    }
  }

  private void execute(String code) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(code);
      enterOnce();
      int state = (int) ensure.invokeExact();
      int failed;
      try {
        failed = (int) runString.invokeExact(text);
      } finally {
        release.invokeExact(state);
      }
      if (failed != 0) {
        throw new AssertionError("Python could not run " + code);
      }
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /**
   * Keeps this thread's state for good: modules made with pybind11, such as PyTorch, remember it
   * and would wait for ever for another one's.
   */
  private void enterOnce() throws Throwable {
    if (!entered.get()) {
      int _ = (int) ensure.invokeExact();
      long _ = (long) saveThread.invokeExact();
      entered.set(true);
    }
  }
}
