package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.ffm.library.RuntimeLibrary;
import io.cuvette.ffm.toolkit.FfmCompiler;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.ServiceLoader;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What shows only over the life of a process. */
class FfmProcessTest {

  /** Frees during shutdown, and says what came of it. */
  static final class ExitMain {
    private ExitMain() {}

    public static void main(String[] arguments) {
      CudaDriver driver = new FfmDriverProvider().open("");
      driver.memory().memFree(0, 9);
      Runtime.getRuntime().addShutdownHook(new Thread(() -> useDuringShutdown(driver)));
    }

    private static void useDuringShutdown(CudaDriver driver) {
      try {
        while (true) {
          driver.devices().deviceGetCount(); // until the library knows of the shutdown too
          Thread.onSpinWait();
        }
      } catch (IllegalStateException e) {
        System.out.println(e.getMessage());
      }
      refused(() -> driver.memory().memAlloc(0, 8));
      refused(() -> driver.streams().streamSynchronize(0, 5));
      refused(() -> driver.streams().launchHostFunc(0, 5, () -> {}));
      LaunchShape shape = new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
      LaunchParameters none = new LaunchParameters(MemorySegment.NULL, List.of());
      refused(() -> driver.kernels().launchKernel(0, 5, 7, shape, none));
      driver.memory().memFree(0, 10);
      driver.memory().memFreeHost(0, 10);
      driver.memory().memHostUnregister(0, 10);
      driver.ordered().memFreeAsync(0, 10, 5);
      driver.virtual().memUnmap(10, 8);
      driver.virtual().memRelease(7);
      driver.virtual().memAddressFree(10, 8);
      driver.streams().streamDestroy(0, 5);
      driver.events().eventDestroy(0, 6);
      driver.graphs().graphDestroy(7);
      driver.graphs().graphExecDestroy(7);
      driver.graphs().userObjectRelease(7);
      driver.kernels().libraryUnload(7);
      driver.pools().memPoolDestroy(9);
      driver.sharing().ipcCloseMemHandle(0, 10);
      driver.natives().callFree(8, 0, 10, 0);
      driver.close();
      System.out.println("done");
    }

    private static void refused(Runnable call) {
      try {
        call.run();
        System.out.println("went on");
      } catch (IllegalStateException e) {
        System.out.println(e.getMessage());
      }
    }
  }

  /** Has host functions that throw what a JVM hardly survives. */
  static final class ThrowingMain {
    private ThrowingMain() {}

    /** An exception that cannot be logged. */
    static final class Unspeakable extends RuntimeException {
      private static final long serialVersionUID = 1L;

      @Override
      public String toString() {
        throw new Unspeakable();
      }

      @Override
      public String getMessage() {
        throw new OutOfMemoryError("message");
      }
    }

    public static void main(String[] arguments) throws InterruptedException {
      CudaDriver driver = new FfmDriverProvider().open("");
      launch(
          driver,
          () -> {
            throw new Unspeakable();
          });
      launch(driver, () -> recurse(0));
      launch(driver, () -> System.out.println(new long[Integer.MAX_VALUE].length));
      System.out.println("alive");
      System.exit(0);
    }

    /** Runs a function, and then waits for its thread to end. */
    private static void launch(CudaDriver driver, Runnable function) throws InterruptedException {
      CompletableFuture<Thread> thread = new CompletableFuture<>();
      driver
          .streams()
          .launchHostFunc(
              0,
              5,
              () -> {
                thread.complete(Thread.currentThread());
                function.run();
              });
      thread.join().join();
    }

    private static int recurse(int depth) {
      return recurse(depth + 1) + depth;
    }
  }

  /** Runs a host function, and exits with the driver open. */
  static final class HostFunctionMain {
    private HostFunctionMain() {}

    public static void main(String[] arguments) {
      CompletableFuture<Void> ran = new CompletableFuture<>();
      CudaDriver driver = new FfmDriverProvider().open("");
      driver.streams().launchHostFunc(0, 5, () -> ran.complete(null));
      ran.join();
      System.exit(0);
    }
  }

  /** Asks for a driver where none is. */
  static final class MissingMain {
    private MissingMain() {}

    public static void main(String[] arguments) {
      if (new FfmDriverProvider().isAvailable()) {
        throw new AssertionError("available");
      }
    }
  }

  /** Prints the version of the CUDA runtime. */
  static final class RuntimeMain {
    private RuntimeMain() {}

    public static void main(String[] arguments) {
      System.out.println(RuntimeLibrary.version().orElse(-1));
    }
  }

  /** Prints the version of NVRTC. */
  static final class CompilerMain {
    private CompilerMain() {}

    public static void main(String[] arguments) {
      System.out.println(new FfmCompiler().version());
    }
  }

  /** Prints the providers that the service loader finds on the class path. */
  static final class ServiceMain {
    private ServiceMain() {}

    public static void main(String[] arguments) {
      for (CudaDriverProvider provider : ServiceLoader.load(CudaDriverProvider.class)) {
        System.out.println(provider.name() + " " + provider.getClass().getName());
      }
    }
  }

  @Test
  void provider_isAServiceOfTheClassPath() throws Exception {
    assertThat(ForkedJvm.run(ServiceMain.class, Map.of()).output())
        .contains("gpu io.cuvette.ffm.FfmDriverProvider");
  }

  @Test
  void provider_isAServiceOfTheModule() {
    Module module = FfmDriverProvider.class.getModule();
    assumeTrue(module.isNamed(), "on the class path");
    assertThat(module.getDescriptor().provides())
        .anySatisfy(service -> {
          assertThat(service.service()).isEqualTo(CudaDriverProvider.class.getName());
          assertThat(service.providers()).contains(FfmDriverProvider.class.getName());
        });
  }

