package io.cuvette.array;

import static io.cuvette.array.ElementType.BFLOAT16;
import static io.cuvette.array.ElementType.FLOAT32;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Cuda;
import io.cuvette.ForeignLoan;
import io.cuvette.testkit.CudaTest;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/** Arrays that go to NumPy, PyTorch and CuPy in this process, and come from them. */
class DlpackPythonTest {
  private static final int TRIPS = 10_000;
  private static final int BYTES_OF_A_TRIP = 1 << 16;
  private static final long MIBS_OF_NOISE = 128; // all trips have 625

  private static final Map<Long, NdArray> EXPORTS = new ConcurrentHashMap<>();
  private static final AtomicLong NUMBERS = new AtomicLong();

  /** Why there was no tensor. */
  private static final MemorySegment REASON = Arena.global().allocate(1 << 12);

  private static boolean isReady;

  private static synchronized Python python(String... modules) {
    Python python = Python.open(modules);
    if (!isReady) {
      try (InputStream text = DlpackPythonTest.class.getResourceAsStream("bridge.py")) {
        python.call("EXPORT, REASON = %d, %d".formatted(function(), REASON.address()));
        python.call(new String(text.readAllBytes(), StandardCharsets.UTF_8));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      isReady = true;
    }
    return python;
  }

  /** What Python calls for a tensor. */
  @SuppressWarnings("restricted")
  private static long function() {
    FunctionDescriptor type =
        FunctionDescriptor.of(
            ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_LONG);
    try {
      return Linker.nativeLinker()
          .upcallStub(
              MethodHandles.lookup()
                  .findStatic(DlpackPythonTest.class, "export", type.toMethodType()),
              type,
              Arena.global())
          .address();
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }

  /** The address of a tensor; 0 if there can be none, for what is thrown here ends the JVM. */
  static long export(long number, long stream, long isVersioned, long isCopy) {
    try {
      return Dlpack.export(
              EXPORTS.get(number),
              new DlpackOptions(isVersioned != 0, stream == 0 ? 1 : stream, isCopy != 0, false))
          .address();
    } catch (Throwable e) {
      REASON.setString(0, e.toString());
      return 0;
    }
  }

  /** The expression that is an array in Python. */
  private static String exported(NdArray a) {
    long number = NUMBERS.incrementAndGet();
    EXPORTS.put(number, a);
    return "Exported(%d, (%d, %d))".formatted(number, Dlpack.deviceType(a), Dlpack.deviceId(a));
  }

  private static NdArray take(Cuda cuda, String given) {
    String[] parts = given.split(" ");
    return Dlpack.take(cuda, new DlpackTensor(Long.parseLong(parts[0]), parts[1].equals("1")));
  }

  /** What a thread of the library does soon. */
  private static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      Thread.onSpinWait();
    }
  }

  private static long addressOf(NdArray a) {
    return switch (a) {
      case CudaArray device -> device.address();
      case HostArray host ->
          host.segment().address() + host.layout().offset() * host.type().bytes();
    };
  }

  @CudaTest
  void hostArray_isOneOfNumpy(Cuda cuda) {
    Python python = python("numpy");
    for (ElementType type : ElementType.values()) {
      if (type == BFLOAT16) {
        continue; // NumPy has none
      }
      HostArray a = HostArrays.of(cuda).empty(type, 3, 2);
      for (int i = 0; i < 6; i++) {
        a.slice(Range.at(i / 2), Range.at(i % 2)).fill(i == 0 ? 0 : 1);
      }
      String said =
          python.call(
              """
              x = numpy.from_dlpack(%s)
              answer = x.ctypes.data, x.shape, str(x.dtype), x.real.astype(int).tolist()
              """
                  .formatted(exported(a.transpose())));
      assertThat(said)
          .isEqualTo(
              "(%d, (2, 3), '%s', [[0, 1, 1], [1, 1, 1]])"
                  .formatted(
                      addressOf(a),
                      type == ElementType.BOOLEAN ? "bool" : type.name().toLowerCase()));
      python.call("x[1, 2] = 0");
      try (HostArray real = a.asType(FLOAT32)) {
        assertThat(real.getDouble(2, 1)).isZero();
      }
      a.close(); // Python has it still
      assertThat(python.call("answer = int(x[0, 1].real); del x")).isEqualTo("1");
      await(() -> cuda.defaultPinnedMemoryPool().stats().usedBytes() == 0);
    }
    assertThatThrownBy(() -> python.call("numpy.from_dlpack(%s)".formatted(exported(closed(cuda)))))
        .hasMessageContaining("BufferError: java.lang.IllegalStateException")
        .hasMessageContaining("closed");
  }

