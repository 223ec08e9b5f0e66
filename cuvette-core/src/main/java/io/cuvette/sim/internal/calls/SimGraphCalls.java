package io.cuvette.sim.internal.calls;

import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.UserObject;
import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimExecutable;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.machine.SimUserObject;
import io.cuvette.sim.internal.schedule.SimStream;

/** The calls about graphs. Thread-safe. */
public final class SimGraphCalls implements GraphCalls {
  public final HandleTable<SimExecutable> executables =
      new HandleTable<>(HandleKind.EXECUTABLE, false);
  public final HandleTable<SimUserObject> userObjects =
      new HandleTable<>(HandleKind.USER_OBJECT, true);
  private final SimMachine machine;

  public SimGraphCalls(SimMachine machine) {
    this.machine = machine;
  }

  @Override
  public UserObject userObjectCreate() {
    return machine.call(
        () -> {
          long[] handle = new long[1];
          SimUserObject object = new SimUserObject(() -> userObjects.remove(handle[0]));
          handle[0] = userObjects.add(object);
          return new UserObject(handle[0], object::isDestroyed);
        },
        () -> "cuUserObjectCreate()");
  }

  @Override
  public void userObjectRelease(long object) {
    machine.run(
        () -> userObjects.get(object).release(),
        () -> call("cuUserObjectRelease", "object", object));
  }

  @Override
  public void graphRetainUserObject(long graph, long object) {
    machine.run(
        () -> machine.captures.graphs.get(graph).retain(userObjects.get(object)),
        () -> "cuGraphRetainUserObject(graph=0x%x, object=0x%x)".formatted(graph, object));
  }

  @Override
  public long graphInstantiate(int device, long graph) {
    return machine.callLong(
        () -> {
          machine.working(device);
          return executables.add(machine.captures.graphs.get(graph).instantiate());
        },
        () -> call("cuGraphInstantiateWithFlags", "graph", graph));
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    machine.run(
        () -> {
          SimStream queue = machine.stream(machine.working(device), stream);
          machine.spend(SimCosts.SUBMIT);
          executables.get(executable).launch(machine, queue);
        },
        () -> "cuGraphLaunch(executable=0x%x, stream=0x%x)".formatted(executable, stream));
  }

  @Override
  public void graphExecDestroy(long executable) {
    machine.run(
        () -> executables.remove(executable).destroy(),
        () -> call("cuGraphExecDestroy", "executable", executable));
  }

  @Override
  public void graphDestroy(long graph) {
    machine.run(
        () -> machine.captures.graphs.remove(graph).destroy(),
        () -> call("cuGraphDestroy", "graph", graph));
  }

  private static String call(String name, String parameter, long handle) {
    return "%s(%s=0x%x)".formatted(name, parameter, handle);
  }
}
