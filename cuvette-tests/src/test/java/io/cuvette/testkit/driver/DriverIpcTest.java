package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverIpcContract;

class DriverIpcTest extends DriverIpcContract {}
