package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverTransferContract;

class DriverTransferTest extends DriverTransferContract {}
