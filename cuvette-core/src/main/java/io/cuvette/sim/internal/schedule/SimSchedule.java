package io.cuvette.sim.internal.schedule;

import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.SimulatedOrder;
import io.cuvette.sim.SimulatedPace;
import java.util.List;
import java.util.SplittableRandom;

/**
 * When queued work runs, and in which order. Twelve seeds in a row have all combinations.
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

  public static SimSchedule of(SimulatedOptions options) {
    SplittableRandom random = new SplittableRandom(options.seed());
    return new SimSchedule(
        pace(options.pace(), options.seed(), random.split()),
        order(options.order(), options.seed(), random.split()));
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
