package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverKernelContract;

class DriverKernelTest extends DriverKernelContract {}
