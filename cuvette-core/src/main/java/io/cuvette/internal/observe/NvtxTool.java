package io.cuvette.internal.observe;

import io.cuvette.driver.NvtxCalls;
import java.util.ServiceConfigurationError;
import org.jspecify.annotations.Nullable;

/** Finds the tool that listens. Stateless. */
public final class NvtxTool {
  private static final System.Logger LOG = System.getLogger("io.cuvette.nvtx");

  private NvtxTool() {}

  /** The calls of the tool; null if none listens. A program runs without one as well. */
  public static @Nullable NvtxCalls find() {
    try {
      return NvtxCalls.find().orElse(null);
    } catch (RuntimeException | LinkageError | ServiceConfigurationError e) {
      LOG.log(System.Logger.Level.WARNING, "NVTX is not used: no tool can be reached", e);
      return null;
    }
  }
}
