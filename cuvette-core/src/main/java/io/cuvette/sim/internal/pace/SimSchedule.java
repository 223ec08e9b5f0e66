package io.cuvette.sim.internal.pace;

import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.SimulatedOrder;
import io.cuvette.sim.SimulatedPace;
import java.util.List;
import java.util.SplittableRandom;

/**
 * When queued work runs, and in which order. Twelve seeds in a row have all combinations; those of
 * the next twelve have them with streams that share queues, and code that is loaded early.
 *
 * @param pace how much runs while the host goes on
 * @param order which stream runs next
 */
public record SimSchedule(Pace pace, Order order) {
  private static final List<SimulatedPace> PACES =
      List.of(SimulatedPace.MIXED, SimulatedPace.LAZY, SimulatedPace.EAGER);
  private static final List<SimulatedOrder> ORDERS =
      List.of(
          SimulatedOrder.PRIORITY,
          SimulatedOrder.RANDOM,
          SimulatedOrder.FAIR,
          SimulatedOrder.PRIORITY);

  /** What CUDA_DEVICE_MAX_CONNECTIONS is unless somebody sets it. */
  private static final int QUEUES_OF_A_GPU = 8;

  public static SimSchedule of(SimulatedOptions options) {
    SplittableRandom random = new SplittableRandom(options.seed());
    return new SimSchedule(
        pace(options.pace(), options.seed(), random.split()),
        order(options.order(), options.seed(), random.split()));
  }

  /** How many queues the streams of a device share, as on a GPU; 0 if each has its own. */
  public static int queues(SimulatedOptions options) {
    return options.queues() >= 0 ? options.queues() : isSecond(options) ? QUEUES_OF_A_GPU : 0;
  }

  /**
   * Whether the code of kernels is loaded with its library, as CUDA_MODULE_LOADING=EAGER has it.
   */
  public static boolean loadsEagerly(SimulatedOptions options) {
    return isSecond(options);
  }

  /** Whether all combinations come for the second time. */
  private static boolean isSecond(SimulatedOptions options) {
    long round = Math.floorDiv(options.seed(), (long) PACES.size() * ORDERS.size());
    return Math.floorMod(round, 2) == 1;
  }

  private static Pace pace(SimulatedPace pace, long seed, SplittableRandom random) {
    return switch (pace) {
      case SEED -> pace(PACES.get(Math.floorMod(seed, PACES.size())), seed, random);
      case EAGER -> new EagerPace();
      case LAZY -> new LazyPace(random);
      case MIXED -> new MixedPace(random);
    };
  }

  private static Order order(SimulatedOrder order, long seed, SplittableRandom random) {
    return switch (order) {
      case SEED -> {
        long turn = Math.floorDiv(seed, (long) PACES.size());
        yield order(ORDERS.get(Math.floorMod(turn, ORDERS.size())), seed, random);
      }
      case PRIORITY -> new PriorityOrder(random);
      case FAIR -> new FairOrder();
      case RANDOM -> new RandomOrder(random);
    };
  }
}
