package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.ffm.library.RuntimeLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** The version of the CUDA runtime beside what the loader of the system finds. */
@EnabledOnOs(value = OS.LINUX, disabledReason = "the names of Linux")
@SuppressWarnings("restricted")
class RuntimeVersionTest {
  private static List<String> files() {
    List<String> files = new ArrayList<>();
    List<String> folders = new ArrayList<>(List.of(""));
    for (String variable : List.of("CUDA_PATH", "CUDA_HOME")) {
      String folder = System.getenv(variable);
      if (folder != null && !folder.isBlank()) {
        folders.add(folder + "/lib64/");
      }
    }
    for (String folder : folders) {
      for (String name : List.of("libcudart.so.13", "libcudart.so.12", "libcudart.so")) {
        files.add(folder + name);
      }
    }
    return files;
  }

  /** What a library says, if it is there and says anything. */
  private static Optional<OptionalInt> version(String file) throws Throwable {
    Optional<MemorySegment> address;
    try {
      address = SymbolLookup.libraryLookup(file, Arena.global()).find("cudaRuntimeGetVersion");
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
    if (address.isEmpty()) {
      return Optional.empty();
    }
    MethodHandle function =
        Linker.nativeLinker()
            .downcallHandle(
                address.get(), FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS));
    MemorySegment version = Arena.ofAuto().allocate(ValueLayout.JAVA_INT);
    int status = (int) function.invokeExact(version);
    return Optional.of(
        status == 0 ? OptionalInt.of(version.get(ValueLayout.JAVA_INT, 0)) : OptionalInt.empty());
  }

  @Test
  void version_isThatOfTheFirstLibraryThatIsThere() throws Throwable {
    Optional<OptionalInt> first = Optional.empty();
    for (String file : files()) {
      first = first.isPresent() ? first : version(file);
    }
    OptionalInt expected = first.orElse(OptionalInt.empty());
    Object found =
        new FreshLoader()
            .loadClass(RuntimeLibrary.class.getName())
            .getMethod("version")
            .invoke(null);
    assertThat(found).isEqualTo(expected);
    assertThat(RuntimeLibrary.version()).isEqualTo(expected);
  }
}
