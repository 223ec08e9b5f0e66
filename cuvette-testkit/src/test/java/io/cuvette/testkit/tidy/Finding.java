package io.cuvette.testkit.tidy;

/** One place that breaks a rule. Immutable. */
record Finding(String path, int line, String message) {
  @Override
  public String toString() {
    return path + ":" + line + ": " + message;
  }
}
