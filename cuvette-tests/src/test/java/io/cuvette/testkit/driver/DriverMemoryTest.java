package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverMemoryContract;

class DriverMemoryTest extends DriverMemoryContract {}
