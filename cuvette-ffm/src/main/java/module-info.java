/**
 * The CUDA driver library through the Foreign Function and Memory API; the only native access of
 * Cuvette.
 */
module io.cuvette.ffm {
  requires static org.jspecify;
  requires io.cuvette;

  provides io.cuvette.driver.CudaDriverProvider with
      io.cuvette.ffm.FfmDriverProvider;
  provides io.cuvette.driver.DescriptorCalls with
      io.cuvette.ffm.FfmDescriptors;
  provides io.cuvette.driver.CompilerCalls with
      io.cuvette.ffm.toolkit.FfmCompiler;
  provides io.cuvette.driver.ForeignCalls with
      io.cuvette.ffm.foreign.FfmForeign;
  provides io.cuvette.driver.LinkerCalls with
      io.cuvette.ffm.toolkit.FfmLinker,
      io.cuvette.ffm.part.FfmDriverLinker;
  provides io.cuvette.driver.NvtxCalls with
      io.cuvette.ffm.nvtx.FfmNvtx;
}
