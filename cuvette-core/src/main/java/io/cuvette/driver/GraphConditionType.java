package io.cuvette.driver;

/** The types of conditional nodes (CUgraphConditionalNodeType). */
public enum GraphConditionType {
  /**
   * The first body runs once if the condition is not 0; else the second one, if there is one, for
   * which CUDA 12.8 is needed.
   */
  IF,
  /** The body runs again and again while the condition is not 0. */
  WHILE,
  /** The body whose index is the condition runs once, if there is one; needs CUDA 12.8. */
  SWITCH
}
