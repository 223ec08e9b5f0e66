package io.cuvette.driver;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;

/**
 * Calls of NVRTC, the compiler for CUDA C++, a library that need not be there: it is looked for and
 * loaded by the first call. Each call throws {@link UnsupportedOperationException} if it is
 * missing, with where it was looked for and what to install, and {@link CompilerException} if it
 * reports an error. Texts have no 0. Found with {@link ServiceLoader}. Thread-safe; a program is
 * for one thread at a time.
 */
public interface CompilerCalls {

  /** {@return the calls of this machine; empty if no module provides them} */
  static Optional<CompilerCalls> find() {
    return ServiceLoader.load(CompilerCalls.class, CompilerCalls.class.getClassLoader()).stream()
        .map(ServiceLoader.Provider::get)
        .findFirst();
  }

  /** {@return the file of the library} */
  String library();

  /** {@return the version, such as 13000 of 13.0 (nvrtcVersion)} */
  int version();

  /**
   * {@return the architectures that can be compiled for, such as 90 (nvrtcGetNumSupportedArchs,
   * nvrtcGetSupportedArchs)}
   */
  List<Integer> supportedArchitectures();

  /**
   * Creates a program (nvrtcCreateProgram).
   *
   * @param source the source
   * @param name what the log calls it
   * @param headers the sources of headers by the names that they are included by
   * @return the handle of the program, which the caller destroys
   */
  long createProgram(String source, String name, Map<String, String> headers);

  /**
   * Destroys a program (nvrtcDestroyProgram).
   *
   * @param program the handle of the program
   */
  void destroyProgram(long program);

  /**
   * Has a program compile what an expression names, before it is compiled (nvrtcAddNameExpression).
   *
   * @param program the handle of the program
   * @param expression a function or a variable, such as {@code add<int>}
   */
  void addNameExpression(long program, String expression);

  /**
   * Compiles a program (nvrtcCompileProgram).
   *
   * @param program the handle of the program
   * @param options the options, such as {@code --std=c++20}
   */
  void compileProgram(long program, List<String> options);

  /**
   * {@return the log of a compiled program, or of one that does not compile
   * (nvrtcGetProgramLogSize, nvrtcGetProgramLog)}
   *
   * @param program the handle of the program
   */
  String getProgramLog(long program);

  /**
   * {@return the PTX of a compiled program, without the 0 behind it; empty if there is none
   * (nvrtcGetPTXSize, nvrtcGetPTX)}
   *
   * @param program the handle of the program
   */
  byte[] getPtx(long program);

  /**
   * {@return the cubin of a compiled program; empty if there is none (nvrtcGetCUBINSize,
   * nvrtcGetCUBIN)}
   *
   * @param program the handle of the program
   */
  byte[] getCubin(long program);

  /**
   * {@return the LTO-IR of a compiled program; empty if there is none (nvrtcGetLTOIRSize,
   * nvrtcGetLTOIR)}
   *
   * @param program the handle of the program
   */
  byte[] getLtoIr(long program);

  /**
   * {@return the name in the code of what an expression names (nvrtcGetLoweredName)}
   *
   * @param program the handle of the program
   * @param expression as it was given to {@link #addNameExpression}
   */
  String getLoweredName(long program, String expression);
}
