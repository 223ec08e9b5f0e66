package io.cuvette.cli.info;

/**
 * A library that Cuvette or its users can do without.
 *
 * @param name what it is called
 * @param file what its file starts with on Linux
 * @param windowsFile what its file starts with on Windows
 * @param install what to install if it is missing
 */
record OptionalLibrary(String name, String file, String windowsFile, String install) {
  private static final String TOOLKIT = " of the CUDA toolkit, or pip install nvidia-";

  static final OptionalLibrary[] ALL = {
    new OptionalLibrary(
        "libcudart", "libcudart.so", "cudart64_", "cuda-cudart" + TOOLKIT + "cuda-runtime"),
    new OptionalLibrary("cuBLAS", "libcublas.so", "cublas64_", "libcublas" + TOOLKIT + "cublas"),
    new OptionalLibrary(
        "cuSOLVER", "libcusolver.so", "cusolver64_", "libcusolver" + TOOLKIT + "cusolver"),
    new OptionalLibrary("cuRAND", "libcurand.so", "curand64_", "libcurand" + TOOLKIT + "curand"),
    new OptionalLibrary("NVRTC", "libnvrtc.so", "nvrtc64_", "cuda-nvrtc" + TOOLKIT + "cuda-nvrtc"),
    new OptionalLibrary(
        "NVTX", "libnvtx3interop.so", "nvtx3interop", "cuda-nvtx" + TOOLKIT + "nvtx")
  };
}
