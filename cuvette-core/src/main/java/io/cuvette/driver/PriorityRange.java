package io.cuvette.driver;

/**
 * The priorities of streams: a lower number is more urgent. Immutable.
 *
 * @param least the least urgent priority, the largest number, usually 0
 * @param greatest the most urgent priority, the smallest number, such as -5
 */
public record PriorityRange(int least, int greatest) {

  /**
   * {@return whether a stream can have this priority}
   *
   * @param priority the priority
   */
  public boolean contains(int priority) {
    return greatest <= priority && priority <= least;
  }
}
