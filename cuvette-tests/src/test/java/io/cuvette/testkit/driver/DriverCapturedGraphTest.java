package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverCapturedGraphContract;

class DriverCapturedGraphTest extends DriverCapturedGraphContract {}
