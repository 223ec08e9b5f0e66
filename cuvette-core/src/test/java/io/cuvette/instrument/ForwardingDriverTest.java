package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.NativeCalls;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.TransferCalls;
import io.cuvette.driver.VirtualCalls;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ForwardingDriverTest {
  /** Calls of which the sanitizer learns more later: it passes on an argument of its own. */
  private static final Set<String> WATCHED =
      Set.of("launchHostFunc", "launchKernel", "userObjectCreate");

  private static final class Plain extends ForwardingDriver {
    Plain(CudaDriver delegate) {
      super(delegate);
    }
  }

  /** Replaces each part by one that changes nothing. */
  private static final class Replacing extends ForwardingDriver {
    Replacing(CudaDriver delegate) {
      super(delegate);
    }

    @Override
    public DeviceCalls devices() {
      return new ForwardingDevices(super.devices()) {};
    }

    @Override
    public MemoryCalls memory() {
      return new ForwardingMemory(super.memory()) {};
    }

    @Override
    public TransferCalls transfers() {
      return new ForwardingTransfers(super.transfers()) {};
    }

    @Override
    public PoolCalls pools() {
      return new ForwardingPools(super.pools()) {};
    }

    @Override
    public OrderedCalls ordered() {
      return new ForwardingOrdered(super.ordered()) {};
    }

    @Override
    public StreamCalls streams() {
      return new ForwardingStreams(super.streams()) {};
    }

    @Override
    public EventCalls events() {
      return new ForwardingEvents(super.events()) {};
    }

    @Override
    public CaptureCalls captures() {
      return new ForwardingCaptures(super.captures()) {};
    }

    @Override
    public GraphCalls graphs() {
      return new ForwardingGraphs(super.graphs()) {};
    }

    @Override
    public VirtualCalls virtual() {
      return new ForwardingVirtual(super.virtual()) {};
    }

    @Override
    public IpcCalls sharing() {
      return new ForwardingIpc(super.sharing()) {};
    }

    @Override
    public KernelCalls kernels() {
      return new ForwardingKernels(super.kernels()) {};
    }

    @Override
    public MathCalls math() {
      return new ForwardingMath(super.math()) {};
    }

    @Override
    public NativeCalls natives() {
      return new ForwardingNatives(super.natives()) {};
    }
  }

  private final AtomicInteger next = new AtomicInteger();
  private final List<Object> received = new ArrayList<>();
  private @Nullable Object answer;

  static Stream<Method> methods() {
    return DriverProxy.methods().stream();
  }

  @ParameterizedTest
  @MethodSource("methods")
  void everyMethod_forwardsAllArgumentsAndTheResult(Method method) throws Throwable {
    assertForwards(method, Plain::new);
    assertForwards(method, Replacing::new);
  }

  static Stream<Method> calls() {
    return methods()
        .filter(method -> DriverProxy.isCall(method) && !WATCHED.contains(method.getName()));
  }

  /** Handles and addresses that nobody made are reported with their values, and passed on. */
  @ParameterizedTest
  @MethodSource("calls")
  void everyCall_passesTheInstruments(Method call) throws Throwable {
    assertPasses(
        call,
        target ->
            SanitizerDriver.reporting(
                target, report -> assertThat(report.toString()).doesNotContain("null")));
    assertPasses(call, target -> TracingDriver.of(target, _ -> {}));
    assertPasses(call, target -> Faults.none(target).driver());
  }

  /** Whatever else the instrument asks the driver for. */
  private void assertPasses(Method call, UnaryOperator<CudaDriver> instrument) throws Throwable {
    Object[] arguments =
        Arrays.stream(call.getParameterTypes()).map(this::sample).toArray(Object[]::new);
    Object given = call.getReturnType() == void.class ? null : sample(call.getReturnType());
    List<List<Object>> made = new ArrayList<>();
    CudaDriver target =
        DriverProxy.of((method, values) -> {
          if (method.equals(call)) {
            made.add(List.of(values));
            return given;
          }
          return method.getReturnType() == void.class ? null : sample(method.getReturnType());
        });

    Object result = DriverProxy.forward(instrument.apply(target), call, arguments);

    assertThat(made).containsExactly(List.of(arguments));
    assertThat(result).isEqualTo(given);
  }

  private void assertForwards(Method method, UnaryOperator<CudaDriver> decorator) throws Throwable {
    Object[] arguments =
        Arrays.stream(method.getParameterTypes()).map(this::sample).toArray(Object[]::new);
    Class<?> type = method.getReturnType();
    for (Object each : type == boolean.class ? List.of(true, false) : List.of(0)) {
      received.clear();
      answer = type == void.class ? null : type == boolean.class ? each : sample(type);

      Object result = DriverProxy.forward(decorator.apply(recorder()), method, arguments);

      assertThat(received).startsWith(method).hasSize(1 + arguments.length);
      assertThat(received.subList(1, received.size())).containsExactly(arguments);
      assertThat(result).isEqualTo(answer);
    }
  }

  /** Else its methods would be called on the delegate's own part. */
  @Test
  void eachPart_isReplacedHere() {
    assertThat(CudaDriver.class.getDeclaredMethods())
        .filteredOn(method -> method.getReturnType().getSimpleName().endsWith("Calls"))
        .hasSize(14)
        .allSatisfy(
            part -> assertThat(Replacing.class.getDeclaredMethod(part.getName())).isNotNull());
  }

  /** What finds a driver in a table asks nobody behind it. */
  @Test
  void proxy_isEqualToItselfAlone_andSoAreItsParts() throws Exception {
    List<CudaDriver> proxies =
        List.of(
            new TinyDriver().driver,
            DriverProxy.of((method, _) -> {
              throw new AssertionError(method);
            }));
    for (CudaDriver proxy : proxies) {
      assertThat(proxy.hashCode()).isEqualTo(System.identityHashCode(proxy));
      assertThat(proxies).filteredOn(proxy::equals).hasSize(1);
      for (Method part : CudaDriver.class.getDeclaredMethods()) {
        if (part.getReturnType().getSimpleName().endsWith("Calls")) {
          assertThat(part.invoke(proxy)).isSameAs(proxy);
        }
      }
    }
  }

  @Test
  void noDelegate_isRefused() {
    List<ThrowingCallable> makers =
        List.of(
            () -> new Plain(null),
            () -> new ForwardingDevices(null) {},
            () -> new ForwardingMemory(null) {},
            () -> new ForwardingTransfers(null) {},
            () -> new ForwardingPools(null) {},
            () -> new ForwardingOrdered(null) {},
            () -> new ForwardingStreams(null) {},
            () -> new ForwardingEvents(null) {},
            () -> new ForwardingCaptures(null) {},
            () -> new ForwardingGraphs(null) {},
            () -> new ForwardingVirtual(null) {},
            () -> new ForwardingIpc(null) {},
            () -> new ForwardingKernels(null) {},
            () -> new ForwardingMath(null) {},
            () -> new ForwardingNatives(null) {});
    for (ThrowingCallable maker : makers) {
      assertThatNullPointerException().isThrownBy(maker).withMessage("delegate");
    }
  }

  @Test
  void print_isTheNameOfTheDelegate() {
    assertThat(new Plain(new TinyDriver().driver)).hasToString("tiny");
  }

  private CudaDriver recorder() {
    return DriverProxy.of((method, arguments) -> {
      received.add(method);
      received.addAll(Arrays.asList(arguments));
      return answer;
    });
  }

  /** A value no other argument has. */
  private Object sample(Class<?> type) {
    return Samples.of(type, next.incrementAndGet());
  }
}
