package io.cuvette.internal.kernel;

import io.cuvette.LaunchConfig;
import io.cuvette.driver.LaunchShape;
import io.cuvette.internal.session.Device;

/** A configuration with which a kernel can be launched on a device. Immutable. */
record CheckedConfig(Device device, LaunchConfig config, LaunchShape shape) {}
