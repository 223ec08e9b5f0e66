package io.cuvette;

import io.cuvette.internal.program.Architectures;
import io.cuvette.internal.program.Texts;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;

/**
 * How {@link CudaLinker} links. The driver's linker has debug information, lines, the verbose log,
 * the level of optimization and the limit of registers; where nvJitLink is missing, any other
 * option is an {@link IllegalArgumentException} of {@code link}. Each method returns other options.
 * Texts have no line break and no character 0. Immutable.
 *
 * @param architecture the one architecture that is linked for, such as {@code sm_90}
 * @param flags the options of the linker with their values, which may be empty
 * @param arguments further options of the linker, as they are
 */
public record LinkerOptions(
    String architecture, Map<String, String> flags, List<String> arguments) {
  private static final Pattern FLAG = Pattern.compile("-[A-Za-z][A-Za-z0-9-]*");
  private static final Pattern RESERVED = Pattern.compile("-(arch|lto|ptx)(=.*)?");

  /**
   * Options; {@link #of} and the methods are the usual way.
   *
   * @throws IllegalArgumentException if the architecture or an option is none
   */
  public LinkerOptions {
    Objects.requireNonNull(architecture, "architecture");
    Objects.requireNonNull(flags, "flags");
    Objects.requireNonNull(arguments, "arguments");
    architecture = "sm_" + Architectures.suffix(architecture);
    flags = Collections.unmodifiableMap(new LinkedHashMap<>(flags));
    flags.forEach((flag, value) -> {
      if (!FLAG.matcher(flag).matches() || RESERVED.matcher(flag).matches()) {
        throw new IllegalArgumentException(
            "flags: '%s' (expected: such as -lineinfo)".formatted(flag));
      }
      Texts.checkLine("value of " + flag, value);
    });
    arguments = List.copyOf(arguments);
    arguments.forEach(LinkerOptions::checkArgument);
  }

  private static void checkArgument(String argument) {
    Texts.checkOption("argument", argument);
    if (!argument.startsWith("-") || RESERVED.matcher(argument).matches()) {
      throw new IllegalArgumentException(
          "argument: '%s' (expected: an option that begins with '-', but not -arch, -lto or -ptx)"
              .formatted(argument));
    }
  }

  /**
   * {@return options for an architecture}
   *
   * @param architecture such as {@code sm_90} or {@code sm_90a}
   * @throws IllegalArgumentException if it is no architecture
   */
  public static LinkerOptions of(String architecture) {
    return new LinkerOptions(architecture, Map.of(), List.of());
  }

  /**
   * {@return options for the architecture of a device, such as that of {@link
   * CudaDevice#computeCapability}}
   *
   * @param capability the compute capability
   * @throws IllegalArgumentException if it is no architecture
   */
  public static LinkerOptions of(ComputeCapability capability) {
    return of("sm_" + Objects.requireNonNull(capability, "capability").digits());
  }

  /**
   * {@return options with or without debug information (-g)}
   *
   * @param debug whether there is debug information
   */
  public LinkerOptions withDebug(boolean debug) {
    return withSwitch("-g", debug);
  }

  /**
   * {@return options with or without the lines of the source (-lineinfo)}
   *
   * @param lines whether the code has the lines
   */
  public LinkerOptions withLineInfo(boolean lines) {
    return withSwitch("-lineinfo", lines);
  }

  /**
   * {@return options with or without a log of what is used: registers, shared memory (-verbose)}
   *
   * @param verbose whether the log has it
   */
  public LinkerOptions withVerbose(boolean verbose) {
    return withSwitch("-verbose", verbose);
  }

  /**
   * {@return options with a level of optimization (-O)}
   *
   * @param level 0 to 3
   * @throws IllegalArgumentException for another number
   */
  public LinkerOptions withOptimization(int level) {
    if (level < 0 || level > 3) {
      throw new IllegalArgumentException("level: %d (expected: 0 to 3)".formatted(level));
    }
    LinkerOptions options = this;
    for (int each = 0; each <= 3; each++) {
      options = options.withSwitch("-O" + each, each == level);
    }
    return options;
  }

  /**
   * {@return options with a limit of registers for each thread (-maxrregcount)}
   *
   * @param registers the most registers, 1 to 255
   * @throws IllegalArgumentException for another number
   */
  public LinkerOptions withMaxRegisters(int registers) {
    if (registers < 1 || registers > 255) {
      throw new IllegalArgumentException("registers: %d (expected: 1 to 255)".formatted(registers));
    }
    return withFlag("-maxrregcount", Integer.toString(registers));
  }

  /**
   * {@return options by which code from LTO-IR flushes single-precision denormals to 0, or keeps
   * them (-ftz)}
   *
   * @param flush whether they become 0
   */
  public LinkerOptions withFlushToZero(boolean flush) {
    return withFlag("-ftz", flush ? "1" : "0");
  }

  /**
   * {@return options by which single-precision division in LTO-IR is exact, or faster (-prec-div)}
   *
   * @param exact whether it is exact
   */
  public LinkerOptions withPreciseDivision(boolean exact) {
    return withFlag("-prec-div", exact ? "1" : "0");
  }

  /**
   * {@return options by which single-precision roots in LTO-IR are exact, or faster (-prec-sqrt)}
   *
   * @param exact whether they are exact
   */
  public LinkerOptions withPreciseRoot(boolean exact) {
    return withFlag("-prec-sqrt", exact ? "1" : "0");
  }

  /**
   * {@return options by which a product and a sum in LTO-IR may be one operation, or not (-fma)}
   *
   * @param fused whether they may
   */
  public LinkerOptions withFusedMultiplyAdd(boolean fused) {
    return withFlag("-fma", fused ? "1" : "0");
  }

  /**
   * {@return options with one of the linker's own, as it is, behind those before}
   *
   * @param argument such as {@code -kernels-used=reduce}
   * @throws IllegalArgumentException if it is no option, has a line break, or is -arch, -lto or
   *     -ptx
   */
  public LinkerOptions withArgument(String argument) {
    Objects.requireNonNull(argument, "argument");
    List<String> all = new ArrayList<>(arguments);
    all.add(argument);
    return new LinkerOptions(architecture, flags, all);
  }

  private LinkerOptions withFlag(String flag, String value) {
    Map<String, String> all = new LinkedHashMap<>(flags);
    all.put(flag, value);
    return new LinkerOptions(architecture, all, arguments);
  }

  private LinkerOptions withSwitch(String flag, boolean on) {
    if (on) {
      return withFlag(flag, "");
    }
    Map<String, String> fewer = new LinkedHashMap<>(flags);
    fewer.remove(flag);
    return new LinkerOptions(architecture, fewer, arguments);
  }
}
