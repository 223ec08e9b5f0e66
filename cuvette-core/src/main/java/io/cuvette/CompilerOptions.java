package io.cuvette;

import io.cuvette.internal.program.Architectures;
import io.cuvette.internal.program.Texts;
import io.cuvette.internal.program.ToolkitHeaders;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * How {@link CudaProgram} compiles. Each method returns other options. Texts have no line break and
 * no character 0. Immutable.
 */
public final class CompilerOptions {
  /** The compiler's own choice of everything: PTX for the oldest architecture that it knows. */
  public static final CompilerOptions DEFAULTS =
      new CompilerOptions(null, Map.of(), List.of(), List.of(), Map.of(), Set.of());

  private static final Pattern IDENTIFIER = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*(\\(.*\\))?");
  private static final Pattern STANDARD = Pattern.compile("(c|gnu)\\+\\+\\d\\d");

  /** Options that a method stands for, or that read or write files that nobody would know of. */
  private static final Pattern RESERVED =
      Pattern.compile(
          "(-I|-D|-U|--include-path|-include|--pre-include|--define-macro|--undefine-macro"
              + "|-arch|--gpu-architecture|-std|--std|-dlto|--dlink-time-opt|-time|--time"
              + "|-fdevice-time-trace"
              + "|--fdevice-time-trace|-pch|--pch|--create-pch|-create-pch|--use-pch|-use-pch"
              + "|--pch-dir|-pch-dir|--optix-ir|-optix-ir).*");

  private final @Nullable String architecture;
  private final Map<String, String> flags;
  private final List<String> arguments;
  private final List<Path> includeFolders;
  private final Map<String, String> headers;
  private final Set<String> nameExpressions;

  private CompilerOptions(
      @Nullable String architecture,
      Map<String, String> flags,
      List<String> arguments,
      List<Path> includeFolders,
      Map<String, String> headers,
      Set<String> nameExpressions) {
    this.architecture = architecture;
    this.flags = flags;
    this.arguments = arguments;
    this.includeFolders = includeFolders;
    this.headers = headers;
    this.nameExpressions = nameExpressions;
  }

  /**
   * {@return options for an architecture} A cubin is for this one alone; PTX is for this one and
   * newer ones.
   *
   * @param name such as {@code sm_90}, {@code sm_90a} or {@code compute_90}; which of the two is
   *     meant is known by what is compiled to
   * @throws IllegalArgumentException if it is no architecture
   */
  public CompilerOptions withArchitecture(String name) {
    Objects.requireNonNull(name, "name");
    return new CompilerOptions(
        Architectures.suffix(name), flags, arguments, includeFolders, headers, nameExpressions);
  }

  /**
   * {@return options for the architecture of a device, such as that of {@link
   * CudaDevice#computeCapability}}
   *
   * @param capability the compute capability
   * @throws IllegalArgumentException if it is no architecture
   */
  public CompilerOptions withArchitecture(ComputeCapability capability) {
    return withArchitecture("sm_" + Objects.requireNonNull(capability, "capability").digits());
  }

  /**
   * {@return options with a standard of C++}
   *
   * @param standard such as {@code c++20}; which ones there are is the compiler's
   * @throws IllegalArgumentException if it is not written so
   */
  public CompilerOptions withStandard(String standard) {
    Objects.requireNonNull(standard, "standard");
    if (!STANDARD.matcher(standard).matches()) {
      throw new IllegalArgumentException(
          "standard: '%s' (expected: such as c++17 or c++20)".formatted(standard));
    }
    return withFlag("--std", standard);
  }

  /**
   * {@return options with a macro of the value 1}
   *
   * @param name the name of the macro
   * @throws IllegalArgumentException if it is no name
   */
  public CompilerOptions withDefine(String name) {
    return withArgumentUnchecked("--define-macro=" + checkName(name));
  }

