package io.cuvette.testkit.seeds;

import static io.cuvette.testkit.seeds.ServiceProgram.BYTES;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.seeds.ServiceProgram.Proof;
import java.util.SplittableRandom;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A graph that the threads of a {@link ServiceProgram} launch in turn, each for its own words. */
final class ServiceGraph {
  private final ServiceProgram all;
  private final CudaDevice device;
  private final ServiceKernels kernels;
  private final SplittableRandom random;
  private final CudaStream stream;
  private final PinnedBuffer in;
  private final PinnedBuffer out;
  private final Buffer memory;
  private final Semaphore told = new Semaphore(0);
  private final boolean tells;
  private final CudaGraph inner;
  private final CudaGraphExec executable;
  private int number;

  /** The launch that nobody has waited for, and what it makes of the first word. */
  private Proof proof = Proof.DONE;

  private @Nullable Integer expected;

  ServiceGraph(ServiceProgram all, Cuda cuda, ServiceKernels kernels, SplittableRandom random) {
    this.all = all;
    this.device = cuda.device(0);
    this.kernels = kernels;
    this.random = random;
    this.stream = device.createStream(StreamOptions.NON_BLOCKING);
    this.in = cuda.allocatePinned(BYTES);
    this.out = cuda.allocatePinned(BYTES);
    this.memory = cuda.allocate(BYTES, stream);
    this.tells = random.nextBoolean();
    this.inner = stream.capture(() -> kernels.add(stream, memory, memory, 5));
    try (CudaGraph graph = capture(cuda, 0)) {
      this.executable = graph.instantiate();
    }
  }

  private CudaGraph capture(Cuda cuda, int add) {
    return stream.capture(() -> {
      memory.copyFrom(in, stream);
      stream.captureChild(inner);
      try (Buffer step = cuda.allocate(BYTES, stream)) {
        kernels.add(stream, memory, step, add);
        step.copyTo(out, stream);
      }
      if (tells) {
        stream.captureCallback(told::release);
      }
    });
  }

  /** One launch in a stream of the caller. */
  synchronized void serve(Cuda cuda, CudaStream on, int first) throws Exception {
    finish();
    if (random.nextInt(4) == 0) {
      number = random.nextInt(1000);
      try (CudaGraph graph = capture(cuda, number)) {
        executable.update(graph);
      }
    }
    if (random.nextBoolean()) {
      in.copyFrom(ServiceProgram.words(first));
    } else {
      in.segment().copyFrom(ServiceProgram.words(first));
    }
    executable.launch(on);
    expected = first + 5 + number;
    proof =
        switch (random.nextInt(4)) {
          case 0 -> new Proof(null, null, on.onComplete());
          case 1 -> {
            on.synchronize();
            yield Proof.DONE;
          }
          default -> new Proof(on, on.record(all.event(device)), null);
        };
    if (random.nextBoolean()) {
      finish();
    }
  }

  private void finish() throws Exception {
    Integer first = expected;
    if (first == null) {
      return;
    }
    if (tells && random.nextBoolean()) {
      awaitTold(); // by a function of the graph, and by nothing else
      all.recycle(proof.event());
    } else {
      ServiceWorker.await(all, proof, random);
      if (tells) {
        awaitTold();
      }
    }
    expected = null;
    ServiceProgram.check(out.segment(), first);
  }

  private void awaitTold() throws InterruptedException {
    if (!told.tryAcquire(60, TimeUnit.SECONDS)) {
      throw new AssertionError("no function ran");
    }
  }

  synchronized void close() throws Exception {
    finish();
    executable.close();
    inner.close();
    in.close();
    out.close();
    memory.close();
    stream.close();
  }
}
