/**
 * CUDA memory and device management: the API, the pools, the driver seam, the simulated device and
 * the instruments.
 */
module io.cuvette {
  requires static transitive org.jspecify;
  // The events of marks and ranges.
  requires jdk.jfr;

  exports io.cuvette;
  exports io.cuvette.driver;
  exports io.cuvette.instrument;
  exports io.cuvette.sim;

  uses io.cuvette.driver.CompilerCalls;
  uses io.cuvette.driver.CudaDriverProvider;
  uses io.cuvette.driver.DescriptorCalls;
  uses io.cuvette.driver.ForeignCalls;
  uses io.cuvette.driver.LinkerCalls;
  uses io.cuvette.driver.NvtxCalls;

  provides io.cuvette.driver.CudaDriverProvider with
      io.cuvette.sim.SimulatedDriverProvider;
}
