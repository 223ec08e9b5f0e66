package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverRandomGraphContract;

class DriverRandomGraphTest extends DriverRandomGraphContract {}
