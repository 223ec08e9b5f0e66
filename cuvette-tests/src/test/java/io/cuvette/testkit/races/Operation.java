package io.cuvette.testkit.races;

import java.util.function.Function;

/**
 * A public operation as a row of the table.
 *
 * @param method the class and the method with its parameters, as {@link PublicApi} names it
 * @param variant which memory it works with, or empty
 * @param needsSimulator whether no GPU can do it within one process
 * @param prepare makes what one round needs, and gives what is raced
 */
record Operation(
    String method, String variant, boolean needsSimulator, Function<Stage, Runnable> prepare) {

  static Operation of(String method, Function<Stage, Runnable> prepare) {
    return new Operation(method, "", false, prepare);
  }

  static Operation of(String method, Object variant, Function<Stage, Runnable> prepare) {
    return new Operation(method, variant.toString(), false, prepare);
  }

  static Operation simulated(String method, Function<Stage, Runnable> prepare) {
    return new Operation(method, "", true, prepare);
  }

  @Override
  public String toString() {
    return variant.isEmpty() ? method : method + ", " + variant;
  }
}
