package io.cuvette.ffm.nvtx;

/**
 * Where the functions of NVTX are: in the interop library, or in the tool that is called directly.
 */
interface NvtxLibrary {
  /** The file. */
  String file();

  /** The address of a function, such as nvtxDomainMarkEx; 0 if there is none. */
  long find(String function);
}
