package io.cuvette.testkit.races;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaProfiler;
import io.cuvette.CudaStream;
import io.cuvette.DeviceAttribute;
import io.cuvette.EventOptions;
import io.cuvette.ForeignLoan;
import io.cuvette.LibraryHandle;
import io.cuvette.MatrixProducts;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** Operations of {@code CudaDevice}. Stateless. */
final class DeviceOperations {
  private static final int STACK_SIZE = 0;

  private static final MatrixProduct PRODUCT =
      new MatrixProduct(
          MatrixType.FLOAT,
          4,
          4,
          4,
          new MatrixProduct.Operand(false, 4, 0),
          new MatrixProduct.Operand(true, 4, 0),
          new MatrixProduct.Operand(false, 4, 0),
          1);

  private DeviceOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    addQuestions(all);
    addMakers(all);
    addForeign(all);
    addPeers(all);
    addHandles(all);
    addLoan(all);
    all.add(profiler("start()", CudaProfiler::start));
    all.add(profiler("stop()", CudaProfiler::stop));
    all.add(profiler("profile()", profiler -> profiler.profile().close()));
    return all;
  }

  private static void addQuestions(List<Operation> all) {
    all.add(device("name()", CudaDevice::name));
    all.add(device("uuid()", CudaDevice::uuid));
    all.add(device("pciBusId()", CudaDevice::pciBusId));
    all.add(device("computeCapability()", CudaDevice::computeCapability));
    all.add(
        device(
            "attribute(DeviceAttribute)", d -> d.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT)));
    all.add(device("attribute(int)", device -> device.attribute(75)));
    all.add(device("attributes()", CudaDevice::attributes));
    all.add(device("memoryInfo()", CudaDevice::memoryInfo));
    all.add(device("totalBytes()", CudaDevice::totalBytes));
    all.add(device("priorityRange()", CudaDevice::priorityRange));
    all.add(device("limit(int)", device -> device.limit(STACK_SIZE)));
    all.add(device("setLimit(int, long)", device -> device.setLimit(STACK_SIZE, 1024)));
    all.add(device("synchronize()", CudaDevice::synchronize));
    all.add(
        device(
            "use()",
            device -> {
              try (Scope _ = device.use()) {
                device.cuda().currentDevice();
              }
            }));
    all.add(device("makeCurrent()", CudaDevice::makeCurrent));
    all.add(
        Operation.of(
            "Scope.close()",
            stage -> {
              CudaDevice device = stage.device;
              return () -> device.use().close();
            }));
  }

  private static void addMakers(List<Operation> all) {
    all.add(device("nullStream()", CudaDevice::nullStream));
    all.add(device("legacyStream()", CudaDevice::legacyStream));
    all.add(device("perThreadStream()", CudaDevice::perThreadStream));
    all.add(device("createStream()", device -> device.createStream().close()));
    all.add(
        device(
            "createStream(StreamOptions)",
            device -> device.createStream(StreamOptions.NON_BLOCKING).close()));
    all.add(device("createEvent()", device -> device.createEvent().close()));
    all.add(
        device(
            "createEvent(EventOptions)",
            device -> device.createEvent(EventOptions.ORDER_ONLY).close()));
  }

  private static void addForeign(List<Operation> all) {
    all.add(device("wrapStream(long, Object)", device -> device.wrapStream(1, null).close()));
    all.add(
        Operation.of(
            "CudaDevice.wrap(long, long, Object)",
            stage -> {
              long address = stage.foreign();
              return () -> stage.device.wrap(address, Stage.BYTES, null).close();
            }));
    all.add(
        Operation.of(
            "CudaDevice.adopt(long, long, Runnable)",
            stage -> {
              long address = stage.foreign();
              return () -> stage.device.adopt(address, Stage.BYTES, () -> {}).close();
            }));
  }

  private static void addPeers(List<Operation> all) {
    all.add(device("canAccess(CudaDevice)", device -> device.canAccess(device)));
    all.add(withPeer("enablePeerAccess(CudaDevice)", CudaDevice::enablePeerAccess));
    all.add(withPeer("disablePeerAccess(CudaDevice)", CudaDevice::disablePeerAccess));
  }

  /** Libraries that are missing are an error of their own: those of a GPU may be. */
  private static void addHandles(List<Operation> all) {
    all.add(device("cublasHandle()", device -> ifThere(device::cublasHandle)));
    all.add(device("cusolverDnHandle()", device -> ifThere(device::cusolverDnHandle)));
    all.add(device("cusolverSpHandle()", device -> ifThere(device::cusolverSpHandle)));
    all.add(
        Operation.of(
            "Cuda.cublasHandle()",
            stage -> {
              Cuda cuda = stage.cuda;
              return () -> ifThere(cuda::cublasHandle);
            }));
    all.add(
        Operation.of(
            "CudaDevice.useCublas(CudaStream)",
            stage -> {
              CudaStream stream = stage.stream();
              return () -> ifThere(() -> use(stream.device().useCublas(stream)));
            }));
    all.add(
        Operation.of(
            "CudaDevice.useLibrary(MathLibrary, CudaStream, long)",
            stage -> {
              CudaStream stream = stage.stream();
              return () ->
                  ifThere(
                      () -> use(stream.device().useLibrary(MathLibrary.CUSOLVER_DN, stream, 0)));
            }));
    all.add(
        Operation.of(
            "MatrixProducts.multiply(LibraryHandle, MatrixProduct, Buffer, Buffer, Buffer)",
            stage -> {
              @Nullable LibraryHandle handle = lent(stage);
              Buffer a = stage.buffer();
              Buffer c = stage.other();
              return () -> {
                if (handle != null) {
                  MatrixProducts.multiply(handle, PRODUCT, c, a, a);
                }
              };
            }));
    for (String method : List.of("handle()", "workspaceBytes()", "close()")) {
      all.add(
          Operation.of(
              "LibraryHandle." + method,
              stage -> {
                @Nullable LibraryHandle handle = lent(stage);
                return () -> {
                  if (handle != null) {
                    call(handle, method);
                  }
                };
              }));
    }
  }

  private static void addLoan(List<Operation> all) {
    all.add(
        Operation.of(
            "ForeignLoan.of(Buffer)",
            stage -> {
              Buffer buffer = stage.buffer();
              List<ForeignLoan> out = new CopyOnWriteArrayList<>();
              stage.made(() -> out.forEach(DeviceOperations::awaitEnd)); // on a thread of its own
              return () -> {
                ForeignLoan loan = ForeignLoan.of(buffer);
                out.add(loan);
                loan.giveBack();
              };
            }));
  }

  private static void awaitEnd(ForeignLoan loan) {
    while (!loan.isOver()) {
      LockSupport.parkNanos(100_000);
    }
  }

  private static void call(LibraryHandle handle, String method) {
    switch (method) {
      case "handle()" -> handle.handle();
      case "workspaceBytes()" -> handle.workspaceBytes();
      default -> handle.close();
    }
  }

  private static @Nullable LibraryHandle lent(Stage stage) {
    AtomicReference<@Nullable LibraryHandle> lent = new AtomicReference<>();
    ifThere(() -> {
      LibraryHandle made =
          stage.device.useLibrary(MathLibrary.CUBLAS, stage.device.nullStream(), 512);
      lent.set(stage.ended(Closer.SHARED, made));
      return 0;
    });
    return lent.get();
  }

  private static long use(LibraryHandle handle) {
    try (handle) {
      return handle.handle();
    }
  }

  private static void ifThere(LongSupplier call) {
    try {
      assertThat(call.getAsLong()).isNotNull();
    } catch (CudaException e) {
      if (e.status() != CudaStatus.FILE_NOT_FOUND) {
        throw e;
      }
    }
  }

  private static Operation profiler(String method, Consumer<CudaProfiler> body) {
    return Operation.of(
        "CudaProfiler." + method,
        stage -> {
          CudaProfiler profiler = stage.device.profiler();
          return () -> body.accept(profiler);
        });
  }

  /** What two devices do; with one there is nothing to race. */
  interface WithPeer {
    void run(CudaDevice device, CudaDevice peer);
  }

  private static Operation withPeer(String method, WithPeer body) {
    return Operation.of(
        "CudaDevice." + method,
        stage -> {
          AtomicReference<@Nullable CudaDevice> peer = new AtomicReference<>();
          for (CudaDevice other : stage.cuda.devices()) {
            if (!other.equals(stage.device) && stage.device.canAccess(other)) {
              peer.set(other);
            }
          }
          CudaDevice found = peer.get();
          return found == null ? stage.device::memoryInfo : () -> body.run(stage.device, found);
        });
  }

  private static Operation device(String method, Consumer<CudaDevice> body) {
    return Operation.of(
        "CudaDevice." + method,
        stage -> {
          CudaDevice device = stage.device;
          return () -> body.accept(device);
        });
  }
}
