package io.cuvette.driver;

import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;

/**
 * Calls of a linker for code of devices, as nvJitLink has them: of that library, or of the driver's
 * own linker. What links need not be there: it is looked for and loaded by the first call. Each
 * call throws {@link UnsupportedOperationException} if it is missing or cannot do what is asked
 * for, with where it was looked for and what to install, and {@link CompilerException} if it
 * reports an error. Texts have no 0. Found with {@link ServiceLoader}. Thread-safe; a linker is for
 * one thread at a time.
 */
public interface LinkerCalls {

  /** {@return the calls of this machine, those of nvJitLink; empty if no module provides them} */
  static Optional<LinkerCalls> find() {
    return all().stream().findFirst();
  }

  /**
   * {@return all calls of this machine: those of nvJitLink, then those of the driver, which stand
   * in where nvJitLink is missing}
   */
  static List<LinkerCalls> all() {
    return ServiceLoader.load(LinkerCalls.class, LinkerCalls.class.getClassLoader()).stream()
        .map(ServiceLoader.Provider::get)
        .toList();
  }

  /** {@return the file of the library} */
  String library();

  /** {@return the version, such as 13000 of 13.0 (nvJitLinkVersion, cuDriverGetVersion)} */
  int version();

  /**
   * Creates a linker (nvJitLinkCreate, cuLinkCreate). A linker that cannot be created leaves
   * nothing behind; its log is part of the failure.
   *
   * @param options the options, such as {@code -arch=sm_90}. The library ends the process for an
   *     architecture of one digit.
   * @return the handle of the linker, which the caller destroys
   */
  long create(List<String> options);

  /**
   * Destroys a linker (nvJitLinkDestroy, cuLinkDestroy).
   *
   * @param linker the handle of the linker
   */
  void destroy(long linker);

  /**
   * Adds an input (nvJitLinkAddData, cuLinkAddData).
   *
   * @param linker the handle of the linker
   * @param type the type, an nvJitLinkInputType: 1 cubin, 2 PTX, 3 LTO-IR, 4 fatbin, 5 object, 6
   *     library
   * @param data the input
   * @param name what the log calls it
   */
  void addData(long linker, int type, byte[] data, String name);

  /**
   * Links what was added (nvJitLinkComplete, cuLinkComplete).
   *
   * @param linker the handle of the linker
   */
  void complete(long linker);

  /**
   * {@return the linked cubin (nvJitLinkGetLinkedCubinSize, nvJitLinkGetLinkedCubin)}
   *
   * @param linker the handle of the linker
   */
  byte[] getLinkedCubin(long linker);

  /**
   * {@return the linked PTX, without the 0 behind it (nvJitLinkGetLinkedPtxSize,
   * nvJitLinkGetLinkedPtx)}
   *
   * @param linker the handle of the linker
   */
  byte[] getLinkedPtx(long linker);

  /**
   * {@return errors and warnings (nvJitLinkGetErrorLogSize, nvJitLinkGetErrorLog)}
   *
   * @param linker the handle of the linker
   */
  String getErrorLog(long linker);

  /**
   * {@return what else is reported (nvJitLinkGetInfoLogSize, nvJitLinkGetInfoLog)}
   *
   * @param linker the handle of the linker
   */
  String getInfoLog(long linker);
}
