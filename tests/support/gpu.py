"""What the tests on a device and the summary after all tests tell each other."""

import pytest

UNAVAILABLE = pytest.StashKey[str]()
"""Why no driver could be opened; absent where one could, or where nobody tried."""
