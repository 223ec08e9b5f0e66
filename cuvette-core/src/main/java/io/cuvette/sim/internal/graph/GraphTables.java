package io.cuvette.sim.internal.graph;

import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;

/** The graphs of a driver, and what belongs to them, by handle. Guarded by the driver's lock. */
public final class GraphTables {
  /** All graphs: one that is being captured is one already, and so are those inside nodes. */
  public final HandleTable<SimGraph> graphs = new HandleTable<>(HandleKind.GRAPH, false);

  /** A new node may have the handle of one that was removed, as of the real driver. */
  public final HandleTable<SimNode> nodes = new HandleTable<>(HandleKind.NODE, true);

  public final HandleTable<SimCondition> conditions =
      new HandleTable<>(HandleKind.CONDITION, false);

  private int live;

  /** The number of graphs that a program made and did not destroy. */
  public int live() {
    return live;
  }

  void count(int more) {
    live += more;
  }
}
