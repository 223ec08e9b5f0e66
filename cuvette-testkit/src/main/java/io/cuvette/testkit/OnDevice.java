package io.cuvette.testkit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** The device of a stream or a resource that a {@link CudaTest} takes, if it is not device 0. */
@Documented
@Target(ElementType.PARAMETER)
@Retention(RetentionPolicy.RUNTIME)
public @interface OnDevice {

  /** {@return the number of the device, from 0} */
  int value();
}
