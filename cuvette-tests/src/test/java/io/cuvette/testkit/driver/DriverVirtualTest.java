package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverVirtualContract;

class DriverVirtualTest extends DriverVirtualContract {}
