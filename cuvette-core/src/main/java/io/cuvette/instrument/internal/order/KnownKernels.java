package io.cuvette.instrument.internal.order;

import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import io.cuvette.instrument.internal.report.Handles;
import java.util.HashSet;
import java.util.Set;

/** What the sanitizer knows about libraries and their kernels. Not thread-safe. */
public final class KnownKernels {
  /** With the kernels that were found in them. */
  public final Handles<Set<Long>> libraries = new Handles<>("library");

  /** Those of live libraries. */
  public final Handles<Boolean> kernels = new Handles<>("kernel");

  /** Notes a kernel that was found in a library, which may have been unloaded since. */
  public void found(long library, long kernel, CallTrace here, Findings findings) {
    Set<Long> known = libraries.isLive(library) ? libraries.use(library, here, findings) : null;
    if (known != null && known.add(kernel)) {
      kernels.add(kernel, true, null);
    }
  }

  /** Ends the kernels of a library that is about to be unloaded, and gives them. */
  public Set<Long> end(long library, CallTrace here, Findings findings) {
    Set<Long> known = libraries.isLive(library) ? libraries.use(library, here, findings) : null;
    if (known == null) {
      return Set.of();
    }
    Set<Long> ended = new HashSet<>(known);
    ended.forEach(kernel -> kernels.destroy(kernel, here));
    return ended;
  }

  /** Puts back the kernels of a library that the driver refused to unload. */
  public void restore(Set<Long> ended) {
    ended.forEach(kernel -> kernels.add(kernel, true, null));
  }
}
