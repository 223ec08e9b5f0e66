package io.cuvette;

/** How a profile would be written, for {@link CudaProfiler#initialize} (CUoutput_mode). */
public enum ProfilerOutput {
  /** A key and a value for each entry (CU_OUT_KEY_VALUE_PAIR). */
  KEY_VALUE_PAIR,
  /** Values separated by commas (CU_OUT_CSV). */
  CSV
}
