package io.cuvette.ffm;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.driver.LinkerCalls;
import io.cuvette.ffm.part.FfmDriverLinker;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;

/**
 * A driver library that notes its calls, and the classes of the driver loaded once more for it: a
 * process binds its driver library once, and here many are wanted.
 */
@SuppressWarnings("restricted")
final class StubLibrary {
  private static final String PROPERTY = "cuvette.libcuda";

  private final Path file;
  private final SymbolLookup symbols;

  private StubLibrary(Path file) {
    this.file = file;
    this.symbols = SymbolLookup.libraryLookup(file, Arena.global());
  }

  /** Compiles the library; the folder must be new, for the system loads a file once. */
  static StubLibrary compile(Path folder, String... defines) {
    try {
      return new StubLibrary(
          CCompiler.compile(source(folder), folder.resolve("libcuda.so.1"), options(defines)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The source of the library, as a file. */
  static Path source(Path folder) throws IOException {
    Files.createDirectories(folder);
    copy("stub_pools.h", folder);
    copy("stub_ipc.h", folder);
    copy("stub_virtual.h", folder);
    copy("stub_kernels.h", folder);
    copy("stub_graphs.h", folder);
    copy("stub_nodes.h", folder);
    return copy("stub_libcuda.c", folder);
  }

  private static Path copy(String resource, Path folder) throws IOException {
    try (InputStream text = StubLibrary.class.getResourceAsStream(resource)) {
      return Files.write(folder.resolve(resource), text.readAllBytes());
    }
  }

  private static String[] options(String... defines) {
    String[] options = Arrays.copyOf(new String[] {"-shared", "-fPIC"}, 2 + defines.length);
    for (int i = 0; i < defines.length; i++) {
      options[2 + i] = "-D" + defines[i];
    }
    return options;
  }

  Path file() {
    return file;
  }

  /** A provider that has bound nothing yet and will load this library. */
  CudaDriverProvider provider() {
    return provider(file.toString());
  }

  /** The driver's linker, of this library, which has bound nothing yet. */
  LinkerCalls linker() {
    try {
      LinkerCalls fresh =
          (LinkerCalls)
              new FreshLoader()
                  .loadClass(FfmDriverLinker.class.getName())
                  .getConstructor()
                  .newInstance();
      return (LinkerCalls)
          Proxy.newProxyInstance(
              LinkerCalls.class.getClassLoader(),
              new Class<?>[] {LinkerCalls.class},
              (_, method, arguments) ->
                  withLibrary(file.toString(), () -> invoke(fresh, method, arguments)));
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  private static Object invoke(LinkerCalls target, Method method, Object[] arguments) {
    try {
      return method.invoke(target, arguments);
    } catch (InvocationTargetException e) {
      throw (RuntimeException) e.getCause();
    } catch (IllegalAccessException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  /** A provider that has bound nothing yet and will load a library. */
  static CudaDriverProvider provider(String library) {
    try {
      return new LibraryProvider(fresh(), library);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  /** One that has bound nothing yet, and loads the library that is named then. */
  static CudaDriverProvider fresh() throws ReflectiveOperationException {
    return (CudaDriverProvider)
        new FreshLoader()
            .loadClass(FfmDriverProvider.class.getName())
            .getConstructor()
            .newInstance();
  }

  /** Names the library while it is wanted, and only then: other tests want the real one. */
  private record LibraryProvider(CudaDriverProvider fresh, String library)
      implements CudaDriverProvider {

    @Override
    public String name() {
      return fresh.name();
    }

    @Override
    public boolean isAvailable() {
      return withLibrary(fresh::isAvailable);
    }

    @Override
    public CudaDriver open(String settings) {
      return withLibrary(() -> fresh.open(settings));
    }

    private <T> T withLibrary(Supplier<T> body) {
      return StubLibrary.withLibrary(library, body);
    }
  }

  /** Names a library while something is done. */
  static <T> T withLibrary(String library, Supplier<T> body) {
    String before = System.getProperty(PROPERTY);
    System.setProperty(PROPERTY, library);
    try {
      return body.get();
    } finally {
      if (before == null) {
        System.clearProperty(PROPERTY);
      } else {
        System.setProperty(PROPERTY, before);
      }
    }
  }

  /** Opens a driver that nobody opened before. */
  CudaDriver open() {
    return provider().open("");
  }

  void reset() {
    callVoid("stub_reset");
  }

  /** The calls since the last reset, such as {@code cuMemAlloc@3020(512) in c000}. */
  List<String> calls() {
    MemorySegment text =
        MemorySegment.ofAddress((long) call("stub_calls", ValueLayout.JAVA_LONG))
            .reinterpret(1 << 18);
    return text.getString(0).lines().toList();
  }

  /** From now on a function fails, or the calls whose lines start so, if there is a @ in it. */
  void fail(String function, int status) {
    try (Arena arena = Arena.ofConfined()) {
      callVoid("stub_fail", arena.allocateFrom(function), status);
    }
  }

  /** From now on another function fails as well. */
  void failToo(String function) {
    try (Arena arena = Arena.ofConfined()) {
      callVoid("stub_fail_too", arena.allocateFrom(function));
    }
  }

  /** From now on calls of a function stay in it, until another one is named, or "" for none. */
  void hold(String function) {
    try (Arena arena = Arena.ofConfined()) {
      callVoid("stub_hold", arena.allocateFrom(function));
    }
  }

  /** From now on cuGetProcAddress does not know a function. */
  void hide(String function) {
    try (Arena arena = Arena.ofConfined()) {
      callVoid("stub_hide", arena.allocateFrom(function));
    }
  }

  void version(int version) {
    callVoid("stub_version", version);
  }

  void devices(int count) {
    callVoid("stub_devices", count);
  }

  /** What functions with results answer. */
  void answer(long first, long second) {
    callVoid("stub_answer", first, second);
  }

  /** Makes a context current on this thread, as another library would. */
  void makeCurrent(long context) {
    callVoid("stub_make_current", context);
  }

  long current() {
    return (long) call("stub_current", ValueLayout.JAVA_LONG);
  }

  /** How captures meet this thread: 0 global, 1 thread-local, 2 relaxed. */
  int mode() {
    return (int) call("stub_mode", ValueLayout.JAVA_INT);
  }

  void setMode(int mode) {
    callVoid("stub_set_mode", mode);
  }

  /** The functions that were called since the last reset on threads that were not relaxed. */
  List<String> notRelaxed() {
    MemorySegment text =
        MemorySegment.ofAddress((long) call("stub_not_relaxed", ValueLayout.JAVA_LONG))
            .reinterpret(1 << 14);
    return text.getString(0).lines().toList();
  }

  /** Calls the destructor of the user object that was made last, as the driver does. */
  void destroyUserObject() {
    callVoid("stub_destroy_user_object");
  }

  /** Runs the function that a host node was given last, as a launch does. */
  void runHostNode() {
    callVoid("stub_run_host_node");
  }

  /** Runs the function that was launched last once more, as a launch of a graph does. */
  void runLaunchedFunction() {
    callVoid("stub_run_launched_function");
  }

  /** How often the context of a device is retained now. */
  int retained(int ordinal) {
    return (int) call("stub_retained", ValueLayout.JAVA_INT, ordinal);
  }

  /** What is at a symbol. */
  MemorySegment memory(String symbol, long bytes) {
    return symbols.find(symbol).orElseThrow().reinterpret(bytes);
  }

  long address(String symbol) {
    return symbols.find(symbol).orElseThrow().address();
  }

  private void callVoid(String symbol, Object... arguments) {
    invoke(symbol, FunctionDescriptor.ofVoid(layouts(arguments)), arguments);
  }

  private Object call(String symbol, MemoryLayout result, Object... arguments) {
    return invoke(symbol, FunctionDescriptor.of(result, layouts(arguments)), arguments);
  }

  private Object invoke(String symbol, FunctionDescriptor type, Object... arguments) {
    MethodHandle function =
        Linker.nativeLinker().downcallHandle(symbols.find(symbol).orElseThrow(), type);
    try {
      return function.invokeWithArguments(arguments);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static MemoryLayout[] layouts(Object... arguments) {
    return Arrays.stream(arguments)
        .map(argument ->
            switch (argument) {
              case Integer _ -> ValueLayout.JAVA_INT;
              case Long _ -> ValueLayout.JAVA_LONG;
              default -> (MemoryLayout) ValueLayout.ADDRESS;
            })
        .toArray(MemoryLayout[]::new);
  }
}
