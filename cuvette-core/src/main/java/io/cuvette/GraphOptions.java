package io.cuvette;

/**
 * How a graph is instantiated (CUgraphInstantiate_flags). Immutable.
 *
 * @param freeOnLaunch whether a launch first frees what allocation nodes of the one before have
 *     allocated and nothing freed; without it such a launch is refused
 * @param nodePriorities whether kernel nodes run with the priorities that they have of their own,
 *     such as those of the streams that were captured, instead of that of the stream of the launch
 */
public record GraphOptions(boolean freeOnLaunch, boolean nodePriorities) {

  /** Neither. */
  public static final GraphOptions DEFAULTS = new GraphOptions(false, false);

  /**
   * {@return these options with freeing on launch or without}
   *
   * @param value whether a launch first frees what the one before left allocated
   */
  public GraphOptions withFreeOnLaunch(boolean value) {
    return new GraphOptions(value, nodePriorities);
  }

  /**
   * {@return these options with priorities of nodes or without}
   *
   * @param value whether kernel nodes run with priorities of their own
   */
  public GraphOptions withNodePriorities(boolean value) {
    return new GraphOptions(freeOnLaunch, value);
  }
}
