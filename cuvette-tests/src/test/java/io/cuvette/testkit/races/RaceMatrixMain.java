package io.cuvette.testkit.races;

import java.util.List;

/**
 * Runs the matrix on a device, in a JVM that may not survive it, and prints the table. What failed
 * comes behind it, with another exit code than 0.
 *
 * <p>Arguments: the device, such as {@code gpu}, the rounds of each cell, and the seconds that all
 * may take, or 0.
 */
public final class RaceMatrixMain {
  private RaceMatrixMain() {}

  public static void main(String[] arguments) throws Exception {
    Matrix matrix = Matrix.of(arguments[0]);
    matrix.run(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
    System.out.print(RaceTable.of(matrix.cells));
    List<Cell> failed = matrix.failed();
    for (Cell cell : failed) {
      System.out.println(cell);
      cell.outcomes.failures().forEach(failure -> failure.printStackTrace(System.out));
    }
    System.exit(failed.isEmpty() ? 0 : 1);
  }
}
