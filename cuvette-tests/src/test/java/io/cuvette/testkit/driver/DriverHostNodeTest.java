package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverHostNodeContract;

class DriverHostNodeTest extends DriverHostNodeContract {}