  /**
   * {@return options with a macro}
   *
   * @param name the name of the macro, with its parameters in parentheses if it has some
   * @param value what it stands for; may be empty
   * @throws IllegalArgumentException if the name is none, or the value has a line break
   */
  public CompilerOptions withDefine(String name, String value) {
    Texts.checkLine("value", value);
    return withArgumentUnchecked("--define-macro=" + checkName(name) + "=" + value);
  }

  /**
   * {@return options without a macro that is there by itself, or that was defined before}
   *
   * @param name the name of the macro
   * @throws IllegalArgumentException if it is no name
   */
  public CompilerOptions withUndefine(String name) {
    return withArgumentUnchecked("--undefine-macro=" + checkName(name));
  }

  private static String checkName(String name) {
    Texts.checkOption("name", name);
    if (!IDENTIFIER.matcher(name).matches()) {
      throw new IllegalArgumentException("name: '%s' (expected: a name of C++)".formatted(name));
    }
    return name;
  }

  /**
   * {@return options with one more folder of headers, behind those before} A header in quotes is
   * looked for beside what includes it first; for the source that is the folder of its name.
   *
   * @param folder the folder, which must be there when something is compiled
   * @throws IllegalArgumentException if its name has a line break
   */
  public CompilerOptions withIncludeFolder(Path folder) {
    Path absolute = Objects.requireNonNull(folder, "folder").toAbsolutePath().normalize();
    Texts.checkOption("folder", absolute.toString());
    return new CompilerOptions(
        architecture, flags, arguments, with(includeFolders, absolute), headers, nameExpressions);
  }

  /**
   * {@return options with the folders of the toolkit's headers, such as {@code
   * cooperative_groups.h}} They are looked for beside the folders where its libraries are.
   *
   * @throws UnsupportedOperationException if they are not on this machine, with where they were
   *     looked for and what to install
   */
  public CompilerOptions withCudaHeaders() {
    CompilerOptions options = this;
    for (Path folder : ToolkitHeaders.find()) {
      options = options.withIncludeFolder(folder);
    }
    return options;
  }

  /**
   * {@return options with a header that is in no folder}
   *
   * @param name what it is included by, such as {@code tile.h}
   * @param source its source
   * @throws IllegalArgumentException if the name is blank or has a line break, or if the source has
   *     a character 0
   */
  public CompilerOptions withHeader(String name, String source) {
    Texts.check("source", source);
    Texts.checkOption("name", name);
    return new CompilerOptions(
        architecture,
        flags,
        arguments,
        includeFolders,
        with(headers, name, source),
        nameExpressions);
  }

  /**
   * {@return options that have a function or a variable compiled and its name in the code known,
   * see {@link KernelCode#loweredName}} An instance of a template is compiled only if it is named
   * so or used.
   *
   * @param expression such as {@code scale<float>} or {@code &solver::constants}
   * @throws IllegalArgumentException if it is blank or has a line break
   */
  public CompilerOptions withNameExpression(String expression) {
    Texts.checkOption("expression", expression);
    Map<String, String> all = new LinkedHashMap<>();
    nameExpressions.forEach(each -> all.put(each, ""));
    all.put(expression, "");
    return new CompilerOptions(
        architecture, flags, arguments, includeFolders, headers, ordered(all).keySet());
  }

  /**
   * {@return options with or without debug information, and with code that is not optimized
   * (--device-debug)}
   *
   * @param debug whether there is debug information
   */
  public CompilerOptions withDebug(boolean debug) {
    return withSwitch("--device-debug", debug);
  }

  /**
   * {@return options with or without the lines of the source, which profilers show
   * (--generate-line-info)}
   *
   * @param lines whether the code has the lines
   */
  public CompilerOptions withLineInfo(boolean lines) {
    return withSwitch("--generate-line-info", lines);
  }

  /**
   * {@return options with or without faster and less exact functions: flushed denormals, division
   * and roots that are not exact, fused multiplication (--use_fast_math)}
   *
   * @param fast whether functions are faster and less exact
   */
  public CompilerOptions withFastMath(boolean fast) {
    return withSwitch("--use_fast_math", fast);
  }

