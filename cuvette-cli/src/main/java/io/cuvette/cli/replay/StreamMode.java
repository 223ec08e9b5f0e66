package io.cuvette.cli.replay;

import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/**
 * On which streams a trace is replayed. Immutable.
 *
 * @param text how it is written on the command line
 * @param turning over how many new streams the allocations take turns; 0 for those recorded
 */
record StreamMode(String text, int turning) {
  /** A stream for each recorded one: the built-in ones for theirs, new ones for the others. */
  static final StreamMode RECORDED = new StreamMode("recorded", 0);

  /** One new stream for all. */
  static final StreamMode SINGLE = new StreamMode("single", 1);

  private static final int MOST_STREAMS = 1024;
  private static final Pattern TURNING = Pattern.compile("turning:([1-9][0-9]{0,3})");

  /** The first recorded number that is no built-in stream's. */
  private static final long FIRST_OTHER = 3;

  /**
   * The trace with the streams of this mode: the allocations take turns, and each free is in order
   * of the stream that allocated the block.
   */
  Trace applyTo(Trace trace) {
    if (turning == 0) {
      return trace;
    }
    int operations = trace.operations();
    int[] streams = new int[operations];
    int[] ofSlot = new int[trace.slotCount()];
    int allocations = 0;
    for (int i = 0; i < operations; i++) {
      int slot = trace.slots()[i];
      if (trace.bytes()[i] != Trace.FREE) {
        ofSlot[slot] = allocations++ % turning;
      }
      streams[i] = ofSlot[slot];
    }
    return trace.withStreams(streams, newStreams(Math.min(turning, allocations)));
  }

  private static long[] newStreams(int count) {
    long[] ids = new long[count];
    for (int i = 0; i < count; i++) {
      ids[i] = FIRST_OTHER + i;
    }
    return ids;
  }

  /** The streams of a trace, by their index in it. */
  static CudaStream[] open(Trace trace, CudaDevice device) {
    CudaStream[] streams = new CudaStream[trace.streamIds().length];
    for (int i = 0; i < streams.length; i++) {
      streams[i] = stream(trace.streamIds()[i], device);
    }
    return streams;
  }

  private static CudaStream stream(long recorded, CudaDevice device) {
    if (recorded == 0) {
      return device.nullStream();
    }
    if (recorded == 1) {
      return device.legacyStream();
    }
    return recorded == 2
        ? device.perThreadStream()
        : device.createStream(StreamOptions.NON_BLOCKING);
  }

  /** Reads what the command line says. Stateless. */
  static final class Converter implements ITypeConverter<StreamMode> {
    @Override
    public StreamMode convert(String text) {
      String mode = text.strip();
      if (mode.equals(RECORDED.text)) {
        return RECORDED;
      }
      if (mode.equals(SINGLE.text)) {
        return SINGLE;
      }
      Matcher turning = TURNING.matcher(mode);
      int streams = turning.matches() ? Integer.parseInt(turning.group(1)) : 0;
      if (streams == 0 || streams > MOST_STREAMS) {
        throw new TypeConversionException(
            "'%s' (expected: recorded, single, turning:N with N from 1 to %d)"
                .formatted(text, MOST_STREAMS));
      }
      return new StreamMode(mode, streams);
    }
  }
}
