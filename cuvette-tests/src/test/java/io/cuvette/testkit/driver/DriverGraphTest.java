package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverGraphContract;

class DriverGraphTest extends DriverGraphContract {}
