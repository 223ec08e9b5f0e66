package io.cuvette.testkit.crowd;

import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.driver.CudaException;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;

/** Which errors a crowd may meet. Stateless. */
enum Refusals {
  /** Memory that is short, and a time that was limited. */
  SHORTAGE {
    @Override
    boolean allow(Throwable e) {
      return e instanceof OutOfDeviceMemoryException
          || e instanceof OutOfPinnedMemoryException
          || e instanceof TimeoutException;
    }
  },

  /** Also that another thread has closed, captures, uses or has cancelled what a step is about. */
  OF_OTHERS {
    @Override
    boolean allow(Throwable e) {
      return SHORTAGE.allow(e)
          || e instanceof CancellationException
          || (e instanceof IllegalStateException && contains(e, REASONS))
          || (e instanceof CudaException && contains(e, STATUSES));
    }
  },

  /** Also a call of the driver that was made to fail, for the step or for what it waits for. */
  INJECTED {
    @Override
    boolean allow(Throwable e) {
      return OF_OTHERS.allow(e)
          || Stream.iterate(e, Objects::nonNull, Throwable::getCause)
              .anyMatch(each -> contains(each, List.of("injected fault")));
    }
  };

  private static final List<String> REASONS =
      List.of(
          "closed",
          "capturing a graph",
          "takes part in a capture",
          "on a virtual thread",
          "operations of others go on",
          "a graph uses it",
          "is acquired by"); // an arena whose memory a graph still uses

  private static final List<String> STATUSES =
      List.of(
          "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
          "CUDA_ERROR_STREAM_CAPTURE_",
          "CUDA_ERROR_CAPTURED_EVENT",
          "the event was last recorded in a capture");

  abstract boolean allow(Throwable e);

  private static boolean contains(Throwable e, List<String> parts) {
    return parts.stream().anyMatch(String.valueOf(e.getMessage())::contains);
  }
}