  /**
   * {@return options by which single-precision denormals become 0, or stay (--ftz)}
   *
   * @param flush whether they become 0
   */
  public CompilerOptions withFlushToZero(boolean flush) {
    return withFlag("--ftz", Boolean.toString(flush));
  }

  /**
   * {@return options by which single-precision division is exact, or faster (--prec-div)}
   *
   * @param exact whether it is exact
   */
  public CompilerOptions withPreciseDivision(boolean exact) {
    return withFlag("--prec-div", Boolean.toString(exact));
  }

  /**
   * {@return options by which single-precision roots are exact, or faster (--prec-sqrt)}
   *
   * @param exact whether they are exact
   */
  public CompilerOptions withPreciseRoot(boolean exact) {
    return withFlag("--prec-sqrt", Boolean.toString(exact));
  }

  /**
   * {@return options by which a product and a sum may be one operation, or not (--fmad)}
   *
   * @param fused whether they may
   */
  public CompilerOptions withFusedMultiplyAdd(boolean fused) {
    return withFlag("--fmad", Boolean.toString(fused));
  }

  /**
   * {@return options with a limit of registers for each thread (--maxrregcount)}
   *
   * @param registers the most registers, at least 1 and at most 255
   * @throws IllegalArgumentException for another number
   */
  public CompilerOptions withMaxRegisters(int registers) {
    if (registers < 1 || registers > 255) {
      throw new IllegalArgumentException("registers: %d (expected: 1 to 255)".formatted(registers));
    }
    return withFlag("--maxrregcount", Integer.toString(registers));
  }

  /**
   * {@return options whose code can be linked with other code, or is whole
   * (--relocatable-device-code)}
   *
   * @param relocatable whether it can be linked
   */
  public CompilerOptions withRelocatableCode(boolean relocatable) {
    return withFlag("--relocatable-device-code", Boolean.toString(relocatable));
  }

  /**
   * {@return options by which functions that do not say where they run are functions of the device,
   * or an error (--device-as-default-execution-space)}
   *
   * @param device whether they are functions of the device
   */
  public CompilerOptions withDefaultDevice(boolean device) {
    return withSwitch("--device-as-default-execution-space", device);
  }

  /**
   * {@return options by which no pointers among the parameters of kernels alias, or may
   * (--restrict)}
   *
   * @param restrict whether none do
   */
  public CompilerOptions withRestrict(boolean restrict) {
    return withSwitch("--restrict", restrict);
  }

  /**
   * {@return options without or with warnings in the log (--disable-warnings)}
   *
   * @param disabled whether there are none
   */
  public CompilerOptions withWarningsDisabled(boolean disabled) {
    return withSwitch("--disable-warnings", disabled);
  }

  /**
   * {@return options with an option for the assembler, behind those before (--ptxas-options)}
   *
   * @param option such as {@code --verbose}
   * @throws IllegalArgumentException if it is blank or has a line break
   */
  public CompilerOptions withAssemblerOption(String option) {
    return withArgumentUnchecked("--ptxas-options=" + Texts.checkOption("option", option));
  }

  /**
   * {@return options with one of the compiler's own, as it is, behind those before}
   *
   * @param argument such as {@code --extra-device-vectorization} or {@code --diag-suppress=177}
   * @throws IllegalArgumentException if it is no option, has a line break, or is one that a method
   *     here stands for or that reads or writes files
   */
  public CompilerOptions withArgument(String argument) {
    Texts.checkOption("argument", argument);
    if (!argument.startsWith("-") || RESERVED.matcher(argument).matches()) {
      throw new IllegalArgumentException(
          "argument: '%s' (expected: an option that begins with '-', none for macros, folders,"
                  .formatted(argument)
              + " architecture, standard or files)");
    }
    return withArgumentUnchecked(argument);
  }

