package io.cuvette.ffm;

import io.cuvette.CudaProgram;
import io.cuvette.KernelCode;

/** Compiles programs, the same ones in each process, and prints what went wrong. */
final class ProgramMain {
  private static final int PROGRAMS = 40;
  private static final int ROUNDS = 5;

  private ProgramMain() {}

  /** Prints how many were right. */
  public static void main(String[] arguments) {
    int right = 0;
    try {
      for (int i = 0; i < PROGRAMS * ROUNDS; i++) {
        String source = "source " + i % PROGRAMS;
        KernelCode code = CudaProgram.of(source).compile(KernelCode.Kind.PTX);
        right += code.text().equals("program.cu|" + source + "||") ? 1 : 0;
      }
    } catch (UnsupportedOperationException e) {
      System.out.println(e.getMessage());
    }
    System.out.println("right " + right + " of " + PROGRAMS * ROUNDS);
  }
}
