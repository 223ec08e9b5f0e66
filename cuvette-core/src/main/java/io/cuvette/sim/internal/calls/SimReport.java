package io.cuvette.sim.internal.calls;

import io.cuvette.sim.internal.graph.GraphBlock;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.pool.PoolUse;
import java.util.function.Consumer;

/** Says what of a driver is live. Stateless. */
public final class SimReport {

  private SimReport() {}

  public static String of(
      SimMachine machine,
      SimEventCalls events,
      SimGraphCalls graphs,
      SimKernelCalls kernels,
      SimMathCalls math,
      String virtual) {
    StringBuilder text = new StringBuilder();
    Consumer<SimBlock> line = block -> text.append(isLive(block) ? line(block) : "");
    machine.memories().forEach(memory -> memory.forEach(line));
    machine.hostMemory.forEach(line);
    machine.streams.forEach(stream ->
        text.append("stream id %d, device %d\n".formatted(stream.id, stream.device.index)));
    events.all.forEach(event ->
        text.append("event flags %d, device %d\n".formatted(event.flags, event.device.index)));
    machine.graphs.graphs.forEach(graph ->
        text.append(graph.isInside() ? "" : "graph of %d nodes\n".formatted(graph.size())));
    graphs.executables.forEach(_ -> text.append("graph executable\n"));
    kernels.libraries.forEach(
        library -> text.append("library of %d kernels\n".formatted(library.size())));
    math.handles.forEach(handle ->
        text.append(
            "handle of %s, device %d\n".formatted(handle.library(), handle.device().index)));
    graphs.userObjects.forEach(_ -> text.append("user object\n"));
    machine.pools.forEachLive(pool ->
        text.append(
            "%spool 0x%x of %s\n"
                .formatted(imported(pool.isImported()), pool.handle(), pool.kind)));
    return text.append(virtual).toString();
  }

  /** Whether a program has allocated it: memory of graphs has its address always. */
  private static boolean isLive(SimBlock block) {
    GraphBlock ofGraph = GraphBlock.of(block);
    return !block.isRetired() && (ofGraph == null || ofGraph.isOpen());
  }

  private static String imported(boolean is) {
    return is ? "imported " : "";
  }

  private static String line(SimBlock block) {
    PoolUse use = PoolUse.of(block);
    return "%s%s memory %s%s\n"
        .formatted(
            imported(block.isImported()),
            block instanceof HostBlock host ? host.kind.name() : "DEVICE",
            block,
            use == null ? "" : " from a pool of " + use.pool.kind);
  }
}
