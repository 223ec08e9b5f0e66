package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverStreamContract;

class DriverStreamTest extends DriverStreamContract {}
