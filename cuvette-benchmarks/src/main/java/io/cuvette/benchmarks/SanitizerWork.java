package io.cuvette.benchmarks;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.SanitizerDriver;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;

/**
 * How many times as long programs with many pending operations take on the simulated device with
 * the sanitizer as without it. Confined to one thread.
 */
final class SanitizerWork {
  private static final int PART = 1024;
  private static final int STREAMS = 4;

  private final Lines lines;
  private final int operations;
  private final int repetitions;

  /** Programs of so many pending operations, of which the fastest run of several counts. */
  SanitizerWork(Lines lines, int operations, int repetitions) {
    this.lines = lines;
    this.operations = operations;
    this.repetitions = repetitions;
  }

  void run() {
    for (String pace : List.of("lazy", "eager")) {
      compare("fills of one buffer", pace, this::fills);
      compare("pooled buffers that stay", pace, this::pooled);
      compare("pooled buffers that go", pace, this::pairs);
      compare("copies on four streams", pace, this::copies);
      compare("copies to the device and back", pace, this::pinned);
      compare("copies of random ranges", pace, this::random);
      compare("fills behind functions of the host", pace, this::functions);
    }
  }

  private void compare(String work, String pace, Consumer<CudaDevice> program) {
    CudaOptions plain = CudaOptions.DEFAULTS.withDevice("sim:pace=%s,order=fair".formatted(pace));
    double without = nanos(plain, program);
    double with = nanos(plain.withDecorator(SanitizerDriver::throwing), program);
    String name = work + ", " + pace;
    lines.figure(name, "nsPerOperation", without);
    lines.figure(name, "nsPerOperationSanitized", with);
    lines.figure(name, "timesAsLong", with / without);
  }

  private double nanos(CudaOptions options, Consumer<CudaDevice> program) {
    long best = Long.MAX_VALUE;
    for (int i = 0; i < repetitions; i++) {
      try (Cuda cuda = Cuda.open(options)) {
        long start = System.nanoTime();
        program.accept(cuda.device(0));
        best = Math.min(best, System.nanoTime() - start);
      }
    }
    return (double) best / operations;
  }

  private static CudaStream stream(CudaDevice device) {
    return device.createStream(StreamOptions.NON_BLOCKING);
  }

  private void fills(CudaDevice device) {
    try (CudaStream stream = stream(device);
        Buffer buffer = device.cuda().allocate((long) operations * PART, stream)) {
      for (int i = 0; i < operations; i++) {
        buffer.slice((long) i * PART, PART).fill((byte) i, stream);
      }
      stream.synchronize();
    }
  }

  private void functions(CudaDevice device) {
    try (CudaStream stream = stream(device);
        Buffer buffer = device.cuda().allocate(PART, stream)) {
      long handle = stream.handle();
      StreamCalls streams = device.cuda().driver().streams();
      for (int i = 0; i < operations; i++) {
        streams.launchHostFunc(device.id(), handle, () -> {});
        buffer.fill((byte) i, stream);
      }
      stream.synchronize();
    }
  }

  private void pooled(CudaDevice device) {
    List<Buffer> buffers = new ArrayList<>(operations);
    try (CudaStream stream = stream(device)) {
      for (int i = 0; i < operations; i++) {
        buffers.add(device.cuda().allocate(PART, stream));
        buffers.get(i).fill((byte) i, stream);
      }
      buffers.forEach(Buffer::close);
      stream.synchronize();
    }
  }

  private void pairs(CudaDevice device) {
    try (CudaStream stream = stream(device)) {
      for (int i = 0; i < operations; i++) {
        try (Buffer buffer = device.cuda().allocate(PART, stream)) {
          buffer.fill((byte) i, stream);
        }
      }
      stream.synchronize();
    }
  }

  private void pinned(CudaDevice device) {
    long bytes = (long) operations * PART;
    try (CudaStream stream = stream(device);
        Buffer buffer = device.cuda().allocate(bytes, stream);
        PinnedBuffer host = device.cuda().allocatePinned(bytes)) {
      // The sanitizer reports a copy of page-locked memory that the host never wrote.
      host.segment().fill((byte) 1);
      for (long at = 0; at < bytes; at += 2 * PART) {
        buffer.slice(at, PART).copyFrom(host.slice(at, PART), stream);
        host.slice(at + PART, PART).copyFrom(buffer.slice(at, PART), stream);
      }
      stream.synchronize();
    }
  }

  private void copies(CudaDevice device) {
    onStreams(
        device,
        (long) operations * PART,
        (streams, from, to) -> {
          for (int i = 0; i < operations; i++) {
            long at = (long) i * PART;
            to.slice(at, PART).copyFrom(from.slice(at, PART), streams.get(i % STREAMS));
            if (i % 64 == 0) {
              streams.get(1).waitFor(streams.get(0));
            }
          }
        });
  }

  private void random(CudaDevice device) {
    Random random = new Random(1);
    int room = 1 << 17;
    onStreams(
        device,
        (long) STREAMS * 2 * room,
        (streams, from, to) -> {
          for (int i = 0; i < operations; i++) {
            int part = random.nextInt(STREAMS);
            int bytes = 1 + random.nextInt(4 * PART);
            to.slice((long) part * 2 * room + random.nextInt(room), bytes)
                .copyFrom(from.slice(random.nextInt(4 * room), bytes), streams.get(part));
          }
        });
  }

  private interface Copies {
    void queue(List<CudaStream> streams, Buffer from, Buffer to);
  }

  private static void onStreams(CudaDevice device, long bytes, Copies copies) {
    List<CudaStream> streams = new ArrayList<>();
    for (int i = 0; i < STREAMS; i++) {
      streams.add(stream(device));
    }
    try (Buffer from = device.cuda().allocate(bytes);
        Buffer to = device.cuda().allocate(bytes)) {
      from.fill((byte) 1);
      to.fill((byte) 1);
      copies.queue(streams, from, to);
      device.synchronize();
    }
    streams.forEach(CudaStream::close);
  }
}