  private static HostArray closed(Cuda cuda) {
    HostArray a = HostArrays.of(cuda).zeros(FLOAT32, 2);
    a.close();
    return a;
  }

  @CudaTest
  void arrayOfNumpy_isOneHere(Cuda cuda) {
    Python python = python("numpy", "weakref");
    String given =
        python.call(
            """
            x = numpy.arange(12, dtype=numpy.int32).reshape(3, 4).T[1:, ::2]
            answer = give(x)
            """);
    try (HostArray a = (HostArray) take(cuda, given)) {
      assertThat(addressOf(a)).isEqualTo(Long.parseLong(python.call("answer = x.ctypes.data")));
      assertThat(a.toArray(int[][].class)).isDeepEqualTo(new int[][] {{1, 9}, {2, 10}, {3, 11}});
      a.setLong(42, 2, 1);
      assertThat(python.call("answer = x[2, 1]; gone = weakref.ref(x); del x")).isEqualTo("42");
      assertThat(python.call("answer = gone() is None")).isEqualTo("False");
      assertThat(a.getLong(2, 1)).isEqualTo(42);
    }
    assertThat(python.call("answer = gone() is None")).isEqualTo("True");
    String fixed =
        python.call("x = numpy.ones(3); x.setflags(write=False); answer = give(x); del x");
    try (NdArray a = take(cuda, fixed)) {
      assertThat(a.isReadOnly()).isTrue();
    }
    String turned = python.call("answer = give(numpy.arange(4)[::-1])");
    String[] parts = turned.split(" ");
    DlpackTensor tensor = new DlpackTensor(Long.parseLong(parts[0]), parts[1].equals("1"));
    assertThatThrownBy(() -> Dlpack.take(cuda, tensor)).hasMessageContaining("strides: [-1]");
    tensor.delete();
  }

  @CudaTest(sanitized = false)
  void roundTripsOfHostArrays_leaveNothing(Cuda cuda) throws Exception {
    Python python = python("numpy", "sys");
    try (HostArray a = HostArrays.of(cuda).full(FLOAT32, 3, BYTES_OF_A_TRIP / 4)) {
      roundTrips(
          cuda, python, a, "numpy", "x.ctypes.data", "numpy.full(%d, %d, numpy.float32)", "");
    }
  }

  @CudaTest(sanitized = false)
  void deviceArrays_goToTorchAndComeBack(Cuda cuda) throws Exception {
    assumeTrue(!cuda.isSimulated(), "other libraries have no simulated device");
    Python python = python("sys", "torch");
    assumeTrue(
        python.call("answer = torch.cuda.is_available()").equals("True"), "torch has no GPU");
    deviceArrays(
        cuda,
        python,
        "torch",
        "x.data_ptr()",
        "torch.full((%d,), %d, dtype=torch.float32, device='cuda')",
        ", torch.cuda.current_stream().cuda_stream or 1");
  }

  @CudaTest(sanitized = false)
  void deviceArrays_goToCupyAndComeBack(Cuda cuda) throws Exception {
    assumeTrue(!cuda.isSimulated(), "other libraries have no simulated device");
    Python python = python("sys", "cupy");
    deviceArrays(cuda, python, "cupy", "x.data.ptr", "cupy.full(%d, %d, cupy.float32)", ", 1");
  }

