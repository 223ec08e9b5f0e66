package io.cuvette.testkit;

import io.cuvette.Cuda;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.jupiter.api.parallel.Isolated;
import org.opentest4j.AssertionFailedError;
import org.opentest4j.TestAbortedException;

/** One run of a {@link CudaTest} on a subject. Confined to the run. */
final class SubjectRun
    implements TestTemplateInvocationContext,
        ExecutionCondition,
        ParameterResolver,
        BeforeEachCallback,
        TestExecutionExceptionHandler,
        AfterEachCallback {
  private static final Set<Class<?>> PARAMETERS =
      Set.of(
          Subject.class, Cuda.class, CudaDriver.class, SimulatedDriver.class, ScriptedDriver.class);

  private final Subject subject;
  private final DeviceMemoryWatch watch = new DeviceMemoryWatch();
  private @Nullable ProcessWatch process;

  SubjectRun(Subject subject) {
    this.subject = subject;
  }

  @Override
  public String getDisplayName(int invocationIndex) {
    return "[" + subject + "]";
  }

  @Override
  public List<Extension> getAdditionalExtensions() {
    return List.of(this);
  }

  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    String missing = subject.missing();
    return missing == null
        ? ConditionEvaluationResult.enabled(subject.specification())
        : ConditionEvaluationResult.disabled(missing);
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    Class<?> type = parameter.getParameter().getType();
    return PARAMETERS.contains(type) || Fixtures.has(type);
  }

  /** A driver alone is one without a Cuda. */
  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    Class<?> type = parameter.getParameter().getType();
    if (isScripted(parameter)) {
      ScriptedDriver script = subject.script(); // before the Cuda is opened
      if (type == ScriptedDriver.class) {
        return script;
      }
    }
    if (type == Cuda.class) {
      return subject.cuda();
    }
    if (Fixtures.has(type)) {
      return subject.fixture(parameter.getParameter());
    }
    if (type == CudaDriver.class) {
      return subject.driver();
    }
    return type == SimulatedDriver.class ? subject.simulator() : subject;
  }

  private static boolean isScripted(ParameterContext parameter) {
    return List.of(parameter.getDeclaringExecutable().getParameterTypes())
        .contains(ScriptedDriver.class);
  }

  @Override
  public void beforeEach(ExtensionContext context) {
    process = isAlone(context) ? new ProcessWatch() : null;
    if (!subject.isSimulated()) {
      watch.start(context, subject);
    }
  }

  /** What other tests leave at this moment cannot be distinguished from what this one leaves. */
  private static boolean isAlone(ExtensionContext context) {
    return context.getRequiredTestClass().isAnnotationPresent(Isolated.class)
        || !context
            .getConfigurationParameter("junit.jupiter.execution.parallel.enabled")
            .map(Boolean::parseBoolean)
            .orElse(false);
  }

  @Override
  public void handleTestExecutionException(ExtensionContext context, Throwable failure)
      throws Throwable {
    throw failure instanceof TestAbortedException ? failure : withSeed(failure);
  }

  /**
   * The same failure with the seed in its message: a summary of all tests shows no more of it. It
   * comes from the same line.
   */
  private AssertionError withSeed(Throwable failure) {
    boolean isAssertion = failure instanceof AssertionError;
    String message = isAssertion ? failure.getMessage() : failure.toString();
    String text = (message == null ? "failed" : message.stripTrailing()) + "; " + subject.rerun();
    AssertionError noted =
        failure instanceof AssertionFailedError compared && compared.isExpectedDefined()
            ? new AssertionFailedError(
                text, compared.getExpected(), compared.getActual(), compared.getCause())
            : new AssertionError(text, isAssertion ? failure.getCause() : failure);
    noted.setStackTrace(failure.getStackTrace());
    for (Throwable also : failure.getSuppressed()) {
      noted.addSuppressed(also);
    }
    return noted;
  }

  @Override
  public void afterEach(ExtensionContext context) {
    boolean passed = context.getExecutionException().isEmpty();
    try {
      subject.end(passed);
      if (passed && subject.isTidy() && process != null) {
        process.check();
      }
    } catch (RuntimeException | Error e) {
      throw passed
          ? new AssertionError(e.getMessage() + "; " + subject.rerun(), e)
          : new AssertionError("and the clean-up failed: " + e.getMessage(), e);
    }
    if (passed && !subject.isSimulated()) {
      watch.restore();
      watch.check();
    }
  }
}
