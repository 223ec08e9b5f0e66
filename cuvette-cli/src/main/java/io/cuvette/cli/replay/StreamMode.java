package io.cuvette.cli.replay;

import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import java.util.Arrays;
import java.util.Locale;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** On which streams a trace is replayed. Stateless. */
enum StreamMode {
  /** A stream for each recorded one: the built-in ones for theirs, new ones for the others. */
  RECORDED,
  /** One new stream for all. */
  SINGLE;

  /** The streams, by their index in the trace. */
  CudaStream[] open(Trace trace, CudaDevice device) {
    CudaStream[] streams = new CudaStream[trace.streamIds().length];
    if (this == SINGLE) {
      Arrays.fill(streams, device.createStream(StreamOptions.NON_BLOCKING));
      return streams;
    }
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

  /** How it is written on the command line. */
  String text() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Reads what the command line says. Stateless. */
  static final class Converter implements ITypeConverter<StreamMode> {
    @Override
    public StreamMode convert(String text) {
      for (StreamMode mode : values()) {
        if (mode.text().equals(text.strip())) {
          return mode;
        }
      }
      throw new TypeConversionException("'%s' (expected: recorded, single)".formatted(text));
    }
  }
}
