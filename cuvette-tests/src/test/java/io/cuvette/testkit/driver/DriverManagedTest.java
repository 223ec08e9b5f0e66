package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverManagedContract;

class DriverManagedTest extends DriverManagedContract {}
