package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverGraphMemoryContract;

class DriverGraphMemoryTest extends DriverGraphMemoryContract {}
