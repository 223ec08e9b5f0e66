package io.cuvette.ffm.part;

import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.UserObject;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;

/** Calls about graphs. Thread-safe. */
public final class FfmGraphs extends Part implements GraphCalls {
  public static final DriverFunction USER_OBJECT_CREATE =
      optional("cuUserObjectCreate()", 11030, OUT, POINTER, POINTER, INT, INT);
  public static final DriverFunction USER_OBJECT_RELEASE =
      optional("cuUserObjectRelease(object=%#x)", 11030, POINTER, INT);
  public static final DriverFunction GRAPH_RETAIN_USER_OBJECT =
      optional("cuGraphRetainUserObject(graph=%#x, object=%#x)", 11030, POINTER, POINTER, INT, INT);
  public static final DriverFunction GRAPH_INSTANTIATE =
      optional("cuGraphInstantiateWithFlags(graph=%#x, device=%3$d)", 11040, OUT, POINTER, SIZE);
  public static final DriverFunction GRAPH_LAUNCH =
      optional("cuGraphLaunch(executable=%#x, stream=%#x, device=%d)", 10000, POINTER, POINTER);
  public static final DriverFunction GRAPH_EXEC_DESTROY =
      optional("cuGraphExecDestroy(executable=%#x)", 10000, POINTER);
  public static final DriverFunction GRAPH_DESTROY =
      optional("cuGraphDestroy(graph=%#x)", 10000, POINTER);

  /** CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, which is required. */
  public static final int NO_DESTRUCTOR_SYNC = 1;

  /** CU_GRAPH_USER_OBJECT_MOVE. */
  public static final int MOVE_USER_OBJECT = 1;

  /** The part of the driver whose calls start here. */
  public FfmGraphs(Entry entry) {
    super(entry);
  }

  @Override
  public UserObject userObjectCreate() {
    Signal signal = Signal.take();
    try {
      long object =
          USER_OBJECT_CREATE.call(signal.address(), Signal.RAISE, 1, NO_DESTRUCTOR_SYNC, enter());
      return new UserObject(object, signal::isRaised);
    } catch (RuntimeException e) {
      signal.unused();
      throw e;
    }
  }

  @Override
  public void userObjectRelease(long object) {
    USER_OBJECT_RELEASE.free(object, 1, entry.enterToFree()); // one reference
  }

  @Override
  public void graphRetainUserObject(long graph, long object) {
    GRAPH_RETAIN_USER_OBJECT.call(graph, object, 1, MOVE_USER_OBJECT, enter());
  }

  @Override
  public long graphInstantiate(int device, long graph) {
    return GRAPH_INSTANTIATE.call(graph, 0, device, enter(device));
  }

  @Override
  public void graphLaunch(int device, long executable, long stream) {
    GRAPH_LAUNCH.call(executable, stream, device, enterAsIs(device));
  }

  @Override
  public void graphExecDestroy(long executable) {
    GRAPH_EXEC_DESTROY.free(executable, 0, entry.enterToFree());
  }

  @Override
  public void graphDestroy(long graph) {
    GRAPH_DESTROY.free(graph, 0, entry.enterToFree());
  }
}
