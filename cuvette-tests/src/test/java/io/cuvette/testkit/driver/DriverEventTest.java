package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverEventContract;

class DriverEventTest extends DriverEventContract {}
