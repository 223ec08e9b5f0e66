package io.cuvette.internal.fence;

import java.util.function.Predicate;

/** Is notified when somebody waits for streams or devices, as pools of the driver have to know. */
public interface SyncListener {
  /** Before the work of some streams is waited for, or ends. */
  void beforeWait(Predicate<MarkedStream> of);

  /** After a stream was waited for. */
  void afterStream();

  /** After a device was waited for. */
  void afterDevice();
}
