package io.cuvette.driver;

import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;

/**
 * Calls of nvJitLink, the linker for code of devices, a library that need not be there: it is
 * looked for and loaded by the first call. Each call throws {@link UnsupportedOperationException}
 * if it is missing, with where it was looked for and what to install, and {@link CompilerException}
 * if it reports an error. Texts have no 0. Found with {@link ServiceLoader}. Thread-safe; a linker
 * is for one thread at a time.
 */
public interface LinkerCalls {

  /** {@return the calls of this machine; empty if no module provides them} */
  static Optional<LinkerCalls> find() {
    return ServiceLoader.load(LinkerCalls.class, LinkerCalls.class.getClassLoader()).stream()
        .map(ServiceLoader.Provider::get)
        .findFirst();
  }

  /** {@return the file of the library} */
  String library();

  /** {@return the version, such as 13000 of 13.0 (nvJitLinkVersion)} */
  int version();

  /**
   * Creates a linker (nvJitLinkCreate). A linker that cannot be created leaves nothing behind; its
   * log is part of the failure.
   *
   * @param options the options, such as {@code -arch=sm_90}. The library ends the process for an
   *     architecture of one digit.
   * @return the handle of the linker, which the caller destroys
   */
  long create(List<String> options);

  /**
   * Destroys a linker (nvJitLinkDestroy).
   *
   * @param linker the handle of the linker
   */
  void destroy(long linker);

  /**
   * Adds an input (nvJitLinkAddData).
   *
   * @param linker the handle of the linker
   * @param type the type, an nvJitLinkInputType: 1 cubin, 2 PTX, 3 LTO-IR, 4 fatbin, 5 object, 6
   *     library
   * @param data the input
   * @param name what the log calls it
   */
  void addData(long linker, int type, byte[] data, String name);

  /**
   * Links what was added (nvJitLinkComplete).
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
