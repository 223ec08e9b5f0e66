package io.cuvette.ffm.toolkit;

import io.cuvette.ffm.CCompiler;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** A library that stands for NVRTC and nvJitLink and does as it is told. */
@SuppressWarnings("restricted")
final class StubToolkit {
  private final Path file;
  private final SymbolLookup symbols;

  private StubToolkit(Path file) {
    this.file = file;
    this.symbols = SymbolLookup.libraryLookup(file, Arena.global());
  }

  /** Compiles the library; the folder must be new, for the system loads a file once. */
  static StubToolkit compile(Path folder, String... defines)
      throws IOException, InterruptedException {
    Path source = folder.resolve("stub_toolkit.c");
    try (InputStream text = CCompiler.class.getResourceAsStream("stub_toolkit.c")) {
      Files.write(source, text.readAllBytes());
    }
    String[] options =
        Stream.concat(Stream.of("-shared", "-fPIC"), Stream.of(defines).map(name -> "-D" + name))
            .toArray(String[]::new);
    return new StubToolkit(CCompiler.compile(source, folder.resolve("libtoolkit.so"), options));
  }

  Path file() {
    return file;
  }

  /** The calls of NVRTC, with this library. */
  FfmCompiler compiler() {
    return with(
        Nvrtc.PROPERTY, file.toString(), () -> new FfmCompiler(new OnFirstUse<>(Nvrtc::load)));
  }

  /** The calls of nvJitLink, with this library. */
  FfmLinker linker() {
    return with(
        NvJitLink.PROPERTY,
        file.toString(),
        () -> new FfmLinker(new OnFirstUse<>(NvJitLink::load)));
  }

  /** What is made, and used once, while a property is set. */
  static <T> T with(String property, String value, Supplier<T> body) {
    String before = System.getProperty(property);
    System.setProperty(property, value);
    try {
      T made = body.get();
      if (made instanceof FfmCompiler compiler) {
        compiler.version();
      } else if (made instanceof FfmLinker linker) {
        linker.version();
      }
      return made;
    } finally {
      if (before == null) {
        System.clearProperty(property);
      } else {
        System.setProperty(property, before);
      }
    }
  }

  /** From now on something has a value: a status by the name of its function, or a size. */
  void set(String name, long value) {
    try (Arena arena = Arena.ofConfined()) {
      function("stub_set", FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG))
          .invokeWithArguments(arena.allocateFrom(name), value);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** How many programs and linkers are not destroyed. */
  long open() {
    try {
      return (long)
          function("stub_open", FunctionDescriptor.of(ValueLayout.JAVA_LONG)).invokeWithArguments();
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private MethodHandle function(String name, FunctionDescriptor type) {
    return Linker.nativeLinker().downcallHandle(symbols.find(name).orElseThrow(), type);
  }
}
