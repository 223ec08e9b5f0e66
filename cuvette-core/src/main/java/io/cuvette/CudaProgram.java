package io.cuvette;

import io.cuvette.driver.CompilerCalls;
import io.cuvette.driver.CompilerException;
import io.cuvette.internal.program.CodeFolder;
import io.cuvette.internal.program.Compilation;
import io.cuvette.internal.program.Texts;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Optional;

/**
 * A program in CUDA C++, which NVRTC compiles. NVRTC is a library of the CUDA toolkit that is
 * looked for and loaded by the first {@link #compile}; no GPU and no driver is needed. Nothing is
 * open between calls. Immutable, so that any thread may compile it, also several at once.
 *
 * @param source the source
 * @param name what messages call the source, such as {@code reduce.cu}; headers in quotes are
 *     looked for in its folder, which is the working folder of the process for a name without one
 * @param options how it is compiled
 * @param cache where code is kept
 */
public record CudaProgram(String source, String name, CompilerOptions options, ProgramCache cache) {

  /**
   * A program; nothing is compiled yet.
   *
   * @throws IllegalArgumentException if the source is blank or has a character 0, or if the name is
   *     blank or has a line break
   */
  public CudaProgram {
    Texts.check("source", source);
    if (source.isBlank()) {
      throw new IllegalArgumentException("source: blank (expected: CUDA C++)");
    }
    Texts.checkOption("name", name);
    Objects.requireNonNull(options, "options");
    Objects.requireNonNull(cache, "cache");
  }

  /**
   * {@return a program with the compiler's own choice of options, kept in the {@linkplain
   * ProgramCache#standard cache of this user}}
   *
   * @param source the source
   * @throws IllegalArgumentException if it is blank or has a character 0
   */
  public static CudaProgram of(String source) {
    return new CudaProgram(source, "program.cu", CompilerOptions.DEFAULTS, ProgramCache.standard());
  }

  /**
   * {@return this program with another name}
   *
   * @param name such as {@code reduce.cu}
   * @throws IllegalArgumentException if it is blank or has a line break
   */
  public CudaProgram withName(String name) {
    return new CudaProgram(source, name, options, cache);
  }

  /**
   * {@return this program with other options}
   *
   * @param options the options
   */
  public CudaProgram withOptions(CompilerOptions options) {
    return new CudaProgram(source, name, options, cache);
  }

  /**
   * {@return this program with another cache}
   *
   * @param cache the cache
   */
  public CudaProgram withCache(ProgramCache cache) {
    return new CudaProgram(source, name, options, cache);
  }

  /**
   * {@return the program compiled, or from the cache} The log has the compiler's warnings.
   *
   * @param kind PTX, which the driver compiles for its device; CUBIN, for the architecture of the
   *     options alone; LTOIR, for {@link CudaLinker}
   * @throws IllegalArgumentException for another kind, for a cubin without an architecture, for an
   *     architecture that the compiler does not know, or for a folder of headers that is not there
   * @throws CompilerException if the program does not compile; it has the log
   * @throws UnsupportedOperationException if NVRTC is missing, with where it was looked for and
   *     what to install
   */
  public KernelCode compile(KernelCode.Kind kind) {
    Objects.requireNonNull(kind, "kind");
    CompilerCalls calls =
        CompilerCalls.find()
            .orElseThrow(() ->
                new UnsupportedOperationException(
                    "no compiler; add io.cuvette.ffm (artifact cuvette-ffm)"));
    return compile(kind, calls);
  }

  /** The same with a compiler of its own, for tests. */
  KernelCode compile(KernelCode.Kind kind, CompilerCalls calls) {
    Path folder = cache.folder();
    Optional<CodeFolder> kept =
        Optional.ofNullable(folder).map(path -> new CodeFolder(path, cache.limitBytes()));
    Compilation compilation =
        new Compilation(
            calls,
            kind,
            source,
            name,
            options.arguments(kind),
            options.includeFolders(),
            options.headers(),
            options.nameExpressions(),
            options.architecture());
    return compilation.run(kept);
  }
}