  @Test
  void onceTheJvmShutsDown_freesDoNothingAndTheRestFails(@TempDir Path folder) throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    ForkedJvm.Result result =
        ForkedJvm.run(
            ExitMain.class,
            Map.of("STUB_PRINT", "@"), // every call
            "-Dcuvette.libcuda=" + library.file());
    assertThat(result.output())
        .endsWith(
            """
            cuMemFree@3020(9)
            driver ffm: no calls while the JVM is shutting down
            driver ffm: no calls while the JVM is shutting down
            driver ffm: no calls while the JVM is shutting down
            driver ffm: no calls while the JVM is shutting down
            driver ffm: no calls while the JVM is shutting down
            done
            """);
    assertThat(result.exitCode()).isZero();
  }

  @Test
  void whateverAHostFunctionThrows_theJvmLives(@TempDir Path folder) throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    ForkedJvm.Result result =
        ForkedJvm.run(ThrowingMain.class, Map.of(), "-Dcuvette.libcuda=" + library.file());
    assertThat(result.output())
        .contains("Unspeakable, which cannot be logged")
        .contains("StackOverflowError")
        .contains("OutOfMemoryError")
        .endsWith("alive\n");
    assertThat(result.exitCode()).isZero();
  }

  /** The driver's thread is joined in an exit handler, where the JVM lets no thread detach. */
  @Test
  void afterHostFunctions_theJvmExits(@TempDir Path folder) throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    ForkedJvm.Result result =
        ForkedJvm.run(
            HostFunctionMain.class,
            Map.of("STUB_HOST_THREAD", "1"),
            "-Dcuvette.libcuda=" + library.file());
    assertThat(result).isEqualTo(new ForkedJvm.Result(0, ""));
  }

  @Test
  void askingForAMissingDriver_printsNothing(@TempDir Path folder) throws Exception {
    ForkedJvm.Result result =
        ForkedJvm.run(
            MissingMain.class, Map.of(), "-Dcuvette.libcuda=" + folder.resolve("libcuda.so.1"));
    assertThat(result).isEqualTo(new ForkedJvm.Result(0, ""));
  }

  @Test
  void runtimeVersion_isThatOfTheToolkitNamedByTheEnvironment() throws Exception {
    Path toolkit = CCompiler.cudaHeaders().getParent();
    assumeTrue(Files.exists(toolkit.resolve("lib64/libcudart.so")), "no CUDA runtime");
    ForkedJvm.Result result =
        ForkedJvm.run(RuntimeMain.class, Map.of("CUDA_HOME", toolkit.toString()));
    assertThat(Integer.parseInt(result.output().strip())).isGreaterThanOrEqualTo(12_000);
  }

  @Test
  void runtimeVersion_isThatOfTheFirstToolkit_whereTheSystemHasNone(@TempDir Path folder)
      throws Exception {
    Path broken = Files.createDirectory(folder.resolve("broken")); // the loader looks no further
    for (String name : List.of("libcudart.so.13", "libcudart.so.12", "libcudart.so")) {
      Files.createFile(broken.resolve(name));
    }
    Map<String, String> environment = new HashMap<>();
    environment.put("LD_LIBRARY_PATH", broken.toString());
    environment.put("CUDA_PATH", "");
    environment.put("CUDA_HOME", toolkit(folder.resolve("home"), 12_080).toString());
    assertThat(ForkedJvm.run(RuntimeMain.class, environment).output()).isEqualTo("12080\n");
    environment.put("CUDA_PATH", toolkit(folder.resolve("path"), 13_010).toString());
    assertThat(ForkedJvm.run(RuntimeMain.class, environment).output()).isEqualTo("13010\n");
    environment.put("CUDA_PATH", toolkit(folder.resolve("without"), 0).toString());
    assertThat(ForkedJvm.run(RuntimeMain.class, environment).output())
        .as("one that refuses, without a driver perhaps")
        .isEqualTo("-1\n");
  }

  @Test
  void compilerOfTheNewestToolkit_isTaken_whereThereAreSeveral(@TempDir Path folder)
      throws Exception {
    Path source = folder.resolve("stub_toolkit.c");
    try (InputStream text = CCompiler.class.getResourceAsStream("stub_toolkit.c")) {
      Files.write(source, text.readAllBytes());
    }
    Path useless = Files.writeString(folder.resolve("useless.c"), "int unused;");
    CCompiler.compile(source, folder.resolve("libnvrtc.so.13"), "-shared", "-fPIC");
    CCompiler.compile(useless, folder.resolve("libnvrtc.so.12"), "-shared", "-fPIC");
    Map<String, String> environment =
        Map.of("LD_LIBRARY_PATH", folder.toString(), "CUDA_PATH", "", "CUDA_HOME", "");
    assertThat(ForkedJvm.run(CompilerMain.class, environment).output()).isEqualTo("13010\n");
  }

  /** A folder with a runtime that says its version, or refuses to if it is 0. */
  private static Path toolkit(Path folder, int version) throws Exception {
    Path libraries = Files.createDirectories(folder.resolve("lib64"));
    Path source =
        Files.writeString(
            folder.resolve("runtime.c"),
            "int cudaRuntimeGetVersion(int *v) { *v = " + version + "; return *v ? 0 : 35; }");
    CCompiler.compile(source, libraries.resolve("libcudart.so"), "-shared", "-fPIC");
    return folder;
  }

  @Test
  void runtimeVersion_isEmptyOrPlausible() {
    OptionalInt version = RuntimeLibrary.version();
    assertThat(version.orElse(12_000)).isGreaterThanOrEqualTo(10_000);
  }
}
