package io.cuvette;

/**
 * Code that queues the work of a graph.
 *
 * @param <X> what it throws; {@code RuntimeException} if nothing checked
 */
@FunctionalInterface
public interface CaptureBody<X extends Exception> {
  /**
   * Queues the work.
   *
   * @throws X as it likes: the capture ends, and there is no graph
   */
  void run() throws X;
}
