package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverCaptureContract;

class DriverCaptureTest extends DriverCaptureContract {}