  private CompilerOptions withArgumentUnchecked(String argument) {
    return new CompilerOptions(
        architecture, flags, with(arguments, argument), includeFolders, headers, nameExpressions);
  }

  private CompilerOptions withFlag(String flag, String value) {
    return new CompilerOptions(
        architecture,
        with(flags, flag, value),
        arguments,
        includeFolders,
        headers,
        nameExpressions);
  }

  private CompilerOptions withSwitch(String flag, boolean on) {
    if (on) {
      return withFlag(flag, "");
    }
    Map<String, String> fewer = new LinkedHashMap<>(flags);
    fewer.remove(flag);
    return new CompilerOptions(
        architecture, ordered(fewer), arguments, includeFolders, headers, nameExpressions);
  }

  private static <T> List<T> with(List<T> before, T more) {
    List<T> all = new ArrayList<>(before);
    all.add(more);
    return List.copyOf(all);
  }

  private static Map<String, String> with(Map<String, String> before, String key, String value) {
    Map<String, String> all = new LinkedHashMap<>(before);
    all.put(key, value);
    return ordered(all);
  }

  private static Map<String, String> ordered(Map<String, String> map) {
    return Collections.unmodifiableMap(map);
  }

  /** {@return the architecture, such as {@code sm_90}, if one was given} */
  public Optional<String> architecture() {
    return Optional.ofNullable(architecture).map(suffix -> "sm_" + suffix);
  }

  /** {@return the folders of headers, in their order} Unmodifiable. */
  public List<Path> includeFolders() {
    return includeFolders;
  }

  /** {@return the headers that are in no folder, by what they are included by} Unmodifiable. */
  public Map<String, String> headers() {
    return headers;
  }

  /** {@return the expressions whose names in the code will be known} Unmodifiable. */
  public Set<String> nameExpressions() {
    return nameExpressions;
  }

  /**
   * {@return what the compiler is given for a kind of code, such as {@code --std=c++20}}
   *
   * @param kind PTX, CUBIN or LTOIR
   * @throws IllegalArgumentException for another kind, or for a cubin without an architecture
   */
  public List<String> arguments(KernelCode.Kind kind) {
    List<String> all = new ArrayList<>();
    switch (Objects.requireNonNull(kind, "kind")) {
      case PTX -> {}
      case CUBIN -> {
        if (architecture == null) {
          throw new IllegalArgumentException(
              "kind: CUBIN without an architecture (expected: withArchitecture, such as that of"
                  + " the device)");
        }
      }
      case LTOIR -> all.add("-dlto");
      default ->
          throw new IllegalArgumentException(
              "kind: %s (expected: PTX, CUBIN or LTOIR, which NVRTC compiles to)".formatted(kind));
    }
    if (architecture != null) {
      String form = kind == KernelCode.Kind.PTX ? "compute_" : "sm_";
      all.add("--gpu-architecture=" + form + architecture);
    }
    flags.forEach((flag, value) -> all.add(value.isEmpty() ? flag : flag + "=" + value));
    all.addAll(arguments);
    includeFolders.forEach(folder -> all.add("--include-path=" + folder));
    return List.copyOf(all);
  }

  /** {@return whether they have the same effect: all that was given is equal} */
  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof CompilerOptions options
        && Objects.equals(architecture, options.architecture)
        && flags.equals(options.flags)
        && arguments.equals(options.arguments)
        && includeFolders.equals(options.includeFolders)
        && headers.equals(options.headers)
        && nameExpressions.equals(options.nameExpressions);
  }

  @Override
  public int hashCode() {
    return Objects.hash(architecture, flags, arguments, includeFolders, headers, nameExpressions);
  }

  /** {@return what was given, for messages} */
  @Override
  public String toString() {
    return "CompilerOptions[%s %s %s %s headers %s names %s]"
        .formatted(
            architecture().orElse("no architecture"),
            flags,
            arguments,
            includeFolders,
            headers.keySet(),
            nameExpressions);
  }
}