  private static void deviceArrays(
      Cuda cuda, Python python, String module, String at, String made, String stream)
      throws Exception {
    try (CudaArray numbers = CudaArrays.of(cuda).arange(FLOAT32, 12)) {
      String said =
          python.call(
              """
              x = %s.from_dlpack(%s)
              answer = %s, x.tolist()
              x[2, 1] = 42
              del x
              """
                  .formatted(module, exported(numbers.reshape(3, 4).transpose()), at));
      assertThat(said)
          .isEqualTo(
              "(%d, [[0.0, 4.0, 8.0], [1.0, 5.0, 9.0], [2.0, 6.0, 10.0], [3.0, 7.0, 11.0]])"
                  .formatted(numbers.address()));
      cuda.device(0).synchronize();
      assertThat(numbers.toArray(float[].class)[6]).isEqualTo(42);
    }
    try (CudaArray a = CudaArrays.of(cuda).full(FLOAT32, 3, BYTES_OF_A_TRIP / 4)) {
      roundTrips(cuda, python, a, module, at, made, stream);
    }
  }

  /** Each trip takes an array there and another one back; what is counted is what a leak raises. */
  private static void roundTrips(
      Cuda cuda, Python python, NdArray a, String module, String at, String made, String stream)
      throws Exception {
    python.call(
        """
        def there(array, address, count):
            for i in range(count):
                x = %s.from_dlpack(array)
                assert %s == address
                assert x.shape[0] == %d
        def back(i):
            x = %s
            return "%%d %%s" %% (%s, give(x%s))
        """
            .formatted(
                module,
                at,
                a.size(),
                made.formatted(a.size(), 0).replace(", 0,", ", i,"),
                at,
                stream));
    String there = "there(%s, %d, ".formatted(exported(a), addressOf(a));
    long used = cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes();
    Left before = null;
    for (int i = 0; i < TRIPS + TRIPS / 10; i++) {
      if (i == TRIPS / 10) { // what is loaded and compiled once is there
        before = Left.now(python);
      }
      if (i % 100 == 0) {
        python.call(there + "100)");
      }
      String[] parts = python.call("answer = back(%d)".formatted(i)).split(" ", 2);
      try (NdArray taken = take(cuda, parts[1])) {
        assertThat(addressOf(taken)).isEqualTo(Long.parseLong(parts[0]));
        if (i % 100 == 0) {
          assertThat(taken.toArray(float[].class)).containsOnly(i);
        }
      }
    }
    ForeignLoan last = ForeignLoan.of(() -> {});
    last.giveBack();
    await(last::isOver); // and so is what was given back before
    await(() -> cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes() == used);
    python.call("gc.collect()");
    Left after = Left.now(python);
    assertThat(after.files()).isLessThan(before.files() + TRIPS / 10); // the JVM has its own
    assertThat(after.objects()).isLessThan(before.objects() + TRIPS / 10);
    assertThat(after.mibs()).isLessThan(before.mibs() + MIBS_OF_NOISE);
  }

  /** What a process has: open descriptors, objects of Python, memory from malloc. */
  private record Left(long files, long objects, long mibs) {
    /**
     * Not what is resident: the Java heap grows meanwhile. Nothing where the C library is another.
     */
    private static final String ALLOCATED =
        """
        import ctypes
        class _Info(ctypes.Structure):
            _fields_ = [(_n, ctypes.c_size_t) for _n in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]
        _info = getattr(ctypes.CDLL(None), "mallinfo2", None)
        if _info:
            _info.restype = _Info
            _now = _info()
            answer = (_now.uordblks + _now.hblkhd) >> 20
        else:
            answer = 0
        """;

    static Left now(Python python) throws IOException {
      try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
        long objects = Long.parseLong(python.call("answer = sys.getallocatedblocks()"));
        return new Left(files.count(), objects, Long.parseLong(python.call(ALLOCATED)));
      }
    }
  }
}
